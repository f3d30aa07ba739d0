// One head's scores, weights and mask, computed from the server's arrays, and the values that the cells'
// colours show. The arithmetic of transformer/views/attention/heatmap.py: the server sends scores, or q and
// k, once for every stage and scale.

import { unpackBits } from "./ask.js";
import { numeral, say } from "./messages.js";

/** @import { Figure } from "./types" */
/** @typedef {{readonly scores: Float32Array | null, weights: Float32Array, allowed: Uint8Array}} HeadCells flat arrays of query x key; scores: null for several heads combined */
/** @typedef {HeadCells & {figure: Figure, labels: {query: string[], key: string[]}}} HeadNumbers figure: of head_frame in heatmap.py; labels: of the tokens */
/** @typedef {{figure: Figure, shape: number[], allowed: Uint8Array, scores?: Float32Array, queries?: Float32Array, keys?: Float32Array, weights?: Float32Array}} SentNumbers allowed: a bit a cell; scores, or the queries and keys of which they are products; weights: if they are not the softmax of the scores */
/** @typedef {{top: number, left: number, down: number, across: number, step: number}} CellRange a range of rows and columns, and how many cells along a side are drawn as one */
/** @typedef {Float32Array | Float64Array | Uint8Array | number[]} FlatNumbers */

export const FLOOR = 1e-4; // weights below this share the darkest colour of the log scale
const AT_ONCE = 4; // keys whose products are summed side by side, separately

/** @type {Record<string, string>} */
export const STAGE_NAMES = {
  scores: say("scores"),
  masked: say("masked scores"),
  weights: say("weights"),
};

// ---- softmax ----

// softmax over the allowed keys of a row; a row that may read nothing is uniform, as in the network
/** @type {<T extends FlatNumbers>(scores: FlatNumbers, allowed: FlatNumbers, weights: T, start: number, count: number) => T} */
const softmaxRow = (scores, allowed, weights, start, count) => {
  let highest = -Infinity;
  for (let at = start; at < start + count; at += 1) {
    if (allowed[at] && scores[at] > highest) highest = scores[at];
  }
  if (highest === -Infinity) {
    weights.fill(1 / count, start, start + count);
    return weights;
  }
  let sum = 0;
  for (let at = start; at < start + count; at += 1) {
    weights[at] = allowed[at] ? Math.exp(scores[at] - highest) : 0;
    sum += weights[at];
  }
  for (let at = start; at < start + count; at += 1) weights[at] /= sum;
  return weights;
};
/** @type {(scores: Float32Array, allowed: Uint8Array, nQueries: number) => Float32Array} */
const weightsOf = (scores, allowed, nQueries) => {
  const weights = new Float32Array(scores.length);
  const nKeys = scores.length / nQueries;
  for (let at = 0; at < nQueries; at += 1) softmaxRow(scores, allowed, weights, at * nKeys, nKeys);
  return weights;
};

// ---- scores of queries and keys ----

// q·k / √D of a query with the keys from `first` up to `end`, into `row`; both multiples of AT_ONCE.
/** @type {(query: Float64Array, keys: Float64Array, first: number, end: number, row: Float64Array) => void} */
const multiply = (query, keys, first, end, row) => {
  const size = query.length;
  const root = Math.sqrt(size);
  for (let column = first; column < end; column += AT_ONCE) {
    let [a, b, c, d] = [0, 0, 0, 0];
    let at = column * size;
    for (let part = 0; part < size; part += 1, at += 1) {
      const one = query[part];
      a += one * keys[at];
      b += one * keys[at + size];
      c += one * keys[at + 2 * size];
      d += one * keys[at + 3 * size];
    }
    row[column] = a / root;
    row[column + 1] = b / root;
    row[column + 2] = c / root;
    row[column + 3] = d / root;
  }
};

// For each query the index after its last allowed key: all later scores are masked.
/** @type {(allowed: Uint8Array, nQueries: number, nKeys: number) => number[]} */
const endsOf = (allowed, nQueries, nKeys) =>
  Array.from({ length: nQueries }, (_, row) => {
    const last = allowed.subarray(row * nKeys, (row + 1) * nKeys).lastIndexOf(1);
    return Math.min(nKeys, Math.ceil((last + 1) / AT_ONCE) * AT_ONCE);
  });

