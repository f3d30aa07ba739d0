// Choose the next token: the likeliest, or drawn after a penalty, temperature and filters, with the random
// numbers that PyTorch's generator gives for the same seed. In Python: inference/generation.py.

/** @import { Request } from "./types.d.ts" */

const [N, M] = [624, 397]; // of MT19937

/**
 * The 32-bit numbers of torch.Generator().manual_seed(seed).
 * @param {number} seed
 */
export const randomBits = (seed) => {
  const state = new Uint32Array(N);
  state[0] = seed;
  for (let i = 1; i < N; i += 1)
    state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  let at = N;
  const renew = () => {
    for (let i = 0; i < N; i += 1) {
      const y = (state[i] & 0x80000000) | (state[(i + 1) % N] & 0x7fffffff);
      state[i] = state[(i + M) % N] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
    at = 0;
  };
  return () => {
    if (at === N) renew();
    let y = state[at];
    at += 1;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  };
};

/**
 * torch.randperm(n) with these numbers.
 * @param {number} n
 * @param {() => number} next see randomBits
 */
export const randomOrder = (n, next) => {
  const order = Int32Array.from({ length: n }, (_, at) => at);
  for (let at = 0; at < n - 1; at += 1) {
    const other = at + (next() % (n - at));
    [order[at], order[other]] = [order[other], order[at]];
  }
  return order;
};

/**
 * () => torch.rand((), dtype=torch.float64): from 0 to below 1, of the low 53 bits of two words.
 * @param {number} seed
 */
export const randomOf = (seed) => {
  const next = randomBits(seed);
  return () => {
    const high = next() & 0x1fffff;
    return (high * 2 ** 32 + next()) / 2 ** 53;
  };
};

/** @param {Float32Array} logits */
export const softmax = (logits) => {
  let most = -Infinity;
  for (let id = 0; id < logits.length; id += 1) if (logits[id] > most) most = logits[id];
  const probabilities = new Float32Array(logits.length);
  let sum = 0;
  for (let id = 0; id < logits.length; id += 1)
    sum += probabilities[id] = Math.exp(logits[id] - most);
  for (let id = 0; id < logits.length; id += 1) probabilities[id] /= sum;
  return probabilities;
};

/**
 * The places of the `count` largest numbers, the largest first, of equal ones the first.
 * @param {ArrayLike<number>} values
 * @param {number} count
 */
export const largest = (values, count) => {
  /** @type {number[]} */
  const places = [];
  for (let at = 0; at < values.length; at += 1) {
    if (places.length === count && !(values[at] > values[places[count - 1]])) continue;
    let place = places.length;
    while (place > 0 && values[at] > values[places[place - 1]]) place -= 1;
    places.splice(place, 0, at);
    if (places.length > count) places.pop();
  }
  return places;
};

/** @param {ArrayLike<number>} logits @param {number | null} never padding's id */
export const likeliest = (logits, never = null) => {
  const [first, second] = largest(logits, 2);
  return first === never ? second : first;
};

/**
 * Logits where those of `ids` are divided by a penalty, or multiplied if negative (Keskar et al. 2019).
 * @param {Float32Array} logits
 * @param {number[]} ids
 * @param {number} penalty
 */
export const penalised = (logits, ids, penalty) => {
  const less = logits.slice();
  for (const id of new Set(ids))
    less[id] = logits[id] < 0 ? logits[id] * penalty : logits[id] / penalty;
  return less;
};

/** Whether a request samples; else the likeliest token is taken. @param {Partial<Request>} request */
export const samples = ({
  temperature = null,
  top_k: topK = null,
  top_p: topP = null,
  min_p: minP = null,
}) => temperature !== 0 && [temperature, topK, topP, minP].some((option) => option !== null);

/**
 * The probabilities (V,) that a token is drawn from: after temperature, top-k, top-p, min-p; 0 = cut.
 * @param {Float32Array} logits
 * @param {Partial<Request>} request
 * @param {number | null} never padding's id
 */
export const filtered = (logits, request, never = null) => {
  const { temperature, top_k: topK = null, top_p: topP = null, min_p: minP = null } = request;
  const by = Math.fround(temperature ?? 1);
  const left = new Float32Array(logits.length);
  for (let id = 0; id < left.length; id += 1) left[id] = id === never ? -Infinity : logits[id] / by;
  if (topK !== null) {
    const least = left[largest(left, Math.min(topK, left.length)).slice(-1)[0]];
    for (let id = 0; id < left.length; id += 1) if (left[id] < least) left[id] = -Infinity;
  }
  if (topP !== null && topP < 1) keepNucleus(left, topP);
  if (minP !== null) {
    const before = softmax(left);
    const floor = Math.fround(minP * before.reduce((a, b) => Math.max(a, b)));
    before.forEach((p, id) => p < floor && (left[id] = -Infinity));
  }
  return softmax(left);
};

// The smallest set of likeliest tokens whose probabilities reach p stays; at least one.
/** @type {(left: Float32Array, p: number) => void} */
const keepNucleus = (left, p) => {
  const before = softmax(left);
  let sum = 0;
  [...before.keys()]
    .sort((a, b) => before[b] - before[a])
    .forEach((id, rank) => {
      if (rank && sum >= p) left[id] = -Infinity;
      sum += before[id];
    });
};

/**
 * Invert the cumulative distribution.
 * @param {Float32Array} probabilities
 * @param {() => number} random
 */
export const draw = (probabilities, random) => {
  const wanted = random() * probabilities.reduce((a, b) => a + b, 0);
  let [sum, last] = [0, 0];
  for (let id = 0; id < probabilities.length; id += 1) {
    if (probabilities[id] > 0) last = id;
    sum += probabilities[id];
    if (sum > wanted) return id;
  }
  return last;
};
