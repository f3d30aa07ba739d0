// Runs and batches of the page in the browser: how they are made from its requests, and their facts, as server/page/presses.py
// and server/kept/page_runs.py.

import { say, sayN } from "../web/messages.js";
import { wordsOf } from "./intervention_words.js";
import { Item, rowsOf } from "./item.js";
import { likeliestOf } from "./questions/places.js";
import { oneByOne, outcome } from "./outcome.js";
import { LIMITS, methodWords, requestOf } from "./requests.js";
import { softmax } from "./sampling.js";
import { Text } from "./text.js";

/** @import { Model } from "./item.js" */
/** @import { EditMask, Generation, Intervention, ItemFacts, PressLine, Step } from "./types.d.ts" */
/** @import { BatchFacts, PlainValues } from "../web/types" */
/** @typedef {{ model: Model, facts: ItemFacts, batch: BatchFacts }} Loaded a model, with the facts of its stored examples */

const KEPT = 8; // runs and batches, those last asked about
const N_LIKELIEST = 10;
const ID = "browser-"; // with 14 more signs as long as the server's, which makes the run again by its request

/** @type {() => string} */
const drawnId = () =>
  ID +
  Array.from(crypto.getRandomValues(new Uint8Array(7)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");

// The masks that a batch's networks are read without, where it is bare.
/** @type {(kinds: { stack: string, kind: string }[]) => EditMask[]} */
const withoutPadding = (kinds) =>
  kinds.map(
    ({ stack, kind }) =>
      /** @type {EditMask} */ ({ type: "mask", stack, kind, without: ["padding"] }),
  );

export class Runs {
  constructor() {
    /** @type {Map<string, Item | Item[]>} runs, and the rows of batches */
    this.kept = new Map();
    /** @type {Map<string, Loaded>} */
    this.models = new Map();
    /** @type {{ key: string, text: Text } | null} the text that is being typed, as far as it is read */
    this.typing = null;
  }

  /** @param {string} name @param {Item | Item[]} item */
  keep(name, item) {
    this.kept.delete(name);
    this.kept.set(name, item);
    if (this.kept.size > KEPT) this.kept.delete([...this.kept.keys()][0]);
  }

  // The run, or the row of a batch, that a question is about, read from its facts where it is not kept; of a question
  // about a model: its stored run.
  /** @param {PlainValues} data @param {ItemFacts | BatchFacts} [facts] @returns {Item} */
  itemOf({ run, batch, model, row = 0 }, facts = this.models.get(model)?.facts) {
    const id = run ?? batch ?? (facts && "run" in facts ? facts.run : undefined);
    const item = this.kept.get(id) ?? (facts && this._read(facts));
    if (!item)
      throw new Error(
        say("This page no longer keeps this run: press the button to make it again."),
      );
    this.keep(id, item);
    return Array.isArray(item) ? item[row] : item;
  }

  // The rows of a batch that a question is about.
  /** @param {PlainValues} data @returns {Item[]} */
  rowsOf({ batch, run }) {
    const item = this.kept.get(batch ?? run);
    return Array.isArray(item) ? item : [];
  }

  // Take a model, with the facts of its stored run and batch.
  /** @param {Model} model @param {ItemFacts} facts @param {BatchFacts} batch */
  add(model, facts, batch) {
    this.models.set(model.name, { model, facts, batch });
  }

  /** @param {string} name of a model that was added */
  _loaded(name) {
    return /** @type {Loaded} */ (this.models.get(name));
  }

  // A run or batch that was made elsewhere; null where its text would be other tokens here.
  /** @param {ItemFacts | BatchFacts} facts @returns {Item | Item[] | null} */
  _read(facts) {
    const { model } = this._loaded(facts.model);
    if ("texts" in facts) {
      const changes = facts.padding_hidden ? [] : withoutPadding(facts.kinds);
      return rowsOf(model, facts.texts, facts.outputs, changes);
    }
    const { ids, labels, source_labels: sources, n_prompt: nPrompt, trace_start: start } = facts;
    const source = this._sourceOf(model, facts);
    const isSame = (/** @type {number[]} */ all, /** @type {string[]} */ named) =>
      all.length === named.length && all.every((id, at) => model.tokenizer.label(id) === named[at]);
    if (!isSame(ids, labels) || !isSame(source ?? [], sources)) return null;
    const changes = facts.interventions.map((change) => change.is);
    const decoded = [...ids.slice(0, nPrompt), ...facts.forced_tokens];
    const interventions = model.resolved(changes, decoded);
    const text = new Text(model.network, { source, interventions });
    text.read(ids.slice(start, start + model.network.last.maxLen));
    return new Item(model, text, facts, start);
  }

  /** @param {Model} model @param {ItemFacts} facts @returns {number[] | undefined} */
  _sourceOf(model, { text, source_labels: labels }) {
    return labels.length ? model.prepare(text).source : undefined;
  }

  // ---- a run ----

  // The lines of a press of the button: the text as far as it is written, then the run.
  /** @param {PlainValues} data @param {(line: PressLine) => void} tell @param {AbortSignal} signal */
  async write({ model: name, ...data }, tell, signal) {
    const { model, facts } = this._loaded(name);
    const reads = facts.stack === "encoder";
    const { request, asked } = requestOf(data, reads);
    const began = performance.now();
    const prepared = model.prepare(request.text);
    const ids = [...prepared.ids];
    /** @type {number[]} */
    const probabilities = [];
    const shared = { source: prepared.source, nPrompt: ids.length };
    const progress = () => ({
      tokens: { ...this._written(model, ids, shared, probabilities), run: null, state: "running" },
      status: { kind: "busy", text: say("Generating …") },
      running: true,
    });
    tell(progress());
    const onStep = (/** @type {Step} */ { token, probability }) => {
      ids.push(token);
      probabilities.push(probability);
      tell(progress());
    };
    const written = await model.generate(request, { onStep, signal });
    const made = this._factsOf(model, facts, asked, written);
    const item = new Item(model, written.text, made, written.start);
    item.search = written.search;
    this.keep(made.run, item);
    const took = performance.now() - began;
    const together = await oneByOne(model, request);
    const status = { kind: "done", text: outcome(model, asked, written, took, together) };
    tell({ tokens: made, status, running: false });
  }

  /** @type {(model: Model, ids: number[], prompt: { source: number[], nPrompt: number }, probabilities: number[]) => Pick<ItemFacts, "stack" | "labels" | "source_labels" | "special" | "source_special" | "n_prompt" | "probabilities">} */
  _written({ tokenizer, network }, ids, { source, nPrompt }, probabilities) {
    const special = (/** @type {number[]} */ all) =>
      all.flatMap((id, at) => (tokenizer.special.has(id) ? [at] : []));
    const labels = (/** @type {number[]} */ all) => all.map((id) => tokenizer.label(id));
    return {
      ...{ stack: network.last.name, labels: labels(ids), source_labels: labels(source) },
      ...{ special: special(ids), source_special: special(source), n_prompt: nPrompt },
      probabilities: [...probabilities],
    };
  }

  /** @param {Model} model @param {ItemFacts} example @param {PlainValues} asked @param {Generation} written @returns {ItemFacts} */
  _factsOf(
    model,
    example,
    asked,
    { text: read, ids, source, nPrompt, steps, search, start, stopped },
  ) {
    const { tokenizer, network } = model;
    const { interventions = [], forced_tokens: forced = [], text, ...settings } = asked;
    const opening = { ...example.opening };
    delete opening.read; // a place in the example
    const isEncoder = network.last.name === "encoder";
    const probabilities = search
      ? ids.slice(nPrompt).map((id, at) => softmax(read.logitsAt(nPrompt - 1 + at))[id])
      : steps.map(({ probability }) => probability);
    const early = stopped === "cancelled" &&
      !search && { max_new_tokens: Math.max(1, steps.length) };
    return {
      ...example, // what belongs to the model
      ...this._written(model, ids, { source, nPrompt }, probabilities),
      ...{ run: drawnId(), state: "done", example: false, opening },
      ...{ text, ids, stopped, trace_start: start, forced_tokens: forced },
      hidden: ids.flatMap((id, at) => (id === tokenizer.mask ? [at] : [])),
      last_read: this._lastRead(model, ids, start),
      how: stopped === "read" ? say("only read") : methodWords(settings),
      seed: settings.method === "sample" && settings.temperature ? settings.seed : null,
      interventions: interventions.map((/** @type {Intervention} */ change) => ({
        is: change,
        says: wordsOf(change),
      })),
      hypotheses: (search?.hypotheses ?? []).map(({ ids: tokens, ...scores }) => ({
        ...{ text: tokenizer.decode(tokens), n_tokens: tokens.length, ...scores },
      })),
      request: isEncoder ? { model: model.name, text } : { model: model.name, ...asked, ...early },
    };
  }

  // The place that is shown first, as last_read of inference/loaded.py.
  /** @type {(model: Model, ids: number[], start: number) => number} */
  _lastRead({ tokenizer, network }, ids, start) {
    if (network.last.name === "encoder") {
      const hidden = ids.findIndex((id) => id === tokenizer.mask);
      const first = ids.findIndex((id) => !tokenizer.special.has(id));
      return Math.max(0, hidden < 0 ? first : hidden);
    }
    const last = Math.min(ids.length, start + network.last.maxLen) - 1;
    return last - Number(last > start && tokenizer.ends.has(ids[last]));
  }

  // ---- a text that is being typed ----

  // What follows it, as of a journey; null for no text. Only what is new is read.
  /** @param {PlainValues} data @returns {import("../views/journey/types").TypedAnswer | null} */
  typed({ model: name, text: given, interventions: changes = [] }) {
    if (!given.trim()) return null;
    const { model } = this._loaded(name);
    const { network } = model;
    const { source, ids: all } = model.prepare(given);
    const ids = all.slice(-network.last.maxLen);
    const key = JSON.stringify([name, source, changes]);
    if (this.typing?.key !== key || network.last.name === "encoder") {
      const interventions = model.resolved(changes, ids);
      this.typing = { key, text: new Text(network, { source, interventions }) };
    }
    const { text } = this.typing;
    const differs = ids.findIndex((id, at) => id !== text.ids[at]);
    const same = differs < 0 ? ids.length : differs;
    text.keep(same);
    if (same < ids.length) text.read(ids.slice(same));
    const place = this._lastRead(model, ids, 0);
    const logits = text.logitsAt(place);
    const written = this._written(model, ids, { source, nPrompt: ids.length }, []);
    const likeliest = likeliestOf({ model }, logits, N_LIKELIEST);
    return { ...written, position: place, logits, never: network.never, likeliest, next: null };
  }

  // ---- a batch ----

  /** @param {PlainValues} data @param {(line: PressLine) => void} tell */
  async readBatch({ model: name, lines, bare }, tell) {
    const { model, batch } = this._loaded(name);
    const texts = lines
      .split("\n")
      .map((/** @type {string} */ one) => one.trim())
      .filter(Boolean);
    if (!texts.length) throw new Error(say("the text is empty: write something in it first"));
    if (texts.length > LIMITS.texts)
      throw new Error(
        say("a batch must have from 1 to {most} texts; got {got}", {
          most: LIMITS.texts,
          got: texts.length,
        }),
      );
    const isTranslator = model.config.family === "encoder-decoder";
    const outputs = [];
    for (const text of isTranslator ? texts : []) {
      const { ids, nPrompt } = await model.generate({ text, max_new_tokens: 64, temperature: 0 });
      outputs.push(model.textOf({ text }, ids.slice(nPrompt)));
    }
    const rows = rowsOf(model, texts, outputs, bare ? withoutPadding(batch.kinds) : []);
    const id = drawnId();
    this.keep(id, rows);
    const lengths = rows.map(
      ({ facts }) => facts.n_text[model.config.family === "decoder" ? "decoder" : "encoder"],
    );
    const facts = {
      ...batch,
      batch: id,
      padding_hidden: !bare,
      texts,
      outputs,
      lengths,
      example: false,
    };
    const length = (/** @type {number} */ n) => sayN("{n} token", "{n} tokens", n);
    const said = [
      sayN(
        "{n} sentence, padded to {length} each.",
        "{n} sentences, padded to {length} each.",
        texts.length,
        {
          length: length(Math.max(...lengths)),
        },
      ),
    ];
    if (isTranslator)
      said.push(
        say("Their translations are padded to {length}.", {
          length: length(rows[0].text.ids.length),
        }),
      );
    if (bare) said.push(say("The batch was read without the padding mask."));
    tell({ batch: facts, status: { kind: "done", text: said.join(" ") } });
  }
}
