// A view that has no script of its own: its controls, pictures and tables are made from what it
// declares in Python, and its controls' values are fields of the page's state.

import { say } from "./messages.js";
import { ask } from "./ask.js";
import { el, finder } from "./dom.js";
import { ownFields } from "./fields.js";
import { drawFigure } from "./plots.js";
import { redrawWhen } from "./redraw.js";
import { views } from "./schema.js";
import { siteName } from "./sites.js";
import { chosenRow, page } from "../../web/store.js";

// What the page's chosen head and token say of a picture's parameters.
const selection = () => {
  const { run, head, query } = page;
  const place = query && query.stack === run.stack ? query.index : null;
  const step = place === null ? 0 : place - run.n_prompt;
  const last = run.probabilities.length - 1;
  return {
    site: head && siteName(head),
    stack: head?.stack,
    kind: head?.kind,
    layer: head?.layer,
    head: head?.head,
    query: head ? chosenRow(head.stack) : null,
    place,
    step: Math.max(0, Math.min(step, last)),
  };
};

// The text of a value in a link, and the value of a text, by the parameter's declared type.
export const textOf = (value) => (value === null ? "" : String(value));
export const valueOf = ({ type, optional }, text) => {
  if (text === "" && optional) return null;
  if (type === "whole" || type === "number") return text.trim() === "" ? null : Number(text);
  if (type === "flag") return text === "true";
  if (type === "wholes") return text.split(",").map(Number);
  return text;
};

// The control of one declared parameter; set(text) follows each change. Returns its element and
// show(text), which makes it stand at a value.
export const controlOf = (field, declared, set) => {
  const label = el("label", "panel-control", `${say(declared.title)} `);
  if (declared.type === "choice") {
    const box = el("select");
    for (const [value, words] of Object.entries(declared.options)) {
      box.append(Object.assign(el("option", "", say(words)), { value }));
    }
    box.addEventListener("change", () => set(box.value));
    label.append(box);
    return { label, show: (text) => (box.value = text) };
  }
  const input = Object.assign(el("input"), { name: field });
  if (declared.type === "flag") {
    input.type = "checkbox";
    input.addEventListener("change", () => set(String(input.checked)));
    label.append(input);
    return { label, show: (text) => (input.checked = text === "true") };
  }
  input.type = ["whole", "number"].includes(declared.type) ? "number" : "text";
  if (declared.least !== undefined) input.min = declared.least;
  if (typeof declared.most === "number" && input.type === "number") input.max = declared.most;
  input.addEventListener("change", () => set(input.value));
  label.append(input);
  return { label, show: (text) => (input.value = text) };
};

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props, server }) {
  const find = finder(element);
  const view = views.find(({ name }) => name === props.view);
  find(".panel-title").textContent = say(view.title);
  find(".panel-help").textContent = say(view.help);

  const declared = Object.entries(view.controls);
  const starts = Object.fromEntries(declared.map(([field, one]) => [field, textOf(one.default)]));
  const state = { ...starts };
  const controls = declared.map(([field, one]) => {
    const control = controlOf(field, one, (text) => {
      state[field] = text;
      refresh();
    });
    return { field, ...control };
  });
  const showControls = () => controls.forEach(({ field, show }) => show(state[field]));
  find(".panel-controls").append(...controls.map(({ label }) => label));
  showControls();

  const boxes = view.pictures.map((picture) => {
    const box = el("div", "picture");
    box.dataset.picture = picture.name;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", say(picture.title || view.title));
    const frame = el("div", "wide");
    frame.append(box);
    find(".panel-pictures").append(frame);
    return { picture, box };
  });

  const given = ({ parameters }) => {
    const chosen = selection();
    const values = {};
    for (const one of parameters) {
      const field = declared.find(([, each]) => each.name === one.name)?.[0];
      if (field !== undefined) values[one.name] = valueOf(one, state[field]);
      else if (one.use === "selection" && chosen[one.name] !== undefined) {
        values[one.name] = chosen[one.name];
      }
    }
    return values;
  };

  const draw = async (current) => {
    if (!page.run) return;
    for (const { picture, box } of boxes) {
      const subject = picture.takes === "model" ? { model: page.run.model } : { run: page.run.run };
      const asked = { ...subject, ...given(picture), dark: page.dark };
      const answer = await ask(server[picture.name], asked);
      if (!current()) return;
      if (answer.figure) await drawFigure(box, answer.figure);
    }
    element.dataset.run = page.run.run;
  };
  const refresh = redrawWhen(find(".panel"), ["run", "head", "query"], draw);

  const show = (values) => {
    Object.assign(state, values);
    showControls();
    refresh();
  };
  ownFields(starts, () => state, show);
}
