// A feed-forward, and its neurons, as model/blocks.py.

import { MOST_AT_ONCE } from "./network.js";

/** @import { Network } from "./network.js" */
/** @import { Text } from "./text.js" */
/** @import { AttentionPart, Kind, Layer } from "./types.d.ts" */

// The neurons of n tokens in work.hidden, some at a time. take: called for each part, with its first token and how many.
/** @type {(network: Network, layer: Layer, x: Float32Array, n: number, take: (from: number, some: number) => void) => void} */
const expand = (network, layer, x, n, take) => {
  const { kernel, work, config } = network;
  const { d_model: width, d_ff: wide } = config;
  for (let from = 0; from < n; from += MOST_AT_ONCE) {
    const some = Math.min(MOST_AT_ONCE, n - from);
    work.x.set(x.subarray(from * width, (from + some) * width));
    kernel.multiply(layer.expand, work.x, some, work.hidden);
    if (layer.gate) {
      kernel.multiply(layer.gate, work.x, some, work.gate);
      network.activate(work.gate, some * wide);
      for (let i = 0; i < some * wide; i += 1) work.hidden[i] *= work.gate[i];
    } else network.activate(work.hidden, some * wide);
    take(from, some);
  }
};

/** What a feed-forward adds to n vectors, (n, C), temporary. @type {(network: Network, layer: Layer, x: Float32Array, n: number) => Float32Array} */
export const feedForward = (network, layer, x, n) => {
  const { kernel, work, config } = network;
  const width = config.d_model;
  const output = network.temporary(n * width);
  expand(network, layer, x, n, (from, some) => {
    kernel.multiply(layer.contract, work.hidden, some, work.y);
    output.set(work.y.subarray(0, some * width), from * width);
  });
  return output;
};

/**
 * The neurons of a feed-forward of the last stack, after the activation and the gate, of a text's first n tokens:
 * (n, F), computed again from what the text keeps.
 * @param {Text} text
 * @param {number} at the layer
 * @param {number} n
 */
export const neuronsOf = (text, at, n) => {
  const { network, changes } = text;
  const { stack, stream, layers, widths } = text.last;
  const { d_model: width, d_ff: wide, parallel } = network.config;
  const layer = stack.layers[at];
  network.clear();
  const x = stream[at].subarray(0, n * width);
  const y = x.slice();
  /** @type {(kind: Kind, part: AttentionPart, z: Float32Array) => Float32Array} */
  const attended = (kind, part, z) => {
    const output = text._mapped(part.output, z.subarray(0, n * widths.z), n);
    changes.apply("attn_out", stack.name, at, kind, output, 0, n);
    return output;
  };
  if (!parallel) {
    text._add(layer.selfNorms, x, attended("self", layer.self, layers[at].z), n, y);
    if (layer.cross && layer.crossNorms)
      text._add(layer.crossNorms, y, attended("cross", layer.cross, layers[at].crossZ), n, y);
  }
  const rows = new Float32Array(n * wide);
  expand(network, layer, text._normed(layer.forwardNorms.input, y, n), n, (from, some) =>
    rows.set(network.work.hidden.subarray(0, some * wide), from * wide),
  );
  return rows;
};
