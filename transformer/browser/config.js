// Which networks the engine computes: the fields of transformer/model/config.py that it reads.

import { say } from "../web/messages.js";

/** @import { ModelConfig } from "./types.d.ts" */

// The fields of ModelConfig that the arithmetic needs, with Python's defaults.
// prettier-ignore
const DEFAULTS = {
  family: "decoder", target_vocab_size: null, d_model: 512, n_heads: 8, n_layers: 6,
  target_n_layers: null, d_ff: 2048,
  max_len: 512, target_max_len: null, norm: "pre", norm_kind: "layer", positions: "sinusoidal",
  activation: "relu", head_size: null, n_key_heads: null, norm_heads: false, norm_all_heads: false,
  window: null, layer_types: [], relative_buckets: 0, relative_farthest: 128,
  score_divisor: "d_head", score_scale: null,
  score_cap: null, logit_scale: 1, logit_cap: null, residual_scale: 1, shared_projection: false,
  parallel: false, gated: false, head: "tokens", head_transform: false, norm_eps: 1e-5,
  n_token_types: 0, embedding_size: null, norm_embeddings: false, tie_embeddings: false,
  share_embeddings: false, scale_embeddings: false, embedding_scale: 1, padding_id: null,
  target_padding_id: null, rotary_size: null, rotary_base: 10_000, sliding_rotary_base: null,
  rotary_scaling: "none", rotary_factor: 1, rotary_multiplier: 1,
};

// The choices whose arithmetic is here, as SUPPORTED of inference/engines/compiled.py.
/** @type {Record<string, unknown[]>} */
const SUPPORTED = {
  family: ["decoder", "encoder", "encoder-decoder"],
  target_n_layers: [null],
  norm: ["pre", "post", "output", "both", "pre-but-first"],
  norm_kind: ["layer", "rms", "rms-plus-one"],
  positions: ["sinusoidal", "learned", "rotary"],
  activation: ["relu", "gelu", "gelu-tanh", "quick-gelu", "silu"],
  norm_all_heads: [false],
  relative_buckets: [0],
  shared_projection: [false],
  head: ["tokens"],
  head_transform: [false],
  n_token_types: [0],
  embedding_size: [null],
  sliding_rotary_base: [null],
  rotary_scaling: ["none", "linear", "dynamic"],
};

/**
 * A checkpoint's configuration with all fields.
 * @param {object} values
 * @returns {ModelConfig}
 */
export const wholeConfig = (values) =>
  /** @type {ModelConfig} */ (/** @type {object} */ ({ ...DEFAULTS, ...values }));

/**
 * Why the engine does not read this network, in a sentence; null if it does.
 * @param {object} values of config.json under "model"
 */
export const refusal = (values) => {
  const config = wholeConfig(values);
  for (const [field, allowed] of Object.entries(SUPPORTED)) {
    if (!allowed.includes(config[field]))
      return say("The browser does not compute networks with {field} = {value}.", {
        field,
        value: JSON.stringify(config[field]),
      });
  }
  const { d_model: width, d_ff: wide } = config;
  const sizes = [width, wide, sizeOf(config) * config.n_heads];
  const odd = sizes.find((size) => size % 4 !== 0);
  if (odd === undefined) return null;
  return say("The browser computes networks whose sizes are multiples of 4; got {size}.", {
    size: odd,
  });
};

/** Features of a head. @param {ModelConfig} config */
export const sizeOf = (config) => config.head_size ?? config.d_model / config.n_heads;
