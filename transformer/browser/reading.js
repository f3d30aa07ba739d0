// The reading of a text: embeddings, then the layers, keeping what each computes.

import { say } from "../web/messages.js";
import { Activations } from "./activations.js";
import { partsOf, rangeOf, readValues } from "./attention.js";
import { Changes } from "./interventions.js";
import { feedForward } from "./feed_forward.js";
import { MOST_AT_ONCE } from "./network.js";
import { finished } from "./pauses.js";

/** @import { Network } from "./network.js" */
/** @import { Attention } from "./attention.js" */
/** @import { TextOptions, Stack, StackName, Kind } from "./types.d.ts" */
/** @import { Linear, Norm, Placement, SiteName, AttentionPart } from "./types.d.ts" */

export class Reading {
  /** @param {Network} network @param {TextOptions} [options] */
  constructor(network, options = {}) {
    this.network = network;
    this.options = options;
    this.interventions = options.interventions ?? [];
    this.changes = new Changes(network, this.interventions, options.nText);
    /** @type {Partial<Record<StackName, Activations>>} */
    this.stacks = {};
    /** @type {{k: Float32Array, v: Float32Array}[]} keys and values of each cross-attention */
    this.memory = [];
    /** @type {Float32Array | null} after the last token; an encoder has none */
    this.logits = null;
    for (const stack of Object.values(network.stacks))
      this.stacks[stack.name] = new Activations(network, stack);
    if (network.config.family === "encoder-decoder" && options.source) {
      this._read("encoder", options.source, 0);
      this._remember();
    }
  }

  get last() {
    return /** @type {Activations} */ (this.stacks[this.network.last.name]);
  }

  get ids() {
    return this.last.ids;
  }

  get source() {
    return this.network.config.family === "encoder-decoder" ? this._of("encoder").ids : [];
  }

  /** @param {StackName} stack @returns {Activations} */
  _of(stack) {
    return /** @type {Activations} */ (this.stacks[stack]);
  }

  /** @param {SiteName} site */
  _nQueries(site) {
    return this._of(partsOf(site).stack).ids.length;
  }

  /** @param {Stack} stack */
  _finalNorm(stack) {
    return this.changes.has("no-final-norm") ? null : stack.norm;
  }

  /** An attention of this text. @param {SiteName} site @returns {Attention} */
  attention(site) {
    const { stack, layer, kind } = partsOf(site);
    const activations = this._of(stack);
    return this._attention(activations, layer, kind, activations.ids.length);
  }

  /** @type {(activations: Activations, layer: number, kind: Kind, n: number) => Attention} */
  _attention(activations, layer, kind, n) {
    const { network, changes, options } = this;
    const { name, layers } = activations.stack;
    const { n_heads: nHeads, score_cap: cap } = network.config;
    const crosses = kind === "cross";
    const rows = activations.layers[layer];
    const { k, v } = crosses ? this.memory[layer] : rows;
    const nKeys = crosses ? this.source.length : n;
    const nText = options.nText?.[crosses ? "encoder" : name] ?? nKeys;
    const causal = name === "decoder" && !crosses;
    const window = crosses ? Infinity : layers[layer].window;
    const attention = {
      q: crosses ? rows.crossQ : rows.q,
      ...{ k, v, size: network.headSize, nHeads, share: nHeads / network.keyHeads },
      ...{ scale: changes.scoreScale, cap, causal, window, both: window !== Infinity, nKeys },
      allowed: /** @type {Uint8Array | null} */ (null),
      oneKey: changes.has("one-key-head"),
      patterns: changes.breaks.filter(
        (what) => what === "hard-attention" || what === "uniform-attention",
      ),
    };
    if (nText < nKeys || changes.editsMask(name, kind)) {
      const ranges = Array.from({ length: n }, (_, query) => rangeOf(attention, query));
      attention.allowed = changes.mask(name, layer, kind, n, nKeys,
        (query, key) => key >= ranges[query][0] && key < ranges[query][1],
        (key) => key < nText,
      ); // prettier-ignore
    }
    return attention;
  }

