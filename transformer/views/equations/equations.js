// A formula beside our own lines that compute it and this run's tensors, for the chosen head and token.

import { ask } from "../../ui/static/ask.js";
import { el, finder, tokenElement } from "../../ui/static/dom.js";
import { declaredFields } from "../../ui/static/fields.js";
import { placeOrLast, rowLookedAt } from "../../ui/static/looked_at.js";
import { say, sayWith } from "../../ui/static/messages.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { fieldsOf } from "../../ui/static/schema.js";
import { attentionOf, stackOf } from "../../ui/static/site_words.js";
import { siteName } from "../../ui/static/sites.js";
import { on, page } from "../../web/store.js";
import { mathElement } from "./math_element.js";
import { mountLit } from "./lit_parts.js";
import { axesText, codeElement, symbolButtons, tensorElement } from "./tensor_parts.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".equations");
  const columns = [...element.querySelectorAll(".equation-column")];
  /** @type {Map<string, any>} */
  let tensors = new Map(); // by part: what the lit line tells

  // ---- the choice of a formula ----

  const { options } = fieldsOf("equations").equation;
  const radios = new Map();
  for (const [topic, title] of Object.entries(options)) {
    const [label, input] = [el("label"), el("input")];
    Object.assign(input, { type: "radio", name: "equation", value: topic });
    input.addEventListener("change", () => {
      state.equation = topic;
      lit.clear();
      refresh();
    });
    label.append(input, el("span", "", say(title)));
    radios.set(topic, input);
    find(".equation-topics").append(label);
  }
  let refresh = () => {}; // until there is something to draw
  const state = declaredFields("equations", () => refresh());

  // ---- what is lit ----

  const nameOf = (part) => tensors.get(part)?.name ?? part;
  const lit = mountLit(root, columns, (part) => {
    const found = part && tensors.get(part);
    const shape = found ? axesText(found.axes) : "";
    find(".equation-lit").textContent = found
      ? [found.name, shape].filter(Boolean).join(" · ")
      : "";
  });

  // ---- drawing ----

  // What the numbers are of: a head, a layer or a token.
  const whatOf = ({ topic, query, query_label: label }) => {
    const { stack, layer, head } = page.head;
    const values = { layer, head, query, token: tokenElement(label) };
    if (topic === "sampling") return [];
    if (["norm", "feed-forward"].includes(topic)) {
      return sayWith("Layer {layer}, {stack}; token {query} {token}.", {
        ...values,
        stack: stackOf(stack),
      });
    }
    if (topic === "positions" && !page.run.turns) {
      return sayWith("Token {query} {token}, {stack}.", { ...values, stack: stackOf(stack) });
    }
    return sayWith("Layer {layer}, head {head}, {attention}; token {query} {token}.", {
      ...values,
      attention: attentionOf(page.head),
    });
  };

  const draw = async (current) => {
    radios.get(state.equation).checked = true;
    if (!page.run || !page.head) return;
    const { stack, kind, layer, head } = page.head;
    const there = page.run.kinds.find((one) => one.stack === stack && one.kind === kind);
    if (!there || layer >= there.n_layers || head >= page.run.n_heads) return; // of the model before
    const { run } = page.run;
    const site = siteName(page.head);
    const answer = await ask(server.equation, {
      run,
      site,
      head,
      query: rowLookedAt(stack),
      topic: state.equation,
      place: placeOrLast(),
    });
    if (!current()) return;
    tensors = new Map(answer.tensors.map((one) => [one.part, one]));
    find(".equation-of").replaceChildren(...whatOf(answer));
    find(".equation-says").textContent = answer.says.join(" ");
    find(".equation-columns").hidden = !answer.formula.length;
    for (const one of element.querySelectorAll(".hint")) one.hidden = !answer.formula.length;
    find(".equation-formula").replaceChildren(
      ...answer.formula.map((line) => mathElement(line, true)),
      symbolButtons(answer.tensors),
    );
    find(".equation-code").replaceChildren(...answer.code.map((one) => codeElement(one, nameOf)));
    find(".equation-tensors").replaceChildren(...answer.tensors.map(tensorElement));
    lit.refresh();
    Object.assign(root.dataset, { run, site, head, query: answer.query, topic: answer.topic });
  };
  on("equation", (topic) => {
    state.equation = topic;
    lit.clear();
    refresh();
    root.scrollIntoView();
    radios.get(topic).focus({ preventScroll: true });
  });
  refresh = redrawWhen(root, ["run", "head", "query"], draw);
}
