// A run that Python has read, from its numbers that views/export/html.py stores: the questions about attention, masks
// and positions are answered of it as of a text that was read here.

import { headNumbers } from "../web/head_numbers.js";
import { partsOf } from "./attention.js";

/** @import { NumbersOfRun, RecordedInputs, RecordedKind, SiteName, StackName } from "./types.d.ts" */
/** @import { Item } from "./item.js" */
/** @import { Run, StoredArray } from "../web/types" */

export class RecordedText {
  /**
   * @param {Run} facts
   * @param {RecordedKind[]} kinds the numbers of each kind of attention
   * @param {NumbersOfRun["inputs"]} inputs what enters each stack, where positions are added
   */
  constructor(facts, kinds, inputs) {
    const { ids, trace_start: start, interventions } = facts;
    this.facts = facts;
    this.kinds = kinds;
    this.inputs = inputs;
    this.interventions = interventions.map((change) => change.is);
    const places = (/** @type {ArrayLike<unknown>} */ all) => Array.from(all, (_, at) => at);
    this.ids = places(ids.slice(start)); // tokens are named by their places
    this.source = places(facts.source_labels);
  }

  /** @param {SiteName} site @returns {{ kind: RecordedKind, layer: number }} */
  _at(site) {
    const { stack, kind: name, layer } = partsOf(site);
    const kind = this.kinds.find((each) => each.stack === stack && each.kind === name);
    return { kind: /** @type {RecordedKind} */ (kind), layer };
  }

  /** What is stored of a head, by name. @param {SiteName} site @param {number} head @returns {Record<string, Float32Array>} */
  _stored(site, head) {
    const { kind, layer } = this._at(site);
    const parts = Object.entries(kind.layers[layer]).map(([name, { array: all, shape }]) => {
      const size = all.length / shape[0];
      return [name, all.subarray(head * size, (head + 1) * size)];
    });
    return Object.fromEntries(parts);
  }

  /** @param {SiteName} site @param {number} head */
  _numbers(site, head) {
    const { kind, layer } = this._at(site);
    const allowed = /** @type {Uint8Array} */ (kind.masks[layer].array);
    const figure = { data: [], layout: { meta: {} } };
    return headNumbers({ shape: kind.shape, figure, allowed, ...this._stored(site, head) });
  }

  /** How scores are computed; patterns: whether scores or weights are others. @param {SiteName} site */
  attention(site) {
    const { kind, layer } = this._at(site);
    const { queries, weights } = kind.layers[layer];
    const size = queries ? queries.shape[2] : 1;
    const isSelf = kind.kind === "self";
    return {
      ...{ scale: size ** -0.5, cap: null, patterns: queries && !weights ? [] : ["recorded"] },
      causal: isSelf && kind.stack === "decoder",
      window: (isSelf && this.facts.windows[layer]) || Infinity,
    };
  }

  /** The largest difference between the sums and what entered the first layer. @param {StackName} stack */
  inputDifference(stack) {
    return this.inputs[stack].difference;
  }

  /** A token's place among the positions. @param {StackName} _ @param {number} at */
  positionOf(_, at) {
    return at;
  }

  /** @param {SiteName} site @param {number} head */
  queries(site, head) {
    return this._stored(site, head).queries;
  }

  /** @param {SiteName} site @param {number} head */
  keys(site, head) {
    return this._stored(site, head).keys;
  }

  /** The first dimension of each value, (Tk,). @param {SiteName} site @param {number} head */
  values(site, head) {
    return this._stored(site, head).values;
  }

  /** @param {SiteName} site @param {number} head */
  scores(site, head) {
    return this._numbers(site, head).scores;
  }

  /** @param {SiteName} site @param {number} head */
  weights(site, head) {
    return this._numbers(site, head).weights.slice();
  }

  /** @param {SiteName} site @param {number} head @param {number} query */
  weightsAt(site, head, query) {
    const nKeys = this._at(site).kind.shape[1];
    return this.weights(site, head).slice(query * nKeys, (query + 1) * nKeys);
  }

  /** @param {SiteName} site */
  allowed(site) {
    return this._numbers(site, 0).allowed;
  }
}

/**
 * The run as an `Item`, for the questions about attention, the numbers of heads, masks and positions.
 * @param {NumbersOfRun} text a run's facts and numbers
 * @param {Record<string, object>} frames figures without numbers
 * @returns {Item}
 */
export const recordedItem = (text, frames) => {
  const { run: facts, kinds, lengths, inputs, normalised } = text;
  const { n_heads: nHeads, stack: own, labels, source_labels: source, trace_start } = facts;
  const layers = kinds.flatMap((kind) => kind.layers);
  const read = layers.find((layer) => layer.queries);
  const headSize = read ? read.queries.shape[2] : 1;
  const [{ n_layers: nLayers }] = kinds;
  const traced = labels.slice(trace_start).slice(0, lengths[own]);
  const config = { n_heads: nHeads, n_layers: nLayers, score_cap: null, score_divisor: "d_head" };
  const windows = facts.windows.map((window) => ({
    window: window ?? Infinity,
  }));
  const stacks = Object.fromEntries(
    facts.stacks.map((stack) => [stack, { layers: windows, ...addedTo(inputs[stack]) }]),
  );
  const embedded = (/** @type {ReturnType<typeof addedTo>} */ stack, /** @type {number} */ at) =>
    stack.tokens?.(at);
  const network = { config, headSize, scoreSize: headSize, stacks, embedded };
  const recorded = new RecordedText(facts, kinds, inputs);
  recorded.ids.length = traced.length;
  const item = {
    model: { network, frames, config: { norm_embeddings: normalised } },
    text: recorded,
    facts: { ...facts, kinds, n_text: lengths },
    start: trace_start,
    metrics: new Map(),
    labelsOf: (/** @type {string} */ stack) => (stack === own ? traced : source),
  };
  return /** @type {Item} */ (/** @type {unknown} */ (item)); // as far as these questions read it
};

/** @typedef {(at: number) => Float32Array} RowAt */
// The vectors of positions and of the read tokens, as a stack of the network has them.
/** @type {(added: RecordedInputs | undefined) => { maxLen?: number, positions?: RowAt, tokens?: RowAt }} */
const addedTo = (added) => {
  if (!added) return {};
  /** @type {(stored: StoredArray) => RowAt} */
  const rowsOf = ({ array, shape: [, width] }) => {
    const numbers = /** @type {Float32Array} */ (array);
    return (at) => numbers.subarray(at * width, (at + 1) * width);
  };
  return {
    positions: rowsOf(added.matrix),
    maxLen: added.matrix.shape[0],
    tokens: rowsOf(added.token),
  };
};
