// A network's weights in the order in which they are used, as transformer/model/ has them, and the
// arithmetic of single vectors: norms, activations, positions, the head.

import { refusal, sizeOf, wholeConfig } from "./config.js";
import { ACTIVATIONS, sinusoidal, spreadOf } from "./primitives.js";

/** @import { ModelConfig, Norm, Placement, Linear } from "./types.d.ts" */
/** @import { AttentionPart, Layer, Stack, StackName } from "./types.d.ts" */
/** @import { Weights } from "./weights.js" */
/** @import { Kernel } from "./kernel.js" */

const LAST_ROWS = 8; // of which logits are computed at a time
export const MOST_AT_ONCE = 64; // tokens whose intermediate numbers are kept at a time

export class Network {
  /**
   * Raises Error, a sentence, for a network that the engine does not read or weights that do not fit.
   * @param {object} values of config.json under "model"
   * @param {Weights} weights all of them
   * @param {Kernel} kernel their own
   */
  static from(values, weights, kernel) {
    const sentence = refusal(values);
    if (sentence) throw new Error(sentence);
    return new Network(wholeConfig(values), weights, kernel);
  }

  /** @param {ModelConfig} config @param {Weights} weights @param {Kernel} kernel */
  constructor(config, weights, kernel) {
    const { d_model: width, n_heads: nHeads, d_ff: wide } = config;
    this.config = config;
    this.kernel = kernel;
    this.weights = weights;
    this.headSize = sizeOf(config);
    this.keyHeads = config.n_key_heads ?? nHeads;
    this.isRms = config.norm_kind !== "layer";
    this.scale = config.embedding_scale * (config.scale_embeddings ? Math.sqrt(width) : 1);
    this.scoreSize =
      config.score_scale !== null
        ? config.score_scale ** -2
        : config.score_divisor === "d_model"
          ? width
          : this.headSize;
    const wideHeads = nHeads * this.headSize;
    kernel.reserve(Math.max(width, wide, wideHeads));
    /** those that its family has */
    this.stacks = /** @type {Record<StackName, Stack>} */ ({});
    if (config.family !== "decoder") this.stacks.encoder = this._stack("encoder");
    if (config.family !== "encoder") this.stacks.decoder = this._stack("decoder");
    /** @type {Stack} the stack that the head reads */
    this.last = this.stacks.decoder ?? this.stacks.encoder;
    const nOut = this.vocabularyOf(this.last.name);
    const tied = config.tie_embeddings ? this.last.tokens : weights.get("head.weight");
    this.head = { weight: tied, bias: this._bias("head"), nOut, nIn: width };
    this._rotations = this._frequencies();
    const most = Math.max(width, wideHeads);
    const sizes = [most, most, wide, config.gated ? wide : 4].map((size) => MOST_AT_ONCE * size);
    const places = [...sizes, LAST_ROWS * nOut].map((size) => [kernel.scratch(size), size]);
    const [x, y, hidden, gate, logits] = places.map(([at, size]) => kernel.floats(at, size));
    this.work = { x, y, hidden, gate, logits }; // scratch, (MOST_AT_ONCE, C or F) and (LAST_ROWS, V)
    this._room = new Float32Array(); // of temporary numbers, and how many are taken
    this._taken = 0;
  }

  /** Room for `count` numbers until `clear`. @param {number} count */
  temporary(count) {
    const from = this._taken;
    this._taken += count;
    if (this._taken > this._room.length) this._room = new Float32Array(this._taken);
    return this._room.subarray(from, this._taken);
  }

  /** Nobody reads temporary numbers any more. */
  clear() {
    this._taken = 0;
  }

