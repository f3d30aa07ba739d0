// From logits to the sampling distribution: temperature, top-k and top-p, as in
// transformer/inference/generation.py.

/** @typedef {ArrayLike<number>} Logits of every token of the vocabulary */
/** @typedef {{method: string, temperature: number, top_k: number, top_p: number}} Settings top_k 0 and top_p 1: off */

/** @type {(logits: Logits, temperature: number, isKept: (logit: number, id: number) => boolean) => Float64Array} */
const softmax = (logits, temperature, isKept) => {
  const found = new Float64Array(logits.length);
  let highest = -Infinity;
  for (let id = 0; id < logits.length; id += 1) if (logits[id] > highest) highest = logits[id];
  let sum = 0;
  for (let id = 0; id < logits.length; id += 1) {
    if (isKept(logits[id], id)) sum += found[id] = Math.exp((logits[id] - highest) / temperature);
  }
  for (let id = 0; id < logits.length; id += 1) found[id] /= sum;
  return found;
};
/** @type {(logits: Logits) => Float64Array} */
export const probabilitiesOf = (logits) => softmax(logits, 1, () => true);

/** @type {WeakMap<object, Float64Array>} */
const ordered = new WeakMap(); // a slider requests the same logits repeatedly
/** @type {(logits: Logits) => Float64Array} */
const inOrder = (logits) => {
  if (!ordered.has(logits)) ordered.set(logits, Float64Array.from(logits).sort().reverse());
  return /** @type {Float64Array} */ (ordered.get(logits));
};

// How many of the first `count` likeliest reach top_p together; at least one.
/** @type {(sorted: Float64Array, count: number, temperature: number, topP: number) => number} */
const nucleus = (sorted, count, temperature, topP) => {
  const weights = sorted.subarray(0, count).map((one) => Math.exp((one - sorted[0]) / temperature));
  const whole = weights.reduce((sum, one) => sum + one, 0);
  let [reached, kept] = [0, 0];
  while (kept < count && (kept === 0 || reached < topP)) {
    reached += weights[kept] / whole;
    kept += 1;
  }
  return kept;
};

// Whether these settings sample; else the likeliest token is taken.
/** @type {(settings: Settings) => boolean} */
export const draws = ({ method, temperature }) => method === "sample" && temperature > 0;

/**
 * {probabilities, count}: the sampling probability of each token, and how many tokens can be sampled. Without
 * sampling, the network's probabilities.
 * @type {(logits: Logits, settings: Settings) => {probabilities: Float64Array, count: number}}
 */
export const distribution = (logits, settings) => {
  const { temperature, top_k: topK, top_p: topP } = settings;
  if (!draws(settings)) return { probabilities: probabilitiesOf(logits), count: 1 };
  const sorted = inOrder(logits);
  const all = sorted.length;
  const lowest = topK > 0 ? sorted[Math.min(topK, all) - 1] : -Infinity;
  const left = topK > 0 ? sorted.findLastIndex((one) => one >= lowest) + 1 : all; // ties are kept
  const count = topP < 1 ? nucleus(sorted, left, temperature, topP) : left;
  const cut = sorted[count - 1];
  let ties = count - sorted.indexOf(cut); // of those as likely as the last, the first ids are kept
  const isKept = (/** @type {number} */ one) => one > cut || (one === cut && ties-- > 0);
  return { probabilities: softmax(logits, temperature, isKept), count };
};
