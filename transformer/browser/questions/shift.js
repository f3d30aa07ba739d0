// The map from the vector of a position to that of one k further on, as views/positions/rotation.py.

import { say } from "../../web/messages.js";
import { frameOf } from "../frames.js";
import { SHORT_MS, pauses } from "../pauses.js";
import { boundOf } from "./places.js";
import { tableOf } from "./positions.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 */

const ON_CIRCLE = 1e-3; // how far from 1 the length of a sine and its cosine may be

// The matrix (C, C) that takes rows a to rows b with the least sum of squares: by Householder's reflections.
/** @type {(a: Float32Array[], b: Float32Array[], pause: () => Promise<void>) => Promise<Float64Array[]>} */
const leastSquares = async (a, b, pause) => {
  const [n, size] = [a.length, a[0].length];
  const columnsOf = (/** @type {Float32Array[]} */ rows) =>
    Array.from({ length: size }, (_, at) => Float64Array.from(rows, (row) => row[at]));
  const [known, wanted] = [columnsOf(a), columnsOf(b)];
  const diagonal = new Float64Array(size);
  for (let at = 0; at < size; at += 1) {
    const mirror = known[at];
    let squares = 0;
    for (let i = at; i < n; i += 1) squares += mirror[i] * mirror[i];
    diagonal[at] = mirror[at] > 0 ? -Math.sqrt(squares) : Math.sqrt(squares);
    const length = 2 * (squares - diagonal[at] * mirror[at]); // of what reflects, squared
    mirror[at] -= diagonal[at];
    for (const column of length > 0 ? [...known.slice(at + 1), ...wanted] : []) {
      let product = 0;
      for (let i = at; i < n; i += 1) product += mirror[i] * column[i];
      const by = (2 * product) / length;
      for (let i = at; i < n; i += 1) column[i] -= by * mirror[i];
    }
    await pause();
  }
  return wanted.map((column) => {
    const solution = new Float64Array(size);
    for (let at = size - 1; at >= 0; at -= 1) {
      let left = column[at];
      for (let i = at + 1; i < size; i += 1) left -= known[i][at] * solution[i];
      solution[at] = diagonal[at] ? left / diagonal[at] : 0;
    }
    return solution;
  });
};
// The matrix (C, C) that rotates each sine and its cosine from the vector of one position to that of another.
/** @type {(from: Float32Array, to: Float32Array) => Float64Array[]} */
const rotationOf = (from, to) => {
  const lines = Array.from(to, () => new Float64Array(to.length));
  const half = to.length / 2;
  const isPair = (/** @type {number} */ sine) =>
    Math.abs(Math.hypot(to[sine], to[sine + 1]) - 1) < ON_CIRCLE;
  const pairs = Array.from({ length: half }, (_, pair) => pair);
  const isNextTo = pairs.every((pair) => isPair(2 * pair)); // or all sines come before the cosines
  for (const pair of pairs) {
    const [s, c] = isNextTo ? [2 * pair, 2 * pair + 1] : [pair, pair + half];
    const cosine = from[c] * to[c] + from[s] * to[s];
    const sine = to[s] * from[c] - to[c] * from[s];
    lines[s][s] = cosine;
    lines[c][c] = cosine;
    lines[s][c] = sine;
    lines[c][s] = -sine;
  }
  return lines;
};
/** @type {Answerer<"shift">} */
const shift = async (item, { k = 1, shown = null, ...data }) => {
  const { stack, table } = tableOf(item, data);
  const size = table[0].length;
  const isFitted = item.model.frames.shift?.layout.meta.fitted ?? true; // no frame: a fit would fit any matrix
  const largestK = table.length - 1 - (isFitted ? size : 0);
  if (largestK < 1) return { figure: null, largest: largestK };
  if (k > largestK)
    throw new Error(
      say("{name} must be a whole number from {lowest} to {highest}; got {got}", {
        ...{ name: "k", lowest: 1, highest: largestK, got: k },
      }),
    );
  const [here, there] = [table.slice(0, -k), table.slice(k)];
  const pause = pauses(SHORT_MS);
  const matrix = isFitted ? await leastSquares(here, there, pause) : rotationOf(table[0], table[k]);
  let [largest_miss, missed, all] = [0, 0, 0];
  for (const [at, row] of here.entries()) {
    matrix.forEach((line, i) => {
      let value = 0;
      for (let j = 0; j < size; j += 1) value += line[j] * row[j];
      const miss = value - there[at][i];
      largest_miss = Math.max(largest_miss, Math.abs(miss));
      missed += miss * miss;
      all += there[at][i] ** 2;
    });
    await pause();
  }
  const facts = {
    ...{ stack, k, fitted: isFitted, n_pairs: here.length, largest_miss },
    relative_miss: Math.sqrt(missed / all),
    chance: isFitted ? Math.sqrt(1 - size / here.length) : 0,
  };
  const figure = frameOf(item, "shift");
  const { layout, data: [cells] } = figure; // prettier-ignore
  const bound = Math.max(...matrix.map((line) => boundOf(line, 0))) || 1;
  const further = say("dimension of PE(pos + {k})", { k });
  cells.hovertemplate = cells.hovertemplate.replace(layout.yaxis.title.text, further);
  layout.yaxis.title.text = further;
  Object.assign(cells, {
    ...{ zmin: -bound, zmax: bound },
    z: matrix.map((line) => Float32Array.from(line)),
  });
  const end = Math.min(size, shown || size) - 0.5;
  layout.xaxis.range = [-0.5, end];
  layout.yaxis.range = [end, -0.5];
  Object.assign(layout.meta, facts);
  return { figure, largest: largestK, ...facts };
};

export const answers = { shift };
