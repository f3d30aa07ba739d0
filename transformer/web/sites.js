// The sites of attention in a network, by name and in words.

import { say } from "./messages.js";

/**
 * @typedef {import("./store.js").Site} Site
 * @typedef {{kinds: import("./store.js").Kind[]}} Item a run or a batch
 */

// Every site of a run or a batch, {stack, layer, kind}, in the network's order.
/** @type {(item: Item) => Site[]} */
export const sitesOf = ({ kinds }) =>
  kinds.flatMap(({ stack, kind, n_layers: count }) =>
    Array.from({ length: count }, (_, layer) => ({ stack, layer, kind })),
  );

// Its name, "decoder.0.self" for one.
/** @type {(site: Site) => string} */
export const siteName = ({ stack, layer, kind }) => `${stack}.${layer}.${kind}`;

// ---- in words: whole phrases, for translation; in Python: network_words.py ----

/** @typedef {{stack: string, kind: string}} Kind */

/** @type {Record<string, string>} */
const ATTENTIONS = {
  "encoder self": say("encoder self-attention"),
  "decoder self": say("decoder self-attention"),
  "decoder cross": say("decoder cross-attention"),
};
/** @type {Record<string, string>} */
const KINDS = {
  "encoder self": say("encoder self"),
  "decoder self": say("decoder self"),
  "decoder cross": say("decoder cross"),
};
/** @type {Record<string, string>} */
const STACKS = { encoder: say("encoder"), decoder: say("decoder") };
/** @type {Record<string, string>} */
const MASKS = { causal: say("causal mask"), padding: say("padding mask") };

// "decoder self-attention".
/** @type {(of: Kind) => string} */
export const attentionOf = ({ stack, kind }) => ATTENTIONS[`${stack} ${kind}`];
// Short, for a button: "decoder self".
/** @type {(of: Kind) => string} */
export const kindOf = ({ stack, kind }) => KINDS[`${stack} ${kind}`];
// "layer 5, head 0".
/** @type {(head: {layer: number, head: number}) => string} */
export const headName = ({ layer, head }) => say("layer {layer}, head {head}", { layer, head });
// "decoder".
/** @type {(stack: string) => string} */
export const stackOf = (stack) => STACKS[stack];
// "causal mask"; which: "causal" or "padding".
/** @type {(which: string) => string} */
export const maskOf = (which) => MASKS[which];
