// Functions of single vectors: activations, norms, fixed positions, as model/primitives.py and positions.py.

/** @type {Record<string, (x: number) => number>} */
export const ACTIVATIONS = {
  relu: (x) => (x > 0 ? x : 0),
  // x (1 + erf(x / sqrt 2)) / 2, as in inference/engines/functions.h: 7.1.26 of Abramowitz & Stegun.
  gelu: (x) => {
    const z = Math.abs(x) * Math.SQRT1_2;
    const t = 1 / (1 + 0.3275911 * z);
    const p =
      ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) *
      t;
    const rest = p * Math.exp(-z * z);
    return 0.5 * x * (x < 0 ? rest : 2 - rest);
  },
  "gelu-tanh": (x) =>
    0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x))),
  "quick-gelu": (x) => x / (1 + Math.exp(-1.702 * x)),
  silu: (x) => x / (1 + Math.exp(-x)),
};

/**
 * Mean and 1 / standard deviation of `count` numbers from `start`; an RMS norm's mean is 0.
 * @param {Float32Array} x
 * @param {number} start
 * @param {number} count
 * @param {number} eps
 * @param {boolean} isRms
 */
export const spreadOf = (x, start, count, eps, isRms) => {
  let mean = 0;
  if (!isRms) for (let i = 0; i < count; i += 1) mean += x[start + i];
  mean /= count;
  let squares = 0;
  for (let i = 0; i < count; i += 1) squares += (x[start + i] - mean) ** 2;
  return { mean, by: 1 / Math.sqrt(squares / count + eps) };
};

/** PE of Vaswani et al. 2017, section 3.5. @param {number} position @param {number} width */
export const sinusoidal = (position, width) => {
  const waves = new Float32Array(width);
  for (let i = 0; i < width; i += 2) {
    const angle = position * Math.exp((-Math.log(10_000) * i) / width);
    waves[i] = Math.sin(angle);
    waves[i + 1] = Math.cos(angle);
  }
  return waves;
};
