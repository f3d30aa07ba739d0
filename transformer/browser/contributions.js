// What each part adds to one logit, as analysis/logit_contribution.py: the last stream is a sum of what
// embeddings, heads, feed-forwards and biases wrote, and with its scale held the final norm is linear.

import { spreadOf } from "./primitives.js";

/** @import { Text } from "./text.js" */
/** @import { Network } from "./network.js" */
/** @import { Contributions, Linear } from "./types.d.ts" */

const EXACT = 1e-3; // tolerated difference from a logit of 1

/** @type {(a: ArrayLike<number>, b: ArrayLike<number>) => number} */
const dot = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return sum;
};

/**
 * The product of a direction (nOut,) with a map's rows: what each input adds along it, (nIn,).
 * @param {Network} network
 * @param {Linear} linear
 * @param {Float64Array} direction
 */
export const along = ({ kernel }, { weight, nIn }, direction) => {
  const sums = new Float64Array(nIn);
  direction.forEach((by, row) => {
    const numbers = kernel.widened(weight, row * nIn, nIn);
    for (let i = 0; i < nIn; i += 1) sums[i] += by * numbers[i];
  });
  return sums;
};

/**
 * The direction (C,) in the stream along which what is written adds to the logit of `target` at a place; row: the same
 * before the final norm. Null where a logit is no sum of what parts add.
 * @param {Text} text
 * @param {number} place
 * @param {number} target
 */
export const directionOf = (text, place, target) => {
  const { network, changes } = text;
  const { config, kernel, head, last: stack } = network;
  const { d_model: width, n_layers: nLayers } = config;
  if (!config.norm.startsWith("pre") || stack.embeddingNorm || config.logit_cap !== null)
    return null;
  const norm = changes.has("no-final-norm") ? null : stack.norm;
  const row = kernel.numbers(head.weight, target * width, width).map((x) => x * config.logit_scale);
  const direction = Float64Array.from(row);
  if (norm) {
    const { by } = spreadOf(
      text.streamAt(nLayers, place),
      0,
      width,
      config.norm_eps,
      network.isRms,
    );
    row.forEach((x, i) => (direction[i] = x * norm.gain[i] * by));
    const mean = network.isRms ? 0 : direction.reduce((sum, x) => sum + x, 0) / width;
    direction.forEach((x, i) => (direction[i] = x - mean)); // the norm takes each part's mean away
  }
  return { norm, row, direction };
};

/**
 * See Text.contributions.
 * @param {Text} text
 * @param {number} place
 * @param {number} target
 * @returns {Contributions | null}
 */
export const contributionsOf = (text, place, target) => {
  const { network, changes } = text;
  const { config, kernel, head, last: stack } = network;
  const { d_model: width, n_heads: nHeads, n_layers: nLayers, residual_scale: scale } = config;
  const line = directionOf(text, place, target);
  if (!line) return null;
  const { norm, row, direction } = line;
  /** @type {Contributions["others"]} */
  const others = { token: dot(direction, network.embedded(stack, text.ids[place])) };
  const added = changes.has("no-positions")
    ? null
    : stack.positions?.(text.positionOf(stack.name, place));
  if (added) others.position = dot(direction, added);
  const crosses = stack.layers[0].cross !== null;
  /** @type {Contributions["heads"]} */
  const heads = { self: new Float32Array(nLayers * nHeads) };
  if (crosses) heads.cross = new Float32Array(nLayers * nHeads);
  const [forward, biases] = [new Float32Array(nLayers), new Float32Array(nLayers)];
  const written = Float64Array.from(direction, (x) => x * scale);
  stack.layers.forEach((layer, at) => {
    for (const kind of /** @type {("self" | "cross")[]} */ (
      crosses ? ["self", "cross"] : ["self"]
    )) {
      const { output } = /** @type {import("./types.d.ts").AttentionPart} */ (layer[kind]);
      const each = along(network, output, written);
      const rows = /** @type {Float32Array} */ (heads[kind]);
      for (let number = 0; number < nHeads; number += 1) {
        const z = text.headOutput(`${stack.name}.${at}.${kind}`, number, place);
        rows[at * nHeads + number] = dot(z, each.subarray(number * z.length));
      }
      if (output.bias) biases[at] += dot(written, kernel.floats(output.bias, width));
    }
    forward[at] = dot(written, text.forwardOutput(at, place));
  });
  if (norm?.shift) others["final norm"] = dot(row, norm.shift);
  if (head.bias)
    others["output bias"] = config.logit_scale * kernel.floats(head.bias, head.nOut)[target];
  const logit = text.logitsAt(place)[target];
  const parts = [heads.self, heads.cross ?? [], forward, biases, Object.values(others)];
  const total = parts.reduce((sum, part) => sum + dot(part, new Array(part.length).fill(1)), 0);
  if (Math.abs(total - logit) > EXACT * (1 + Math.abs(logit))) return null;
  return { logit, heads, forward, biases, others };
};
