// The attentions of a network and the masks in words: whole phrases, which a language can bend as it
// must. In Python: model/site_words.py.

import { say } from "./messages.js";

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
// As short as a button needs it: "decoder self".
/** @type {(of: Kind) => string} */
export const kindOf = ({ stack, kind }) => KINDS[`${stack} ${kind}`];
// "decoder".
/** @type {(stack: string) => string} */
export const stackOf = (stack) => STACKS[stack];
// "causal mask"; which: "causal" or "padding".
/** @type {(which: string) => string} */
export const maskOf = (which) => MASKS[which];
