// What is altered in the network of the shown run, as plain values; and asking for a run with other
// alterations.

import { say } from "./messages.js";
import { html } from "./preact.js";
import { kindOf as kindWords } from "./sites.js";
import { shell, page } from "./store.js";

/**
 * @typedef {Record<string, any>} Plain an intervention as plain values
 * @typedef {import("./store.js").Head} Head
 * @typedef {import("./store.js").Site} Site
 */

/** @type {() => Plain[]} */
export const interventions = () => (page.run?.interventions ?? []).map((one) => one.is);

// A new run with these, of the text in the box or of `text`.
/** @type {(changed: Plain[], forced?: number[], text?: string) => void} */
export const alter = (changed, forced_tokens = [], text = undefined) =>
  shell.generate({ interventions: changed, forced_tokens }, text);

// Whether the shown model writes text: nothing is altered in one that only reads.
export const generates = () => page.run?.stack === "decoder";
// An experiment and what its heading says, if anything, for `mounted`: neither is shown of a network that
// only reads.
/** @type {(Component: any, finding?: () => any) => [any, () => any]} */
export const experiment = (Component, finding = () => null) => [
  (/** @type {any} */ props) => generates() && html`<${Component} ...${props} />`,
  () => generates() && (finding() || null),
];

// ---- ablated heads ----

/** @type {(one: Plain) => string} */
const kindOf = ({ kind }) => kind ?? "self"; // plain values leave out what is the default
// Whether it switches heads off, in every token: a program may ablate other parts.
/** @type {(one: Plain) => boolean} */
export const ablatesHeads = ({ type, heads, positions }) =>
  type === "ablate" && heads && !positions;

/** @type {(head: Head) => (one: Plain) => boolean} */
const isOf = (head) => (one) =>
  ablatesHeads(one) &&
  one.stack === head.stack &&
  kindOf(one) === head.kind &&
  one.layer === head.layer;

// The plain value of an Ablate, at its shortest.
/** @type {(site: Site, heads: number[], by?: string) => Plain} */
export const ablationOf = ({ stack, kind, layer }, heads, by = "zero") => ({
  type: "ablate",
  stack,
  layer,
  heads,
  ...(kind === "self" ? {} : { kind }),
  ...(by === "zero" ? {} : { by }),
});

/** @type {(head: Head) => (index: number) => boolean} */
const isOther = (head) => (index) => index !== head.head;

// Whether interventions ablate a head {stack, kind, layer, head}.
/** @type {(head: Head, all?: Plain[]) => boolean} */
export const isAblated = (head, all = interventions()) =>
  all.filter(isOf(head)).some(({ heads }) => heads.includes(head.head));

// Interventions with this head ablated, or intact again if it is ablated.
/** @type {(head: Head, all?: Plain[], by?: string) => Plain[]} */
export const withAblation = (head, all = interventions(), by = "zero") => {
  const same = isOf(head);
  if (isAblated(head, all)) {
    return all
      .map((one) => (same(one) ? { ...one, heads: one.heads.filter(isOther(head)) } : one))
      .filter((one) => !ablatesHeads(one) || one.heads.length > 0);
  }
  const at = all.findIndex((one) => same(one) && (one.by ?? "zero") === by);
  if (at < 0) return [...all, ablationOf(head, [head.head], by)];
  const heads = [...all[at].heads, head.head].sort((a, b) => a - b);
  return all.map((one, place) => (place === at ? { ...one, heads } : one));
};

// "layer 5, head 0", with its kind where the network has several.
/** @type {(head: Head) => string} */
export const headWords = (head) => {
  const words = say("layer {layer}, head {head}", head);
  return page.run.kinds.length > 1 ? `${words} (${kindWords(head)})` : words;
};
// Beside the large picture of a head: switches that head off, or on again.
/** @type {(props: { of: Head }) => any} */
export const SwitchOff = ({ of: head }) =>
  generates() &&
  html`<button type="button" class="switch-off" onClick=${() => alter(withAblation(head))}>${
    isAblated(head)
      ? say("Switch {head} on again", { head: headWords(head) })
      : say("Switch off {head}", { head: headWords(head) })
  }</button>`;