// Scores of queries (Tq x D) and keys (Tk x D). The products are summed in float64, so the scores equal the
// network's float32 scores to within rounding, 1e-5 of the largest. Masked scores after a query's last
// allowed key, nearly half of a causal head, are computed on demand.
/** @type {(queries: Float32Array, keys: Float32Array, allowed: Uint8Array, nQueries: number) => HeadCells} */
const cellsOfVectors = (queries, keys, allowed, nQueries) => {
  const size = queries.length / nQueries;
  const nKeys = keys.length / size;
  const asked = new Float64Array(queries);
  const wide = new Float64Array(Math.ceil(nKeys / AT_ONCE) * AT_ONCE * size);
  wide.set(keys);
  const ends = endsOf(allowed, nQueries, nKeys);
  const products = new Float32Array(nQueries * nKeys);
  const row = new Float64Array(wide.length / size);
  /** @type {(first: (at: number) => number, end: (at: number) => number) => void} */
  const fill = (first, end) => {
    for (let at = 0; at < nQueries; at += 1) {
      multiply(asked.subarray(at * size, (at + 1) * size), wide, first(at), end(at), row);
      const part = row.subarray(first(at), Math.min(nKeys, end(at)));
      products.set(part, at * nKeys + first(at));
    }
  };
  fill(
    () => 0,
    (at) => ends[at],
  );
  let whole = false;
  return {
    get scores() {
      if (!whole) {
        fill(
          (at) => ends[at],
          () => nKeys,
        );
      }
      whole = true;
      return products;
    },
    weights: weightsOf(products, allowed, nQueries),
    allowed,
  };
};

// A head's numbers from the server's arrays; see SentNumbers.
/** @type {(sent: SentNumbers) => HeadNumbers} */
export const headNumbers = ({ figure, shape, allowed: bits, scores, queries, keys, weights }) => {
  const [nQueries, nKeys] = shape;
  const { query_labels: query, key_labels: key } = figure.layout.meta;
  const allowed = unpackBits(bits, nQueries * nKeys);
  const softmax = () => (scores ? weightsOf(scores, allowed, nQueries) : new Float32Array());
  const cells =
    queries && keys
      ? cellsOfVectors(queries, keys, allowed, nQueries)
      : { scores: scores ?? null, weights: weights ?? softmax(), allowed };
  return Object.assign(cells, { figure, labels: { query, key } }, weights && { weights });
};

// The weights of a query's row.
/** @type {(numbers: HeadNumbers, row: number) => Float32Array} */
export const weightsOfRow = ({ weights, labels: { key } }, row) =>
  weights.subarray(row * key.length, (row + 1) * key.length);

// ---- the values that are drawn ----

/** @type {Record<string, (weight: number) => number>} */
export const RESCALE = {
  linear: (weight) => weight,
  sqrt: Math.sqrt,
  log: (weight) => 1 - Math.log10(Math.max(weight, FLOOR)) / Math.log10(FLOOR),
};

/** @type {(numbers: HeadNumbers, stage: string) => Float32Array} */
const drawnFrom = (numbers, stage) =>
  stage === "weights" ? numbers.weights : /** @type {Float32Array} */ (numbers.scores);

// The text of a cell in the table behind the picture, (row, column) => text: the number itself.
/** @type {(numbers: HeadNumbers, stage: string) => (row: number, column: number) => string} */
export const cellTexts = (numbers, stage) => (row, column) => {
  const at = row * numbers.labels.key.length + column;
  if (stage !== "scores" && !numbers.allowed[at]) return say("hidden");
  return numeral(drawnFrom(numbers, stage)[at].toFixed(4));
};

// The largest number that is drawn, up or down.
/** @type {(numbers: HeadNumbers, stage: string) => number} */
export const largestOf = (numbers, stage) => {
  const from = drawnFrom(numbers, stage);
  const all = stage !== "weights"; // the same before and after the mask: switching changes no colour
  let most = 0;
  for (let at = 0; at < from.length; at += 1) {
    const size = Math.abs(from[at]);
    if (size > most && (all || numbers.allowed[at])) most = size;
  }
  return most;
};

// Rows of colour values, of all cells or of a part; NaN where nothing is drawn. Of cells drawn as one, the
// value furthest from 0 is taken, so that a single bright cell stays bright.
/** @type {(numbers: HeadNumbers, stage: string, scale: string, part?: CellRange) => Float32Array[]} */
export const colourValues = (numbers, stage, scale, part) => {
  const nKeys = numbers.labels.key.length;
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
    for (let to = 0; to < cells.length; to += 1) cells[to] = rescale(cells[to]);
    return cells;
  });
};
