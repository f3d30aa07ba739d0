// A head's scores and weights worked out from its queries and keys, which for a long text are many
// fewer numbers. The products are summed in float64, so that the scores are those that the network
// worked out in float32 to within that one's rounding: 1e-5 of the largest.

import { softmaxRow } from "../../ui/static/softmax.js";

/** @typedef {import("./values.js").HeadNumbers} HeadNumbers */

const AT_ONCE = 4; // keys whose products are summed side by side, each for itself

// Keys as float64, filled up to a multiple of AT_ONCE.
/** @type {(keys: Float32Array, size: number) => Float64Array} */
const filledUp = (keys, size) => {
  const found = new Float64Array(Math.ceil(keys.length / size / AT_ONCE) * AT_ONCE * size);
  found.set(keys);
  return found;
};

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

// For each query, behind its last allowed key: where the scores that only a mask hides begin.
/** @type {(allowed: Uint8Array, nQueries: number, nKeys: number) => number[]} */
const endsOf = (allowed, nQueries, nKeys) =>
  Array.from({ length: nQueries }, (_, row) => {
    const last = allowed.subarray(row * nKeys, (row + 1) * nKeys).lastIndexOf(1);
    return Math.min(nKeys, Math.ceil((last + 1) / AT_ONCE) * AT_ONCE);
  });

// {scores, weights, allowed} of queries (Tq x D) and keys (Tk x D). The scores of what the mask hides
// behind a query's last allowed key, nearly half of a causal head, are worked out when any is asked for.
/** @type {(queries: Float32Array, keys: Float32Array, allowed: Uint8Array, nQueries: number) => HeadNumbers} */
export const numbersOfVectors = (queries, keys, allowed, nQueries) => {
  const size = queries.length / nQueries;
  const nKeys = keys.length / size;
  const asked = new Float64Array(queries);
  const wide = filledUp(keys, size);
  const ends = endsOf(allowed, nQueries, nKeys);
  const found = new Float32Array(nQueries * nKeys);
  const row = new Float64Array(wide.length / size);
  /** @type {(first: (at: number) => number, end: (at: number) => number) => void} */
  const fill = (first, end) => {
    for (let at = 0; at < nQueries; at += 1) {
      multiply(asked.subarray(at * size, (at + 1) * size), wide, first(at), end(at), row);
      const part = row.subarray(first(at), Math.min(nKeys, end(at)));
      found.set(part, at * nKeys + first(at));
    }
  };
  fill(
    () => 0,
    (at) => ends[at],
  );
  const weights = new Float32Array(found.length);
  for (let at = 0; at < nQueries; at += 1) softmaxRow(found, allowed, weights, at * nKeys, nKeys);
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
      return found;
    },
    weights,
    allowed,
  };
};
