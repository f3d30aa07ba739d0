// Which words mattered: the text read again without each, as analysis/word_effects.py.

import { say } from "../../web/messages.js";
import { largest, softmax } from "../sampling.js";
import { Text } from "../text.js";
import { writtenAfter } from "./journey.js";
import { likeliestOf, named, placeOf } from "./places.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {import("../types.d.ts").Intervention} Intervention
 */

const [MOST_PIECES, N_LIKELIEST] = [10, 5];
const BEGINS = /^[␣⏎⇥]/u;
const AROUND = /^[ \n\t.,:;!?…"'“”‘’«»()[\]]+|[ \n\t.,:;!?…"'“”‘’«»()[\]]+$/gu;
const GOES_ON = /^[\p{L}\p{N}]/u; // the label of a token that goes on with the word before it

// Whether a change names positions.
const isPlaced = (/** @type {Intervention} */ change) => {
  if (change.type === "mask") return Boolean(change.allow?.length || change.forbid?.length);
  return change.type === "patch" || (change.type !== "break" && Boolean(change.positions));
};

// Places of the tokens of each word; a special token is part of none.
/** @type {(labels: string[], isSpecial: (place: number) => boolean) => number[][]} */
const wordsIn = (labels, isSpecial) => {
  /** @type {number[][]} */
  const words = [];
  labels.forEach((label, place) => {
    if (isSpecial(place)) return;
    if (!words.length || BEGINS.test(label) || (place > 0 && isSpecial(place - 1))) words.push([]);
    words[words.length - 1].push(place);
  });
  return words.flatMap((word) => (word.length > MOST_PIECES ? word.map((at) => [at]) : [word]));
};

// What is read before a prediction, of which words can be left out.
class WordText {
  /** @param {Item} item @param {import("./types").AtPosition} data */
  constructor(item, data) {
    const { facts, text, model, start } = item;
    this.item = item;
    Object.assign(this, placeOf(item, data));
    this.isEncoder = facts.stack === "encoder";
    this.isTranslated = text.source.length > 0;
    this.mask = this.isEncoder ? (model.tokenizer.mask ?? null) : null;
    const placed = text.interventions.find(isPlaced);
    if (this.mask === null && placed)
      throw new Error(
        say(
          "words cannot be left out together with a change at chosen positions, which would then hold other tokens; got {change}",
          { change: placed.type },
        ),
      );
    this.first = this.isTranslated || this.isEncoder ? 0 : start;
    const read = this.isEncoder ? text.ids : text.ids.slice(0, this.row + 1);
    this.own = this.isTranslated ? text.source : read;
    this.before = read;
  }
  place = 0;
  row = 0;

  /** @param {number[]} places */
  said(places) {
    return this.item.model.tokenizer.decode(places.map((at) => this.own[at - this.first])).trim();
  }

  /** @param {string} following @returns {number[][]} */
  words(following) {
    const { special, mask } = this.item.model.tokenizer;
    const { tokenizer } = this.item.model;
    const ids = this.first ? this.item.facts.ids.slice(0, this.place + 1) : this.own;
    const labels = ids.map((/** @type {number} */ id) => tokenizer.label(id));
    const words = wordsIn(labels, (at) => special.has(ids[at]) || ids[at] === mask).filter(
      ([at]) => at >= this.first,
    );
    const last = this.first + this.own.length - 1;
    const joins = !this.isEncoder && !this.isTranslated && GOES_ON.test(following);
    if (joins && words.at(-1)?.includes(last)) words.pop();
    const left = this.isEncoder ? words.filter((word) => !word.includes(this.place)) : words;
    return this.own.length > (left[0]?.length ?? 0) ? left : [];
  }

  // The text without the tokens at some places, as it is read again, and the row of its logits.
  /** @param {number[]} places @returns {{ text: Text, row: number }} */
  without(places) {
    const { text, model } = this.item;
    const { network } = model;
    const { interventions } = text;
    const gone = new Set(places.map((at) => at - this.first));
    const kept = this.own.filter((_, at) => !gone.has(at));
    if (this.isTranslated) {
      const read = new Text(network, { interventions, source: kept });
      read.read(this.before);
      return { text: read, row: this.row };
    }
    if (this.mask !== null || this.isEncoder) {
      const { mask } = this;
      const ids = mask === null ? kept : this.own.map((id, at) => (gone.has(at) ? mask : id));
      const read = new Text(network, { interventions });
      read.read(ids);
      const before = [...gone].filter((at) => at < this.row).length;
      return { text: read, row: mask === null ? this.row - before : this.row };
    }
    const same = Math.min(...gone);
    if (same > 0 && text.changes.areLocal) {
      const read = text.copy();
      read.keep(same);
      if (kept.length > same) read.read(kept.slice(same));
      return { text: read, row: kept.length - 1 };
    }
    const read = new Text(network, { interventions });
    read.read(kept);
    return { text: read, row: kept.length - 1 };
  }
}

/** @type {Answerer<"word_effects">} */
const wordEffects = (item, data) => {
  const read = new WordText(item, data);
  const { text, facts, model } = item;
  const next = read.isEncoder ? undefined : facts.ids[read.place + 1];
  const logits = text.logitsAt(read.row);
  const target = data.target ?? next ?? largest(logits, 1)[0];
  /** @type {(word: string, places: number[]) => import("../../views/journey/types").WordEffect} */
  const effect = (word, places) => {
    const { text: other, row } = read.without(places);
    const changed = other.logitsAt(row);
    const [likeliest] = likeliestOf(item, changed, 1);
    return { word, places, probability: softmax(changed)[target], likeliest };
  };
  const words = read.words(model.tokenizer.label(target));
  /** @type {Map<string, number[][]>} */
  const alike = new Map();
  for (const word of words) {
    const said = read.said(word);
    const name = said.replace(AROUND, "") || said;
    alike.set(name, [...(alike.get(name) ?? []), word]);
  }
  const several = [...alike].filter(([, all]) => all.length > 1);
  return {
    position: read.place,
    target: { ...named(item, target), probability: softmax(logits)[target] },
    stack: read.isTranslated ? "encoder" : facts.stack,
    masked: read.mask !== null,
    words: words.map((word) => effect(read.said(word), word)),
    mentions: several.map(([name, all]) => effect(name, all.flat())),
  };
};

/** @type {Answerer<"without_words">} */
const withoutWords = (item, data) => {
  const read = new WordText(item, data);
  const { text, row } = read.without(data.places);
  const logits = text.logitsAt(row);
  const labels = read.isEncoder ? [] : writtenAfter(item, text);
  return { logits, likeliest: likeliestOf(item, logits, N_LIKELIEST), labels };
};

export const answers = { word_effects: wordEffects, without_words: withoutWords };
