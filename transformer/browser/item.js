// A text that was read, with what the page asks about it.

import { Text } from "./text.js";

/**
 * @typedef {import("./model.js").Model & { frames: import("./questions/types").Frames }} Model
 * @typedef {import("./types.d.ts").ItemFacts} ItemFacts
 * @typedef {import("./types.d.ts").Intervention} Intervention
 */

export class Item {
  /**
   * start: the place of the first token that is read: not 0 where the window slid.
   * @param {Model} model
   * @param {Text} text
   * @param {ItemFacts} facts as server/kept/page_runs.py has them
   */
  constructor(model, text, facts, start = 0) {
    this.model = model;
    this.text = text;
    this.facts = facts;
    this.start = start;
    /** @type {Map<string, Float32Array>} logits with other interventions */
    this.changed = new Map();
    /** @type {import("./types.d.ts").Search | null} of a beam search that was made here */
    this.search = null;
    /** @type {Map<string, Promise<import("./questions/head_metrics.js").Metrics>>} the metrics of heads, by kind; see questions/head_metrics.js */
    this.metrics = new Map();
  }

  // The labels of the tokens that a stack reads.
  /** @param {string} stack @returns {string[]} */
  labelsOf(stack) {
    const { facts, text, model } = this;
    if (stack !== facts.stack) return facts.source_labels;
    return text.ids.map((id) => model.tokenizer.label(id));
  }
}

// ---- a batch: each text by itself, with padding behind it ----

/** @type {(model: Model, texts: string[], outputs: string[], interventions: Intervention[]) => Item[]} */
export const rowsOf = (model, texts, outputs, interventions) => {
  const { tokenizer, network } = model;
  const isTranslator = model.config.family === "encoder-decoder";
  const read = texts.map((text, at) => {
    const { source, ids } = model.prepare(text);
    const written = isTranslator ? [...ids, ...tokenizer.encode(outputs[at]), tokenizer.end] : ids;
    return { source, ids: written.slice(0, network.last.maxLen) };
  });
  const most = (/** @type {"ids" | "source"} */ name) =>
    Math.max(...read.map((each) => each[name].length));
  const padded = (/** @type {number[]} */ ids, /** @type {number} */ n) => [
    ...ids,
    ...new Array(n - ids.length).fill(tokenizer.padding),
  ];
  return read.map(({ source, ids }) => {
    const own = network.last.name;
    const nText = { [own]: ids.length, ...(isTranslator && { encoder: source.length }) };
    const padding = isTranslator ? { source: padded(source, most("source")) } : {};
    const text = new Text(network, { ...padding, nText, interventions });
    text.read(padded(ids, most("ids")));
    const labels = isTranslator ? text.source.map((id) => tokenizer.label(id)) : [];
    return new Item(
      model,
      text,
      /** @type {ItemFacts} */ ({ stack: own, source_labels: labels, n_text: nText }),
    );
  });
};
