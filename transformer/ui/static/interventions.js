// What is altered in the network of the shown run, as plain values; and asking for a run with other
// alterations.

import { page } from "../../web/store.js";
import { typeText } from "./gradio.js";

/**
 * @typedef {Record<string, any>} Plain an intervention as plain values
 * @typedef {import("../../web/store.js").Head} Head
 * @typedef {import("../../web/store.js").Site} Site
 */

/** @type {() => Plain[]} */
export const interventions = () => (page.run?.interventions ?? []).map((one) => one.is);

/** @type {(interventions: any[], forced: number[]) => void} */
let request = () => {};
// How a new run is asked for: request(interventions, forced token ids). Set by altered.js.
/** @type {(made: (wanted: Plain[], forced: number[]) => void) => void} */
export const setRequest = (made) => (request = made);

/** @type {(changed: Plain[]) => void} */
export const alter = (changed) => request(changed, []);
// The shown text up to a step, then the given token ids, then what the network writes.
/** @type {(forced: number[]) => Promise<void>} */
export const continueFrom = async (forced) => {
  await typeText(page.run.text); // whatever was typed since: the tokens are of this text
  request(interventions(), forced);
};

// Whether the shown model writes text: nothing is altered in one that only reads.
export const generates = () => page.run?.stack === "decoder";

// ---- silenced heads ----

/** @type {(one: Plain) => string} */
const kindOf = ({ kind }) => kind ?? "self"; // plain values leave out what is the default
/** @type {(head: Head) => (one: Plain) => boolean} */
const isOf = (head) => (one) =>
  one.type === "silence" &&
  one.stack === head.stack &&
  kindOf(one) === head.kind &&
  one.layer === head.layer;

// The plain value of a Silence, at its shortest.
/** @type {(site: Site, heads: number[], by?: string) => Plain} */
export const silenceOf = ({ stack, kind, layer }, heads, by = "zero") => ({
  type: "silence",
  stack,
  layer,
  heads,
  ...(kind === "self" ? {} : { kind }),
  ...(by === "zero" ? {} : { by }),
});

// Whether interventions silence a head {stack, kind, layer, head}.
/** @type {(head: Head, all?: Plain[]) => boolean} */
export const isSilent = (head, all = interventions()) =>
  all.filter(isOf(head)).some(({ heads }) => heads.includes(head.head));

// Interventions with this head silenced, or speaking again if it is silent.
/** @type {(head: Head, all?: Plain[]) => Plain[]} */
export const withSilence = (head, all = interventions()) => {
  if (!isSilent(head, all)) return [...all, silenceOf(head, [head.head])];
  const same = isOf(head);
  /** @type {(one: Plain) => Plain} */
  const without = (one) => ({
    ...one,
    heads: one.heads.filter((/** @type {number} */ index) => index !== head.head),
  });
  return all
    .map((one) => (same(one) ? without(one) : one))
    .filter((one) => one.type !== "silence" || one.heads.length > 0);
};
