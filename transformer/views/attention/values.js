// From one head's scores and mask to its weights, and to what the cells' colours stand for.
// The same arithmetic as transformer/views/attention/heatmap.py, so that a head travels as its scores
// alone, or as what they are made of, and a change of stage or scale sends none of it again.

import { numeral, say } from "../../ui/static/messages.js";
import { decodeBytes, decodeFloats, unpackBits } from "../../ui/static/bytes.js";
import { softmaxRow } from "../../ui/static/softmax.js";
import { numbersOfVectors } from "./vectors.js";

/** @typedef {{readonly scores: Float32Array, weights: Float32Array, allowed: Uint8Array}} HeadNumbers */
/** @typedef {{shape: number[], allowed: string, scores?: string, queries: string, keys: string}} Sent */
/** @typedef {{top: number, left: number, down: number, across: number, step: number}} Part some rows and columns, and how many along a side are put together */

/** @type {Record<string, string>} */
export const STAGE_NAMES = {
  scores: say("scores"),
  masked: say("masked scores"),
  weights: say("weights"),
};

// The server's answer for one head as {scores, weights, allowed}, flat arrays of query x key.
/** @type {(answer: Sent) => HeadNumbers} */
export const headNumbers = (answer) => {
  const [nQueries, nKeys] = answer.shape;
  const allowed = unpackBits(decodeBytes(answer.allowed), nQueries * nKeys);
  if (answer.scores === undefined) {
    const [queries, keys] = [answer.queries, answer.keys].map(decodeFloats);
    return numbersOfVectors(queries, keys, allowed, nQueries);
  }
  const scores = decodeFloats(answer.scores);
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

/** @type {(numbers: HeadNumbers, stage: string) => Float32Array} */
const drawnFrom = (numbers, stage) => (stage === "weights" ? numbers.weights : numbers.scores);

// The text of a cell in the table behind the picture, (row, column) => text: the number itself.
/** @type {(numbers: HeadNumbers, nKeys: number, stage: string) => (row: number, column: number) => string} */
export const cellTexts = (numbers, nKeys, stage) => (row, column) => {
  const at = row * nKeys + column;
  if (stage !== "scores" && !numbers.allowed[at]) return say("hidden");
  return numeral(drawnFrom(numbers, stage)[at].toFixed(4));
};

// Rows of what is coloured, of all cells or of a part; NaN where nothing is drawn. Where cells are
// put together, the one furthest from 0 is drawn, so that a single bright cell stays as bright.
/** @type {(numbers: HeadNumbers, nKeys: number, stage: string, scale: string, floor: number, part?: Part) => Float32Array[]} */
export const colourValues = (numbers, nKeys, stage, scale, floor, part) => {
  const [from, allowed] = [drawnFrom(numbers, stage), numbers.allowed];
  const all = { top: 0, left: 0, down: from.length / nKeys, across: nKeys, step: 1 };
  const { top, left, down, across, step } = part ?? all;
  const rescale = stage === "weights" ? RESCALE[scale] : RESCALE.linear;
  const every = stage === "scores";
  return Array.from({ length: Math.ceil(down / step) }, (_, place) => {
    const cells = new Float32Array(Math.ceil(across / step)).fill(NaN);
    const end = Math.min(down, (place + 1) * step);
    for (let row = place * step; row < end; row += 1) {
      const start = (top + row) * nKeys + left;
      for (let column = 0, at = start; column < across; column += 1, at += 1) {
        if (!every && !allowed[at]) continue;
        const to = step === 1 ? column : Math.floor(column / step);
        if (!(Math.abs(from[at]) <= Math.abs(cells[to]))) cells[to] = from[at];
      }
    }
    for (let to = 0; to < cells.length; to += 1) cells[to] = rescale(cells[to], floor);
    return cells;
  });
};
