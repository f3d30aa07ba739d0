// From one head's scores and mask to its weights, and to what the cells' colours stand for.
// The same arithmetic as transformer/views/attention/heatmap.py, so that a head travels as its scores
// alone and a change of stage or scale asks the server for nothing.

import { numeral, say } from "../../ui/static/messages.js";
import { decodeBytes, decodeFloats, unpackBits } from "../../ui/static/bytes.js";
import { softmaxRow } from "../../ui/static/softmax.js";

/** @typedef {{scores: Float32Array, weights: Float32Array, allowed: Uint8Array}} HeadNumbers */

/** @type {Record<string, string>} */
export const STAGE_NAMES = {
  scores: say("scores"),
  masked: say("masked scores"),
  weights: say("weights"),
};

// The server's answer for one head as {scores, weights, allowed}, flat arrays of query x key.
/** @type {(answer: {shape: number[], scores: string, allowed: string}) => HeadNumbers} */
export const headNumbers = (answer) => {
  const [nQueries, nKeys] = answer.shape;
  const scores = decodeFloats(answer.scores);
  const allowed = unpackBits(decodeBytes(answer.allowed), nQueries * nKeys);
  return { scores, weights: weightsOf(scores, allowed, nKeys), allowed };
};

// The weights of all rows, a flat array of query x key as the scores are.
/** @type {(scores: Float32Array, allowed: Uint8Array, nKeys: number) => Float32Array} */
export const weightsOf = (scores, allowed, nKeys) => {
  const weights = new Float32Array(scores.length);
  for (let start = 0; start < scores.length; start += nKeys)
    softmaxRow(scores, allowed, weights, start, nKeys);
  return weights;
};

/** @type {Record<string, (weight: number, floor: number) => number>} */
const RESCALE = {
  linear: (weight) => weight,
  sqrt: Math.sqrt,
  log: (weight, floor) => 1 - Math.log10(Math.max(weight, floor)) / Math.log10(floor),
};

// The text of a cell in the table behind the picture, (row, column) => text: the number itself.
/** @type {(numbers: HeadNumbers, nKeys: number, stage: string) => (row: number, column: number) => string} */
export const cellTexts =
  ({ scores, weights, allowed }, nKeys, stage) =>
  (row, column) => {
    const at = row * nKeys + column;
    if (stage !== "scores" && !allowed[at]) return say("hidden");
    return numeral((stage === "weights" ? weights : scores)[at].toFixed(4));
  };

// Rows of what is coloured; NaN where nothing is drawn.
/** @type {(numbers: HeadNumbers, nKeys: number, stage: string, scale: string, floor: number) => Float32Array[]} */
export const colourValues = ({ scores, weights, allowed }, nKeys, stage, scale, floor) => {
  const from = stage === "weights" ? weights : scores;
  const rescale = stage === "weights" ? RESCALE[scale] : RESCALE.linear;
  const every = stage === "scores";
  const cells = new Float32Array(from.length);
  for (let at = 0; at < cells.length; at += 1) {
    cells[at] = every || allowed[at] ? rescale(from[at], floor) : NaN;
  }
  return Array.from({ length: cells.length / nKeys }, (_, row) =>
    cells.subarray(row * nKeys, (row + 1) * nKeys),
  );
};
