// Views and components drawn without a browser, with answers that a test prepares.
import { afterEach } from "node:test";

import { place, settled } from "../kit/dom.js";
import "./schema.js";
import { answerFrom } from "../../transformer/web/ask.js";
import { html, render } from "../../transformer/web/preact.js";
import { usePart } from "../../transformer/web/part.js";
import { controls, page, setRun, shell } from "../../transformer/web/store.js";

/** @type {Record<string, any>} a run of two layers with two heads each, which read three tokens and wrote three */
const RUN = {
  ...{ model: "tiny", stack: "decoder", head: "tokens", text: "the fox sat", how: "greedy" },
  labels: ["␣the", "␣fox", "␣sat", "␣on", "␣the", "␣fox"],
  ...{ ids: [1, 2, 3, 4, 1, 2], n_prompt: 3, trace_start: 0, last_read: 4, n_heads: 2 },
  ...{ source_labels: [], special: [], source_special: [], hidden: [], windows: [null] },
  ...{ probabilities: [0.5, 0.25, 0.125], interventions: [], forced_tokens: [], request: {} },
  ...{ hypotheses: [], opening: {}, stopped: "", state: "done" },
  kinds: [{ stack: "decoder", kind: "self", n_layers: 2 }],
};
/** @type {any[]} the changes of the run that were asked for, and the tokens that were forced */
export const requests = [];
shell.generate = (/** @type {any} */ request) => void requests.push(request);

/** @type {Record<string, (data: any) => any>} */
const answers = {};
answerFrom(
  new Proxy(answers, {
    get: (_, /** @type {string} */ name) => async (/** @type {any} */ data) => {
      if (!(name in answers)) throw new Error(`nothing was prepared for ${name}`);
      return answers[name](data);
    },
  }),
);
// Prepare answers by the names of their questions, each a value or a function of what is asked.
/** @type {(prepared: Record<string, any>) => void} */
export const prepare = (prepared) => {
  for (const [name, answer] of Object.entries(prepared))
    answers[name] = typeof answer === "function" ? answer : () => answer;
};

let count = 0;
// Show a run with these facts, each time another one.
/** @type {(facts?: Record<string, any>) => string} its id */
export const show = (facts = {}) => {
  requests.splice(0);
  count += 1;
  const run = `r${count}`;
  Object.assign(controls, { max_new_tokens: 20, method: "greedy", temperature: 1, top_k: 0 });
  setRun(/** @type {any} */ ({ ...RUN, run, ...facts }));
  return run;
};
/** @type {(...changes: any[]) => { is: any, says: string }[]} */
export const changesOf = (...changes) => changes.map((is) => ({ is, says: "it is altered" }));

/** @type {any[]} where something is drawn */
const roots = [];
afterEach(() => {
  for (const root of roots.splice(0)) render(null, root);
  page.forward = null;
});
// Draw a view as the page does, and wait for its answers.
/** @type {(mount: (mounted: any) => void, prepared?: Record<string, any>) => Promise<any>} */
export const drawnView = async (mount, prepared = {}) => {
  prepare(prepared);
  const element = place();
  element.append(globalThis.document.createElement("div"));
  roots.push(element.firstElementChild);
  mount({ element, props: {}, trigger: () => {} });
  await settled(element);
  return element;
};
// Draw a component inside of a part: component(part) gives it, with what it is drawn from.
/** @type {(component: (part: any) => any, prepared?: Record<string, any>) => Promise<any>} */
export const drawn = async (component, prepared = {}) => {
  prepare(prepared);
  const element = place();
  roots.push(element);
  const Whole = () => {
    const part = usePart();
    return html`<div ...${part.attributes({})}>${component(part)}</div>`;
  };
  render(html`<${Whole} />`, element);
  await settled(element);
  return element;
};
/** @type {(element: any, selector: string) => string[]} */
export const texts = (element, selector) =>
  element
    .querySelectorAll(selector)
    .map((/** @type {any} */ each) => each.textContent.replace(/\s+/g, " ").trim());
/** @type {(element: any, selector: string, attribute: string) => (string | null)[]} */
export const valuesOf = (element, selector, attribute) =>
  element.querySelectorAll(selector).map((/** @type {any} */ each) => each.getAttribute(attribute));
