// The switches above the attention picture, and which of them a picture has.

import { el, finder } from "../../ui/static/dom.js";
import { say } from "../../ui/static/messages.js";
import { fieldsOf } from "../../ui/static/schema.js";
import { kindOf } from "../../ui/static/site_words.js";
import { page } from "../../web/store.js";
import { pictureNotes } from "./pictures.js";

// Which kind of attention a picture is of, where it is of one only.
const KIND_OF = { alignment: "cross", rollout: "self", joint: "self" };
const IN_MORE = ["mean", "rollout", "joint"]; // pictures that a beginner does not look for
const HINTS = {
  fixed: say("Colours span 0 to 1: heads can be compared"),
  own: say("Colours span 0 to the largest weight of this picture"),
};

// A switch for each field of the view's state that its template has a place for; setting one draws.
const makeSwitches = (element, state, changed) => {
  for (const box of element.querySelectorAll("fieldset[data-field]")) {
    const { field } = box.dataset;
    const { title, options } = fieldsOf("attention")[field];
    const choices = Object.entries(options).map(([value, words]) => {
      const [label, input] = [el("label"), el("input")];
      Object.assign(input, { type: "radio", name: `attention-${field}`, value });
      input.addEventListener("change", () => {
        state[field] = value;
        changed();
      });
      label.append(input, el("span", "", say(words)));
      label.title = HINTS[value] ?? "";
      label.classList.toggle("choice-in-more", IN_MORE.includes(value));
      return label;
    });
    box.replaceChildren(el("legend", "", say(title)), ...choices);
  }
};

// The switches of `element` set fields of `state`; changed() then draws. kind(): the kind of
// attention that is shown. Returns draw(), which offers what fits the picture and the kind.
export const attentionSwitches = (element, state, kind, changed) => {
  const find = finder(element);
  makeSwitches(element, state, changed);
  return () => {
    const { kind: sort } = kind();
    if ((KIND_OF[state.picture] ?? sort) !== sort) state.picture = "heatmap";
    for (const input of element.querySelectorAll("fieldset[data-field] input")) {
      const { field } = input.closest("fieldset").dataset;
      input.checked = input.value === state[field];
      if (field === "picture") {
        input.parentElement.hidden = (KIND_OF[input.value] ?? sort) !== sort;
      }
    }
    for (const part of element.querySelectorAll("[data-for]")) {
      part.hidden = !part.dataset.for.split(" ").includes(state.picture);
    }
    const { layer } = state;
    const one = state.picture === "mean" || layer === 0;
    find(".depths span").textContent = one ? `${layer}` : say("0 to {layer}", { layer });
    for (const input of element.querySelectorAll(".scales input, .ranges input")) {
      input.disabled = state.picture === "heatmap" && state.stage !== "weights";
    }
    const note = pictureNotes[state.picture];
    find(".picture-note").textContent = note ?? "";
    find(".picture-note").hidden = !note;
  };
};

// One button for each kind of attention of the run, the chosen one checked.
export const drawKindButtons = (box, chosen, choose) => {
  box.hidden = page.run.kinds.length < 2;
  box.replaceChildren(
    ...page.run.kinds.map(({ stack, kind }, index) => {
      const button = el("button", "kind", kindOf({ stack, kind }));
      button.setAttribute("role", "radio");
      button.setAttribute("aria-checked", String(index === chosen));
      button.addEventListener("click", () => choose({ stack, kind }));
      return button;
    }),
  );
};
