// Sentences on a text that is not read as its writer may expect: as the warnings of plain_text.py, inference/loaded.py and
// inference/run_builder.py.

import { say, wholeText } from "../web/messages.js";
import { plain, PLAIN_ENGLISH } from "./plain_text.js";

/** @typedef {import("./item.js").Model} Model */
/** @typedef {import("./types.d.ts").Intervention} Intervention */

const NAMES =
  /<\|[\p{L}\p{N}_]{1,30}\|>|<\/?s>|<(?:pad|unk|mask|cls|sep|bos|eos|start_of_turn|end_of_turn)>|\[(?:PAD|UNK|CLS|SEP|MASK|BOS|EOS|\/?INST)\]/gu;
const HIDDEN = "[MASK]";
const MOST_NAMES = 3;
const BYTE = /^‹[0-9A-F]{2}›$/; // the label of a token that is one byte of a sign

/** @type {(all: string[] | null, test: (one: string) => boolean) => number} */
const count = (all, test) => (all ?? []).filter(test).length;

// words: common ones of English and of other languages.
/** @type {(text: string, words: { english: string[], others: string[] }) => string[]} */
const languageDoubts = (text, { english, others }) => {
  const wordsOf = (/** @type {string} */ some) => some.match(/[\p{L}\p{Nl}\p{No}]+/gu) ?? [];
  const lettersOf = (/** @type {string[]} */ some) => some.flatMap((word) => [...word]);
  const typed = wordsOf(text.replace(/\[[\p{L}\p{N}_]+\]/gu, " ")); // [MASK] is no word in capitals
  const capitals = count(lettersOf(typed), (letter) => /\p{Uppercase}/u.test(letter));
  const said = [];
  const isLong = (/** @type {string} */ word) => [...word].length > 1;
  if (typed.filter(isLong).length > 1 && capitals > 0.8 * lettersOf(typed).length)
    said.push(
      say("The text is in capitals, which this model did not learn: write it as in a book."),
    );
  const words = wordsOf(text);
  const letters = lettersOf(words);
  const lower = words.map((word) => word.toLowerCase());
  const latin = count(letters, (letter) => /\p{Script=Latin}/u.test(letter));
  const nSigns = letters.length + (text.match(/\p{So}/gu)?.length ?? 0);
  const nEnglish = count(lower, (word) => english.includes(word));
  if (count(lower, (word) => others.includes(word)) > nEnglish || 2 * latin < nSigns)
    said.push(say("This does not look like English, and this model learned English alone."));
  return said;
};

/** @type {(model: Model, text: string) => string[]} */
const nameDoubts = ({ tokenizer }, text) => {
  const own = [...tokenizer.special.values()].filter((name) => name.length > 2);
  const all = new Set([...(text.match(NAMES) ?? []), ...own.filter((name) => text.includes(name))]);
  if (tokenizer.mask !== null)
    [HIDDEN, tokenizer.label(tokenizer.mask)].forEach((name) => all.delete(name));
  const names = [...all].slice(0, MOST_NAMES);
  const isToken = (/** @type {string} */ name) =>
    tokenizer.encode(name).some((id) => tokenizer.special.get(id) === name);
  /** @type {(some: string[], sentence: (values: { names: string }) => string) => string[]} */
  const listed = (some, sentence) => (some.length ? [sentence({ names: some.join(" ") })] : []);
  return [
    ...listed(names.filter((name) => !isToken(name)), (values) =>
      say("Read as ordinary text, not as a special token: {names}.", values)), // prettier-ignore
    ...listed(names.filter(isToken), (values) =>
      say("Read as a token of the model, not as ordinary text: {names}.", values)), // prettier-ignore
  ];
};

// The places of a decoder's tokens at which interventions act.
/** @type {(change: Intervention) => number[]} */
const placesOf = (change) => {
  if (change.type === "break") return [];
  const isDecoder = change.stack === "decoder";
  if (change.type !== "mask") return isDecoder ? (change.positions ?? []) : [];
  const cells = [...(change.allow ?? []), ...(change.forbid ?? [])];
  return cells.flatMap(([query, key]) =>
    (change.kind === "cross" ? [isDecoder ? query : null] : isDecoder ? [query, key] : []).filter(
      (place) => place !== null,
    ),
  );
};

// ids: of the whole text.
/** @type {(model: Model, text: string, interventions: Intervention[], ids: number[], nPrompt: number) => string[]} */
export const doubtsOf = (model, text, interventions, ids, nPrompt) => {
  const said = model.metadata.source_text ? languageDoubts(text, model.frames.words) : [];
  said.push(...nameDoubts(model, model.readAs(text)));
  const most = model.network.last.maxLen;
  if (nPrompt > most)
    said.push(
      say("The text is {n_tokens} tokens long; only the last {most} are read.", {
        n_tokens: wholeText(nPrompt),
        most: wholeText(most),
      }),
    );
  const unmet = interventions.flatMap(placesOf).filter((place) => place >= ids.length);
  if (unmet.length)
    said.push(
      say("The text ended before place {place}, which was to be altered.", {
        place: Math.min(...unmet),
      }),
    );
  return said;
};

// How the text is read where that is not as it was typed.
/** @type {(model: Model, text: string, ids: number[], nPrompt: number) => string[]} */
export const readingOf = (model, text, ids, nPrompt) => {
  const read = model.readAs(text);
  const byte = ids
    .slice(0, nPrompt)
    .map((id) => model.tokenizer.label(id))
    .find((label) => BYTE.test(label));
  return [
    ...(read === text ? [] : [say("Read as: {text}", { text: read })]),
    ...(byte
      ? [say("No token has this character: it is read byte by byte, {byte} …", { byte })]
      : []), // prettier-ignore
  ];
};

const BETWEEN = /(?<=[.!?])(["')]*)\s+(?=["'(]*(?![a-z_])[\p{L}\p{N}])|\s*\n\s*/gu;
const NO_END = /(?:^|[\s("'.])(?:Mr|Mrs|Ms|Dr|Mt|St|Prof|Jr|Sr|vs|[A-HJ-Z])\.$/;

// The sentences of a text, where its model translates each by itself, as it learned them.
/** @type {(model: Model, text: string) => string[]} */
export const sentencesOf = ({ metadata }, text) => {
  if (metadata.source_text !== PLAIN_ENGLISH) return [text];
  const parts = [];
  let begun = 0;
  for (const cut of text.matchAll(BETWEEN)) {
    const { 0: whole, 1: quotes, index } = cut;
    if (!whole.includes("\n") && NO_END.test(text.slice(0, index))) continue;
    parts.push(text.slice(begun, index + (quotes ?? "").length));
    begun = index + whole.length;
  }
  return [...parts, text.slice(begun)].map(plain).filter(Boolean);
};
