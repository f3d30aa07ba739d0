// Attention weights of many heads combined, as by analysis/attention_flow.py.

/** @typedef {Float32Array | Float64Array} Matrix flat */

/** @type {(every: Matrix[], size: number) => Float64Array} */
const meanOf = (every, size) => {
  const mean = new Float64Array(size);
  for (const matrix of every)
    for (let at = 0; at < size; at += 1) mean[at] += matrix[at] / every.length;
  return mean;
};

// The product of two square matrices with n rows.
/** @type {(a: Matrix, b: Matrix, n: number) => Float64Array} */
const product = (a, b, n) => {
  const result = new Float64Array(n * n);
  for (let row = 0; row < n; row += 1)
    for (let at = 0; at < n; at += 1) {
      const share = a[row * n + at];
      if (!share) continue;
      for (let to = 0; to < n; to += 1) result[row * n + to] += share * b[at * n + to];
    }
  return result;
};

// layers: of each layer the weights of the heads that are not ablated. which: "mean", or of all these layers
// multiplied "rollout" or "joint". size: of a head.
/** @type {(layers: Matrix[][], which: string, size: number) => Float32Array} */
export const flowWeights = (layers, which, size) => {
  if (which === "mean") return new Float32Array(meanOf(layers.flat(), size));
  const n = Math.sqrt(size);
  /** @type {Matrix[]} */
  const through = layers.map((heads) => {
    const share = which === "joint" ? 1 : 0.5 * Number(heads.length > 0);
    const mean = meanOf(heads, size).map((weight) => share * weight);
    for (let at = 0; at < n; at += 1) mean[at * (n + 1)] += 1 - share; // the residual connection
    return mean;
  });
  return new Float32Array(through.reduce((below, layer) => product(layer, below, n)));
};

// A bit a value, set where it is above 0; the inverse of unpackBits in web/ask.js.
/** @type {(values: Matrix) => Uint8Array} */
export const packBits = (values) => {
  const bits = new Uint8Array(Math.ceil(values.length / 8));
  values.forEach((value, at) => (bits[at >> 3] |= Number(value > 0) << (7 - (at & 7))));
  return bits;
};