  /** Numbers of all weights. */
  get nWeights() {
    const sizes = [...this.weights.tensors.values()].map(({ shape }) =>
      shape.reduce((size, length) => size * length, 1),
    );
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  /** @param {StackName} stack */
  vocabularyOf(stack) {
    const { vocab_size: size, target_vocab_size: target } = this.config;
    return (stack === "decoder" && target) || size;
  }

  /** @param {StackName} stack */
  maxLenOf(stack) {
    const { max_len: most, target_max_len: target } = this.config;
    return (stack === "decoder" && target) || most;
  }

  // The padding's id, which is never predicted; null: none.
  get never() {
    const { padding_id: id, target_padding_id: target } = this.config;
    return target ?? id;
  }

  /** @param {StackName} name @returns {Stack} */
  _stack(name) {
    const { config, weights } = this;
    const width = config.d_model;
    const two = config.family === "encoder-decoder";
    const prefix = two
      ? name === "encoder"
        ? "source_embedding"
        : "target_embedding"
      : "embedding";
    const shared = two && config.share_embeddings ? "source_embedding" : prefix;
    const table = weights.tensors.get(`${prefix}.positions.table.weight`);
    /** @type {(at: number) => Float32Array} */
    const waves = (at) => sinusoidal(at, width);
    /** @type {(at: number) => Float32Array} */
    const learned = (at) =>
      this.kernel.numbers(/** @type {import("./types.d.ts").Tensor} */ (table), at * width, width);
    return {
      name,
      tokens: weights.get(`${shared}.tokens.weight`),
      positions: { learned, sinusoidal: waves }[config.positions] ?? null,
      embeddingNorm: this._norm(`${prefix}.norm`),
      layers: Array.from({ length: config.n_layers }, (_, at) =>
        this._layer(`${name}.layers.${at}`, at, two && name === "decoder"),
      ),
      norm: this._norm(`${name}.norm`),
      maxLen: this.maxLenOf(name),
    };
  }

  /** @param {string} name @param {number} at @param {boolean} crosses @returns {Layer} */
  _layer(name, at, crosses) {
    const { config } = this;
    const types = config.layer_types;
    const type = types.length ? types[at % types.length] : "sliding_attention";
    const slides = type.startsWith("sliding") && config.window !== null;
    const forward = `${name}.feed_forward`;
    return {
      self: this._attention(`${name}.self_attention`),
      selfNorms: this._placement(`${name}.self_residual`),
      cross: crosses ? this._attention(`${name}.cross_attention`) : null,
      crossNorms: crosses ? this._placement(`${name}.cross_residual`) : null,
      gate: config.gated ? this._linear(`${forward}.gate`) : null,
      expand: this._linear(`${forward}.expand`),
      contract: this._linear(`${forward}.contract`),
      forwardNorms: this._placement(`${forward}_residual`),
      window: slides ? Number(config.window) : Infinity,
      rotates: config.positions === "rotary" && !type.endsWith("nope"),
    };
  }

  /** @param {string} name @returns {AttentionPart} */
  _attention(name) {
    return {
      query: this._linear(`${name}.query`),
      key: this._linear(`${name}.key`),
      value: this._linear(`${name}.value`),
      output: this._linear(`${name}.output`),
      queryNorm: this._norm(`${name}.query_norm`),
      keyNorm: this._norm(`${name}.key_norm`),
    };
  }

  /** @param {string} name @returns {Placement} */
  _placement(name) {
    const norm = this._norm(`${name}.norm`);
    const isOfSum = this.config.norm === "post";
    return {
      input: isOfSum ? null : norm,
      output: this._norm(`${name}.output_norm`),
      sum: isOfSum ? norm : null,
    };
  }

  /** @param {string} name @returns {Linear} */
  _linear(name) {
    const weight = this.weights.get(`${name}.weight`);
    const [nOut, nIn] = weight.shape;
    return { weight, bias: this._bias(name), nOut, nIn };
  }

  /** The address of a map's bias as float32; 0 for none. @param {string} name */
  _bias(name) {
    const values = this._vector(`${name}.bias`);
    if (!values) return 0;
    const address = this.kernel.scratch(values.length);
    this.kernel.floats(address, values.length).set(values);
    return address;
  }

  /** @param {string} name @returns {Norm | null} */
  _norm(name) {
    const gain = this._vector(`${name}.weight`);
    if (!gain) return null;
    if (this.config.norm_kind === "rms-plus-one") gain.forEach((x, i) => (gain[i] = 1 + x));
    return { gain, shift: this._vector(`${name}.bias`) };
  }

  /** @param {string} name */
  _vector(name) {
    const tensor = this.weights.tensors.get(name);
    return tensor ? this.kernel.numbers(tensor, 0, tensor.shape[0]) : null;
  }

  /** A token's vector, scaled. @param {Stack} stack @param {number} id */
  embedded({ tokens }, id) {
    const vector = this.kernel.numbers(tokens, id * this.config.d_model, this.config.d_model);
    if (this.scale !== 1) vector.forEach((x, i) => (vector[i] = x * this.scale));
    return vector;
  }

  /**
   * `n` vectors of x from `start`, normalised, into `to`; without a norm they are copied.
   * @param {Norm | null} norm
   * @param {Float32Array} x
   * @param {number} n
   * @param {Float32Array} to
   */
  normalise(norm, x, n, to, width = this.config.d_model) {
    if (!norm) return void to.set(x.subarray(0, n * width));
    const { gain, shift } = norm;
    for (let t = 0, start = 0; t < n; t += 1, start += width) {
      const { mean, by } = spreadOf(x, start, width, this.config.norm_eps, this.isRms);
      for (let i = 0; i < width; i += 1) to[start + i] = (x[start + i] - mean) * by * gain[i];
      if (shift) for (let i = 0; i < width; i += 1) to[start + i] += shift[i];
    }
  }

  /** The feed-forward's activation, in place. @param {Float32Array} values @param {number} count */
  activate(values, count) {
    const of = ACTIVATIONS[this.config.activation];
    for (let i = 0; i < count; i += 1) values[i] = of(values[i]);
  }

  // Radians a token of each rotated pair, rounded as in model/rotary.py.
  _frequencies() {
    const { rotary_size: size, rotary_base: base, rotary_scaling: scaling } = this.config;
    const rotated = size ?? this.headSize;
    return Float32Array.from({ length: rotated / 2 }, (_, pair) => {
      const exponent = Math.fround((2 * pair) / rotated);
      const frequency = Math.fround(1 / Math.fround(base ** exponent));
      return scaling === "linear" ? frequency / this.config.rotary_factor : frequency;
    });
  }

  /**
   * Rotate `nHeads` heads of a vector from `start` for a position: pairs (i, i + R/2).
   * @param {Float32Array} x
   * @param {number} start
   * @param {number} nHeads
   * @param {number} position
   */
  rotate(x, start, nHeads, position) {
    const half = this._rotations.length;
    const longer = Number(this.config.rotary_multiplier);
    for (let pair = 0; pair < half; pair += 1) {
      const angle = Math.fround(position * this._rotations[pair]);
      const cosine = Math.fround(Math.cos(angle)) * longer;
      const sine = Math.fround(Math.sin(angle)) * longer;
      for (let head = 0; head < nHeads; head += 1) {
        const at = start + head * this.headSize + pair;
        const [first, second] = [x[at], x[at + half]];
        x[at] = first * cosine - second * sine;
        x[at + half] = second * cosine + first * sine;
      }
    }
  }

  /**
   * The logits (n, V) that n vectors of the last stack's stream lead to: the final norm, the head.
   * @param {Float32Array} stream (n, C)
   * @param {number} n
   */
  predict(stream, n = 1, norm = this.last.norm) {
    const { work, head, config } = this;
    const width = config.d_model;
    const all = new Float32Array(n * head.nOut);
    for (let from = 0; from < n; from += LAST_ROWS) {
      const some = Math.min(LAST_ROWS, n - from);
      this.normalise(norm, stream.subarray(from * width, (from + some) * width), some, work.x);
      this.kernel.multiply(head, work.x, some, work.logits);
      all.set(work.logits.subarray(0, some * head.nOut), from * head.nOut);
    }
    const { logit_scale: scale, logit_cap: cap } = config;
    if (scale !== 1) all.forEach((x, i) => (all[i] = x * scale));
    if (cap !== null) all.forEach((x, i) => (all[i] = cap * Math.tanh(x / cap)));
    return all;
  }
}