  /** Read a stack's tokens behind the first `from`, which stay. @param {StackName} name @param {number[]} ids @param {number} from */
  _read(name, ids, from) {
    const activations = this._of(name);
    const total = activations.ids.length + ids.length;
    const { maxLen } = activations.stack;
    if (total > maxLen)
      throw new Error(
        say("this model takes at most {max_len} tokens; got {n_tokens}", {
          max_len: maxLen,
          n_tokens: total,
        }),
      );
    activations.makeRoom(total);
    activations.ids = [...activations.ids, ...ids];
    this._embed(activations, from, total - from);
    finished(this._readLayers(activations, from, total - from, 0));
  }

  /** Compute all tokens again from a layer on. @type {(activations: Activations, layer: number) => Generator<void, void>} */
  *_readFrom(activations, layer) {
    const n = activations.ids.length;
    if (layer === 0) this._embed(activations, 0, n); // positions may be other ones
    yield* this._readLayers(activations, 0, n, layer);
  }

  /** @type {(activations: Activations, first: number, n: number) => void} */
  _embed({ stack, ids, stream: [x] }, first, n) {
    const { network, changes } = this;
    const width = network.config.d_model;
    for (let t = first; t < first + n; t += 1) {
      const vector = network.embedded(stack, ids[t]);
      const position = this.positionOf(stack.name, t);
      const added = changes.has("no-positions") ? null : stack.positions?.(position);
      if (added) for (let i = 0; i < width; i += 1) vector[i] += added[i];
      network.normalise(stack.embeddingNorm, vector, 1, x.subarray(t * width, (t + 1) * width));
    }
  }

  /** The position that a token is read at. @param {StackName} stack @param {number} place */
  positionOf(stack, place) {
    const position = this.options.positions?.[stack]?.[place] ?? place;
    return this.changes.order ? this.changes.order[stack][position] : position;
  }

  // The encoder's output, as keys and values of each cross-attention.
  _remember() {
    const { network } = this;
    const { ids, stream, stack } = this._of("encoder");
    const width = network.config.d_model;
    const memory = new Float32Array(ids.length * width);
    network.normalise(this._finalNorm(stack), stream[stack.layers.length], ids.length, memory);
    const decoder = /** @type {Stack} */ (network.stacks.decoder);
    this.memory = decoder.layers.map(({ cross }) => {
      const { key, value, keyNorm } = /** @type {AttentionPart} */ (cross);
      const k = this.mapped(key, memory, ids.length);
      this._normHeads(keyNorm, k);
      return { k, v: this.mapped(value, memory, ids.length) };
    });
  }

  /** W x + b of n vectors, temporary. @type {(linear: Linear, x: Float32Array, n: number) => Float32Array} */
  _mapped(linear, x, n) {
    const { kernel, work } = this.network;
    const { nIn, nOut } = linear;
    const products = this.network.temporary(n * nOut);
    for (let from = 0; from < n; from += MOST_AT_ONCE) {
      const some = Math.min(MOST_AT_ONCE, n - from);
      work.x.set(x.subarray(from * nIn, (from + some) * nIn));
      kernel.multiply(linear, work.x, some, work.y);
      products.set(work.y.subarray(0, some * nOut), from * nOut);
    }
    return products;
  }

  /** W x + b of n vectors, in new memory; clears temporary numbers. @type {(linear: Linear, x: Float32Array, n: number) => Float32Array} */
  mapped(linear, x, n) {
    this.network.clear();
    return this._mapped(linear, x, n).slice();
  }

  /** A norm of a layer, of n vectors, temporary. @type {(norm: Norm | null, x: Float32Array, n: number) => Float32Array} */
  _normed(norm, x, n) {
    if (!norm) return x;
    const normed = this.network.temporary(x.length);
    const gain = this.changes.has("unscaled-norm") ? norm.gain.map(() => 1) : norm.gain;
    this.network.normalise({ ...norm, gain }, x, n, normed);
    return normed;
  }

  /** Heads (n, heads D), each normalised in place. @type {(norm: Norm | null, heads: Float32Array) => void} */
  _normHeads(norm, heads) {
    const size = this.network.headSize;
    if (norm) this.network.normalise(norm, heads, heads.length / size, heads, size);
  }

