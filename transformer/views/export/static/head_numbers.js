// A head's numbers from what the page holds of it.

import { weightsOf } from "../../attention/values.js";
import { numbersOfVectors } from "../../attention/vectors.js";
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
  if (!record.scores) {
    const vectors = (stored) => {
      const size = stored.shape[1] * stored.shape[2];
      return flatOf(stored).subarray(head * size, (head + 1) * size);
    };
    const [queries, keys] = [vectors(record.queries), vectors(record.keys)];
    const found = numbersOfVectors(queries, keys, allowed, kind.query_labels.length);
    return record.weights ? Object.assign(found, { weights: part(record.weights) }) : found;
  }
  const scores = part(record.scores);
  const weights = record.weights ? part(record.weights) : weightsOf(scores, allowed, nKeys);
  return { scores, weights, allowed };
};
