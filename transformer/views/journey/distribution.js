// From logits to the sampling distribution: temperature, top-k and top-p, as in
// transformer/inference/generation.py.

import { say, sayN, wholeText } from "../../web/messages.js";
import { controls, page } from "../../web/store.js";

/** @typedef {ArrayLike<number>} Logits of every token of the vocabulary */
/** @typedef {{method: string, temperature: number, top_k: number, top_p: number}} SamplingSettings top_k 0 and top_p 1: off */

// highest: of the logits that are kept.
/** @type {(logits: Logits, temperature: number, highest: number, isKept: (logit: number, id: number) => boolean) => Float64Array} */
const softmax = (logits, temperature, highest, isKept) => {
  const shares = new Float64Array(logits.length);
  let sum = 0;
  for (let id = 0; id < logits.length; id += 1) {
    if (isKept(logits[id], id)) sum += shares[id] = Math.exp((logits[id] - highest) / temperature);
  }
  for (let id = 0; id < logits.length; id += 1) shares[id] /= sum;
  return shares;
};
/** @type {(logits: Logits) => Float64Array} */
export const probabilitiesOf = (logits) => {
  let highest = -Infinity;
  for (let id = 0; id < logits.length; id += 1) if (logits[id] > highest) highest = logits[id];
  return softmax(logits, 1, highest, () => true);
};

/** @type {WeakMap<object, Float64Array>} */
const ordered = new WeakMap(); // a slider requests the same logits repeatedly
/** @type {(logits: Logits, never: number | null) => Float64Array} */
const inOrder = (logits, never) => {
  if (!ordered.has(logits)) {
    const allowed = Float64Array.from(logits).filter((_, id) => id !== never);
    ordered.set(logits, allowed.sort().reverse());
  }
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
/** @type {(settings: SamplingSettings) => boolean} */
export const draws = ({ method, temperature }) => method === "sample" && temperature > 0;

/**
 * {probabilities, count}: the sampling probability of each token, and how many tokens can be sampled: those whose
 * probability is not 0 in the server's float32. never: the padding's id, which is not sampled, or null. Without
 * sampling, the network's probabilities.
 * @type {(logits: Logits, settings: SamplingSettings, never: number | null) => {probabilities: Float64Array, count: number}}
 */
export const distribution = (logits, settings, never) => {
  const { temperature, top_k: topK, top_p: topP } = settings;
  if (!draws(settings)) return { probabilities: probabilitiesOf(logits), count: 1 };
  const sorted = inOrder(logits, never);
  const all = sorted.length;
  const lowest = topK > 0 ? sorted[Math.min(topK, all) - 1] : -Infinity;
  const left = topK > 0 ? sorted.findLastIndex((one) => one >= lowest) + 1 : all; // ties are kept
  const kept = topP < 1 ? nucleus(sorted, left, temperature, topP) : left;
  const cut = sorted[kept - 1];
  let ties = kept - sorted.indexOf(cut); // of those as likely as the last, the first ids are kept
  const isKept = (/** @type {number} */ one, /** @type {number} */ id) =>
    id !== never && (one > cut || (one === cut && ties-- > 0));
  const probabilities = softmax(logits, temperature, sorted[0], isKept);
  let count = 0;
  for (const one of probabilities) if (Math.fround(one) > 0) count += 1;
  return { probabilities, count };
};

// ---- with the settings of the page ----

// What the settings say of a token of the shown run: an altered network, and a branch, go on greedily where they
// search; see `settings_of` in server/fields.py.
export const settingsNow = () => {
  const { interventions: altered = [], forced_tokens: forced = [] } = page.run ?? {};
  const isSearched = altered.length + forced.length === 0;
  const method = controls.method === "beam" && !isSearched ? "greedy" : controls.method;
  const [temperature, topK, topP] = ["temperature", "top_k", "top_p"].map((name) =>
    Number(controls[name]),
  );
  return { method, temperature, top_k: topK, top_p: topP };
};
// How many tokens can be drawn with these settings, in words.
/** @type {(settings: SamplingSettings, count: number, answer: { logits: ArrayLike<number> }) => string | null} */
export const countInWords = (settings, count, { logits }) => {
  if (settings.method === "beam")
    return say("Beam search weighs whole texts, not this word alone.");
  if (!draws(settings)) return null;
  return sayN(
    "Only {n} of {all} tokens could be drawn.",
    "{n} of {all} tokens could be drawn.",
    count,
    { all: wholeText(logits.length) },
  );
};