  // stream (+ a sub-layer's output, normed and scaled), normed; into `to`, which may be the stream.
  /** @type {(norms: Placement, stream: Float32Array, output: Float32Array, n: number, to: Float32Array, isSkip?: boolean) => void} */
  _add(norms, stream, output, n, to, isSkip = true) {
    const scale = this.network.config.residual_scale;
    const added = this._normed(norms.output, output, n);
    const keeps = isSkip && this.changes.has("no-residual") ? 0 : 1;
    for (let i = 0; i < added.length; i += 1) to[i] = keeps * stream[i] + scale * added[i];
    if (norms.sum) to.set(this._normed(norms.sum, to, n));
  }

  // n tokens behind `first`, through the layers from `from` on; yields after each.
  /** @type {(activations: Activations, first: number, n: number, from: number) => Generator<void, void>} */
  *_readLayers(activations, first, n, from) {
    const { network, changes } = this;
    const { stack, stream, layers, widths } = activations;
    const { d_model: width, parallel } = network.config;
    /** @type {(rows: Float32Array, size: number) => Float32Array} */
    const here = (rows, size) => rows.subarray(first * size, (first + n) * size);
    for (let at = from; at < layers.length; at += 1) {
      network.clear();
      const layer = stack.layers[at];
      const [x, y] = [stream[at], stream[at + 1]].map((rows) => here(rows, width));
      this._attend(
        activations,
        at,
        layer.self,
        this._normed(layer.selfNorms.input, x, n),
        first,
        n,
      );
      const heads = this._mapped(layer.self.output, here(layers[at].z, widths.z), n);
      changes.apply("attn_out", stack.name, at, "self", heads, first, n);
      this._add(layer.selfNorms, x, heads, n, y);
      if (layer.cross && layer.crossNorms) {
        const read = this._normed(layer.crossNorms.input, parallel ? x : y, n);
        const across = this._attendAcross(activations, at, layer.cross, read, first, n);
        this._add(layer.crossNorms, y, across, n, y, !parallel);
      }
      const mlp = feedForward(
        network,
        layer,
        this._normed(layer.forwardNorms.input, parallel ? x : y, n),
        n,
      );
      changes.apply("mlp_out", stack.name, at, "", mlp, first, n);
      here(layers[at].mlp, width).set(mlp);
      this._add(layer.forwardNorms, y, mlp, n, y, !parallel);
      changes.apply("resid_post", stack.name, at, "", y, first, n);
      yield;
    }
  }

  /** Self-attention: its queries, keys, values and outputs of heads. @type {(activations: Activations, at: number, part: AttentionPart, x: Float32Array, first: number, n: number) => void} */
  _attend(activations, at, part, x, first, n) {
    const { network, changes } = this;
    const { stack, layers, widths } = activations;
    const { q, k, v, z } = layers[at];
    const rotates = stack.layers[at].rotates && !changes.has("no-rotation");
    /** @type {(linear: Linear, norm: Norm | null, rows: Float32Array, width: number, isRotated: boolean) => void} */
    const store = (linear, norm, rows, width, isRotated) => {
      const heads = this._mapped(linear, x, n);
      this._normHeads(norm, heads);
      for (let t = 0; isRotated && t < n; t += 1)
        network.rotate(
          heads,
          t * width,
          width / network.headSize,
          this.positionOf(stack.name, first + t),
        );
      rows.set(heads, first * width);
    };
    store(part.query, part.queryNorm, q, widths.q, rotates);
    store(part.key, part.keyNorm, k, widths.k, rotates);
    store(part.value, null, v, widths.v, false);
    const here = z.subarray(first * widths.z, (first + n) * widths.z);
    readValues(this._attention(activations, at, "self", first + n), first, n, here);
    changes.apply("z", stack.name, at, "self", here, first, n);
  }

  /** Cross-attention: what it adds, (n, C). @type {(activations: Activations, at: number, part: AttentionPart, x: Float32Array, first: number, n: number) => Float32Array} */
  _attendAcross(activations, at, part, x, first, n) {
    const { stack, layers, widths } = activations;
    const q = this._mapped(part.query, x, n);
    this._normHeads(part.queryNorm, q);
    layers[at].crossQ.set(q, first * widths.crossQ);
    const z = layers[at].crossZ.subarray(first * widths.crossZ, (first + n) * widths.crossZ);
    readValues(this._attention(activations, at, "cross", first + n), first, n, z);
    this.changes.apply("z", stack.name, at, "cross", z, first, n);
    const output = this._mapped(part.output, z, n);
    this.changes.apply("attn_out", stack.name, at, "cross", output, first, n);
    return output;
  }
}
