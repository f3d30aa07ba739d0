// One stack's activations of a text, in rows of tokens.

/** @import { Network } from "./network.js" */
/** @import { Stack } from "./types.d.ts" */
/**
 * @typedef {"q" | "k" | "v" | "z" | "crossQ" | "crossZ" | "mlp"} RowName
 */

const ROWS = /** @type {RowName[]} */ (["q", "k", "v", "z", "crossQ", "crossZ", "mlp"]);

export class Activations {
  /** @param {Network} network @param {Stack} stack */
  constructor(network, stack) {
    const { d_model: width, n_heads: nHeads } = network.config;
    const [heads, keys] = [nHeads, network.keyHeads].map((n) => n * network.headSize);
    const cross = stack.layers[0].cross ? heads : 0;
    this.network = network;
    this.stack = stack;
    this.room = 0;
    /** @type {number[]} */
    this.ids = [];
    /** @type {Record<RowName, number>} numbers a token */
    this.widths = {
      q: heads,
      k: keys,
      v: keys,
      z: heads,
      crossQ: cross,
      crossZ: cross,
      mlp: width,
    };
    const empty = () => new Float32Array();
    /** @type {Float32Array[]} (L + 1) of (T, C) */
    this.stream = Array.from({ length: stack.layers.length + 1 }, empty);
    /** @type {Record<RowName, Float32Array>[]} of each layer */
    this.layers = stack.layers.map(
      () =>
        /** @type {Record<RowName, Float32Array>} */ (
          Object.fromEntries(ROWS.map((name) => [name, empty()]))
        ),
    );
  }

  /** @param {number} count of tokens */
  makeRoom(count) {
    if (count <= this.room) return;
    this.room = Math.min(Math.max(count, 2 * this.room, 32), Math.max(count, this.stack.maxLen));
    /** @type {(rows: Float32Array, width: number) => Float32Array} */
    const larger = (rows, width) => {
      const more = new Float32Array(this.room * width);
      more.set(rows);
      return more;
    };
    this.stream = this.stream.map((rows) => larger(rows, this.network.config.d_model));
    for (const layer of this.layers)
      for (const name of ROWS) layer[name] = larger(layer[name], this.widths[name]);
  }

  /** Copy the first `n` tokens below a layer, and the stream that enters it. @param {Activations} other @param {number} n @param {number} layer */
  copy(other, n, layer) {
    this.makeRoom(n);
    this.ids = other.ids.slice(0, n);
    const width = this.network.config.d_model;
    for (let at = 0; at <= layer; at += 1)
      this.stream[at].set(other.stream[at].subarray(0, n * width));
    for (let at = 0; at < layer; at += 1)
      for (const name of ROWS)
        this.layers[at][name].set(other.layers[at][name].subarray(0, n * this.widths[name]));
  }
}
