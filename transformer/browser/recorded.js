// A run that Python has read, from the numbers of its attention that views/export/html.py stores: the questions about
// attention are answered of it as of a text that was read here.

import { headNumbers } from "../web/head_numbers.js";
import { partsOf } from "./attention.js";

/** @import { SiteName, StackName, Kind } from "./types.d.ts" */
/** @typedef {import("./item.js").Data} Data */
/** @typedef {{ array: number, shape: number[] }} Stored */
/** @typedef {Data & { stack: StackName, kind: Kind, shape: number[], masks: Stored[], layers: Record<string, Stored>[] }} RecordedKind */

class RecordedText {
  /**
   * @param {Data} facts of the run, with the numbers of each kind of attention
   * @param {(stored: Stored) => any} flatOf the numbers of a stored array
   */
  constructor(facts, flatOf) {
    this.facts = facts;
    this.flatOf = flatOf;
    this.interventions = facts.interventions.map((/** @type {Data} */ change) => change.is);
  }

  /** @param {SiteName} site @returns {{ kind: RecordedKind, layer: number }} */
  _at(site) {
    const { stack, kind: name, layer } = partsOf(site);
    const kind = this.facts.kinds.find(
      (/** @type {RecordedKind} */ one) => one.stack === stack && one.kind === name,
    );
    return { kind, layer };
  }

  /** What is stored of a head, by name. @param {SiteName} site @param {number} head @returns {Record<string, Float32Array>} */
  _stored(site, head) {
    const { kind, layer } = this._at(site);
    const parts = Object.entries(kind.layers[layer]).map(([name, stored]) => {
      const all = this.flatOf(stored);
      const size = all.length / stored.shape[0];
      return [name, all.subarray(head * size, (head + 1) * size)];
    });
    return Object.fromEntries(parts);
  }

  /** @param {SiteName} site @param {number} head */
  _numbers(site, head) {
    const { kind, layer } = this._at(site);
    const allowed = this.flatOf(kind.masks[layer]);
    const figure = { layout: { meta: {} } };
    return headNumbers({ shape: kind.shape, figure, allowed, ...this._stored(site, head) });
  }

  /** How scores are computed; patterns: whether scores or weights are others. @param {SiteName} site */
  attention(site) {
    const { kind, layer } = this._at(site);
    const { queries, weights } = kind.layers[layer];
    const size = queries ? queries.shape[2] : 1;
    return { scale: size ** -0.5, cap: null, patterns: queries && !weights ? [] : ["recorded"] };
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
 * The run as an `Item`, for the questions about attention.
 * @param {Data} facts of the run, with the numbers of each kind of attention
 * @param {Record<string, any>} frames figures without numbers
 * @param {(stored: Stored) => any} flatOf the numbers of a stored array
 * @returns {any}
 */
export const recordedItem = (facts, frames, flatOf) => {
  const { n_heads: nHeads, kinds, stack: own, labels, source_labels: source, trace_start } = facts;
  const layers = kinds.flatMap((/** @type {RecordedKind} */ kind) => kind.layers);
  const read = layers.find((/** @type {Record<string, Stored>} */ layer) => layer.queries);
  const headSize = read ? read.queries.shape[2] : 1;
  const [{ n_layers: nLayers }] = kinds;
  const rows = kinds.find((/** @type {RecordedKind} */ kind) => kind.stack === own)?.shape[0];
  const traced = labels.slice(trace_start).slice(0, rows);
  const config = { n_heads: nHeads, n_layers: nLayers, score_cap: null, score_divisor: "d_head" };
  return {
    model: { network: { config, headSize, scoreSize: headSize }, frames },
    text: new RecordedText(facts, flatOf),
    facts,
    start: trace_start,
    labelsOf: (/** @type {string} */ stack) => (stack === own ? traced : source),
  };
};
