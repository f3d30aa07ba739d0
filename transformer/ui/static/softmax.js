// Masked softmax, as the network has it.

/** @typedef {Float32Array | Float64Array | Uint8Array | number[]} Numbers */

// softmax over the allowed keys of a row; a row that may read nothing is uniform, as in the network
/** @type {<T extends Numbers>(scores: Numbers, allowed: Numbers, weights: T, start: number, count: number) => T} */
export const softmaxRow = (scores, allowed, weights, start, count) => {
  let highest = -Infinity;
  for (let at = start; at < start + count; at += 1) {
    if (allowed[at] && scores[at] > highest) highest = scores[at];
  }
  if (highest === -Infinity) {
    weights.fill(1 / count, start, start + count);
    return weights;
  }
  let sum = 0;
  for (let at = start; at < start + count; at += 1) {
    weights[at] = allowed[at] ? Math.exp(scores[at] - highest) : 0;
    sum += weights[at];
  }
  for (let at = start; at < start + count; at += 1) weights[at] /= sum;
  return weights;
};
