// A head's numbers from what the page holds of it.

import { weightsOf } from "../../attention/values.js";
import { flatOf } from "./pack.js";

const KEPT = 8; // heads of a kind of attention
/** @typedef {import("../../attention/values.js").HeadNumbers} HeadNumbers */
/** @type {WeakMap<object, Map<string, HeadNumbers>>} */
const keptOf = new WeakMap(); // by the kind of attention, which is one of a run

// {scores, weights, allowed} of a head of a kind of attention: flat arrays of query x key.
export const headNumbers = (kind, layer, head) => {
  const kept = keptOf.get(kind) ?? new Map();
  keptOf.set(kind, kept);
  const name = `${layer}.${head}`;
  if (!kept.has(name)) {
    if (kept.size >= KEPT) kept.delete([...kept.keys()][0]);
    kept.set(name, workedOut(kind, kind.layers[layer], head));
  }
  return /** @type {HeadNumbers} */ (kept.get(name));
};

const workedOut = (kind, record, head) => {
  const nKeys = kind.key_labels.length;
  const cells = kind.query_labels.length * nKeys;
  const part = (stored) => flatOf(stored).subarray(head * cells, (head + 1) * cells);
  const allowed = flatOf(kind.allowed);
  const scores = record.scores ? part(record.scores) : products(record, head);
  const weights = record.weights ? part(record.weights) : weightsOf(scores, allowed, nKeys);
  return { scores, weights, allowed };
};

// q·k / √D of one head, for every query and key.
const products = ({ queries, keys }, head) => {
  const [, nQueries, size] = queries.shape;
  const nKeys = keys.shape[1];
  const q = flatOf(queries).subarray(head * nQueries * size);
  const k = flatOf(keys).subarray(head * nKeys * size);
  const root = Math.sqrt(size);
  const scores = new Float32Array(nQueries * nKeys);
  for (let row = 0; row < nQueries; row += 1) {
    for (let column = 0; column < nKeys; column += 1) {
      let sum = 0;
      for (let at = 0; at < size; at += 1) sum += q[row * size + at] * k[column * size + at];
      scores[row * nKeys + column] = sum / root;
    }
  }
  return scores;
};
