// One attention of a text: what its heads weigh and read. Queries, keys and values are rows of all heads.

/** @import { Kind, SiteName, StackName } from "./types.d.ts" */

/** @param {SiteName} site @returns {{stack: StackName, layer: number, kind: Kind}} */
export const partsOf = (site) => {
  const [stack, layer, kind] = site.split(".");
  return {
    stack: /** @type {StackName} */ (stack),
    layer: Number(layer),
    kind: /** @type {Kind} */ (kind),
  };
};

/**
 * q: (Tq, H D); k, v: (Tk, G D); size: D; share: H / G heads read the same keys. scale: of q·k. cap: of
 * scores, or null. causal: whether queries read no later keys; window: how many they read back.
 * allowed: (Tq, Tk) in place of causal and window, or null. patterns: "hard-attention" and
 * "uniform-attention", in the order in which they change the weights.
 * @typedef {{
 *   q: Float32Array, k: Float32Array, v: Float32Array, size: number, nHeads: number, share: number,
 *   scale: number, cap: number | null, causal: boolean, window: number, both: boolean, nKeys: number,
 *   allowed: Uint8Array | null, oneKey: boolean, patterns: string[],
 * }} Attention
 */

/** The keys that a query may read: [from, to). @param {Attention} attention @param {number} query */
export const rangeOf = ({ causal, window, both, nKeys, allowed }, query) => {
  if (allowed || !(causal || both)) return [0, nKeys];
  const to = causal ? query + 1 : nKeys;
  return [Math.max(0, query - window + 1), Math.min(to, query + (causal ? 1 : window))];
};

/**
 * A head's weights at a query: of keys `from` to `to`, into the same places.
 * @param {Attention} attention
 * @param {number} head
 * @param {number} query
 * @param {number} from
 * @param {number} to
 * @param {Float32Array | Float64Array} into
 */
export const weigh = (attention, head, query, from, to, into) => {
  const { q, k, size, nHeads, share, scale, cap, nKeys, allowed, oneKey, patterns } = attention;
  const apart = (nHeads / share) * size;
  const start = (query * nHeads + head) * size;
  const keyHead = oneKey ? 0 : Math.floor(head / share);
  let most = -Infinity;
  for (let key = from, at = from * apart + keyHead * size; key < to; key += 1, at += apart) {
    let score = 0;
    for (let i = 0; i < size; i += 1) score += q[start + i] * k[at + i];
    score *= scale;
    if (cap !== null) score = cap * Math.tanh(score / cap);
    into[key] = score;
    if (score > most) most = score;
  }
  if (allowed) most = hide(allowed.subarray(query * nKeys, (query + 1) * nKeys), into);
  let sum = 0;
  for (let key = from; key < to; key += 1) sum += into[key] = Math.exp(into[key] - most);
  for (let key = from; key < to; key += 1) into[key] /= sum;
  for (const pattern of patterns) changePattern(pattern, attention, query, from, to, into);
};

// Scores (Tk,) of which those not allowed become -Infinity; nothing allowed: all are equal. The largest.
/** @type {(allowed: Uint8Array, scores: Float32Array | Float64Array) => number} */
const hide = (allowed, scores) => {
  const nothing = !allowed.includes(1);
  let most = -Infinity;
  for (let key = 0; key < allowed.length; key += 1) {
    if (nothing) scores[key] = 0;
    else if (!allowed[key]) scores[key] = -Infinity;
    if (scores[key] > most) most = scores[key];
  }
  return most;
};

/** @type {(pattern: string, attention: Attention, query: number, from: number, to: number, weights: Float32Array | Float64Array) => void} */
const changePattern = (pattern, { allowed, nKeys }, query, from, to, weights) => {
  if (pattern === "hard-attention") {
    let best = from;
    for (let key = from; key < to; key += 1) if (weights[key] > weights[best]) best = key;
    weights.fill(0, from, to)[best] = 1;
    return;
  }
  const row = allowed?.subarray(query * nKeys, (query + 1) * nKeys);
  const counts = (/** @type {number} */ key) => !row || row[key] || !row.includes(1);
  let count = 0;
  for (let key = from; key < to; key += 1) count += counts(key) ? 1 : 0;
  for (let key = from; key < to; key += 1) weights[key] = counts(key) ? 1 / count : 0;
};

/**
 * The outputs (n, H D) of all heads at queries from `first` on, into `z`.
 * @param {Attention} attention
 * @param {number} first
 * @param {number} n
 * @param {Float32Array} z
 */
export const readValues = (attention, first, n, z) => {
  const { v, size, nHeads, share, nKeys } = attention;
  const apart = (nHeads / share) * size;
  const weights = new Float64Array(nKeys);
  const sums = new Float64Array(size);
  for (let t = 0; t < n; t += 1) {
    const [from, to] = rangeOf(attention, first + t);
    for (let head = 0; head < nHeads; head += 1) {
      weigh(attention, head, first + t, from, to, weights);
      sums.fill(0);
      const keyHead = Math.floor(head / share) * size;
      for (let key = from, at = from * apart + keyHead; key < to; key += 1, at += apart) {
        const weight = weights[key];
        for (let i = 0; i < size; i += 1) sums[i] += weight * v[at + i];
      }
      z.set(sums, (t * nHeads + head) * size);
    }
  }
};
