// Tokens and marked-up text as components.

import { html, signal } from "./preact.js";
import { labelsOf, page } from "./store.js";
import { numeral, say, sayWith } from "./messages.js";

const MARKS = /([␣⏎⇥]+)/u; // for space, newline and tab: muted, so that the word is clear
const STRESS = /(\*\*[^*]+\*\*|\*[^*]+\*|`[^`]+`)/;

export const WORD = /^[␣⏎⇥]/u; // the label of a token that begins a word
const BYTES = /‹[0-9A-F]{2}(?: [0-9A-F]{2})*›/gu; // of a part of a character, see tokenizer/labels.py
const bytesIn = (/** @type {string} */ text) =>
  (text.match(/[0-9A-F]{2}/gu) ?? []).map((byte) => parseInt(byte, 16));
// Each run of such parts as the characters that they are together, at its first label; the others become empty. What
// is no whole character is left out.
/** @type {(labels: string[]) => string[]} */
export const wholeCharacters = (labels) => {
  const shown = [...labels];
  const ends = /‹[0-9A-F ]+›$/u;
  for (let at = 0; at < shown.length; at += 1) {
    let last = at;
    while (ends.test(labels[last]) && labels[last + 1]?.startsWith("‹")) last += 1;
    if (!labels[at].includes("‹")) continue;
    const joined = labels
      .slice(at, last + 1)
      .join("")
      .replace(/›‹(?!U)/gu, " ");
    shown[at] = joined.replace(BYTES, (bytes) =>
      new TextDecoder().decode(Uint8Array.from(bytesIn(bytes))).replaceAll("\ufffd", ""),
    );
    for (let next = at + 1; next <= last; next += 1) shown[next] = "";
    at = last;
  }
  return shown;
};
// Labels as a text for people: without signs for spaces, end signs or parts of characters.
/** @type {(labels: string[]) => string} */
export const inText = (labels) => {
  const { special, source_special: others, labels: own, source_labels: read } = page.run;
  const signs = new Set([...special.map((at) => own[at]), ...others.map((at) => read[at])]);
  const words = wholeCharacters(labels.filter((label) => !signs.has(label)));
  return words.join("").replace(/[␣⏎⇥]/gu, " ");
};
// Pieces of a word; a text without spaces is none.
const MAX_PIECES = 10;
// The place where the word begins that a token is part of; the token's own in a text without words.
/** @type {(labels: string[], place: number, special?: number[]) => number} */
export const wordStart = (labels, place, special = page.run.special) => {
  let first = place;
  while (first > 0 && !WORD.test(labels[first] ?? "") && !special.includes(first - 1)) first -= 1;
  return place - first > MAX_PIECES ? place : first;
};
const OPENS = /^["'“‘«([]+/u; // what is before a word is not part of it
const ENDS_WORD = /[.,:;!?…]$/u;
// A label that may follow the token at a place, with the word that it goes on with, if it does.
// text: the shown run's, or another with its facts.
/** @type {(token: {label: string, joins: boolean}, place: number, text?: {labels: string[], special: number[], stack: string}) => string} */
export const beginning = ({ label, joins }, place, text = page.run) => {
  const { labels, special, stack } = text;
  if (stack === "encoder" || !joins) return label.replace(WORD, "") || label;
  const first = wordStart(labels, place);
  const isWord = first < place || !place || WORD.test(labels[place]) || special.includes(place - 1);
  const isOver = special.includes(place) || ENDS_WORD.test(labels[place]);
  const word = inText(labels.slice(first, place + 1))
    .trim()
    .replace(OPENS, "");
  return (isWord && !isOver ? word : "") + label;
};

// A token as the word that it begins or goes on with, after a place.
/** @type {(label: string, place: number) => string} */
export const wordOf = (label, place) => beginning({ label, joins: !WORD.test(label) }, place);

const CUT_TOKENS = 8; // tokens: a text of so many, or more, may end within a word
const ENDS_TEXT = /[.!?…][”"'’»)\]]*$/u;
// What follows a place, with the beginning of the word that it goes on with, and no half word at its end.
/** @type {(labels: string[], place: number) => string} */
export const continued = (labels, place) => {
  if (!labels.length) return say("(nothing)");
  const text = beginning({ label: inText(labels), joins: !WORD.test(labels[0]) }, place).trim();
  const isCut = labels.length >= CUT_TOKENS && !ENDS_TEXT.test(text) && / /u.test(text);
  return isCut ? text.replace(/ [^ ]*$/u, " …") : text || say("(nothing)");
};

// A token of a text; its label is inserted as text only.
/** @param {{ label: string, class?: string }} props */
export const Token = ({ label, class: look }) =>
  html`<bdi translate=${false} class=${look || undefined}>${String(label)
    .split(MARKS)
    .map((part, place) => (place % 2 ? html`<span class="mark">${part}</span>` : part))}</bdi>`;

// A lesson's text: **strong**, *emphasis* and `code`, as elements; everything else is text.
/** @param {{ text: string }} props */
export const Marked = ({ text }) =>
  text.split(STRESS).map((part, place) => {
    if (place % 2 === 0) return part;
    if (part.startsWith("`")) return html`<code>${part.slice(1, -1)}</code>`;
    if (part.startsWith("**")) return html`<strong>${part.slice(2, -2)}</strong>`;
    return html`<em>${part.slice(1, -1)}</em>`;
  });

// ---- what a token reads: the weights that shade the text, and a sentence about them ----

/**
 * @typedef {object} Reading the weights of one token
 * @property {string} stack whose tokens are read
 * @property {string} whose the head's name, or which mean
 * @property {ArrayLike<number>} weights of the keys, the first of them at `first`
 * @property {number} first
 */

/** @typedef {{name: "heatmap" | "flow", data: { run: string }, whose: string, stacks: {keys: string}}} WeightsSource the numbers that hold a token's weights */
/** @typedef {(token: import("./store.js").Query) => WeightsSource | null} SourceOf */
const source = signal(/** @type {SourceOf} */ (() => null));
// The views say whose weights a token's are, as in the chosen picture.
/** @type {(given: SourceOf) => void} */
export const readFrom = (given) => void (source.value = given);
/** @type {SourceOf} */
export const sourceOf = (token) => source.value(token);

// The weight on a position of the text.
/** @type {(reading: Reading, place: number) => number} */
export const weightAt = ({ weights, first }, place) => weights[place - first] ?? 0;

/** @type {(weights: ArrayLike<number>) => number} */
const largest = (weights) => {
  let best = 0;
  for (let at = 1; at < weights.length; at += 1) if (weights[at] > weights[best]) best = at;
  return best;
};

/** @param {string} label */
const named = (label) => html`<strong><${Token} label=${label} /></strong>`;

// The state at the token: it is read, or the network is about to choose the next token.
/** @param {import("./store.js").Query} token */
const doing = ({ stack, index }) => {
  const labels = labelsOf(stack);
  const [here, next] = [named(labels[index]), labels[index + 1]];
  if (stack === "encoder") return sayWith("The encoder only reads {here}.", { here });
  if (next === undefined) {
    return sayWith("After {here} the network chooses what comes next.", { here });
  }
  const after = { here, next: named(next) };
  return sayWith("After {here} the network is about to choose the next token, {next}.", after);
};

// The most-read token, with its weight; also whether it followed the same token the last time.
/** @param {import("./store.js").Query} token @param {Reading} reading */
const most = ({ stack, index: from }, { stack: other, whose, weights, first }) => {
  const best = largest(weights);
  if (!weights[best]) return say("{whose} is switched off: it reads nothing.", { whose });
  const place = best + first;
  const labels = labelsOf(other);
  const itself = stack === other;
  const again = itself && place > 0 && place < from && labels[place - 1] === labels[from];
  const parts = { whose, token: named(labels[place]), weight: numeral(weights[best].toFixed(2)) };
  if (again) {
    const before = named(labels[from]);
    return sayWith("{whose} reads {token} most ({weight}), which followed {before} last time.", {
      ...parts,
      before,
    });
  }
  return itself && place === from
    ? sayWith("{whose} reads {token} itself most ({weight}).", parts)
    : sayWith("{whose} reads {token} most ({weight}).", parts);
};

// Two plain sentences about a token and its reading.
/** @param {{ token: import("./store.js").Query, reading: Reading }} props */
export const ReadingInWords = ({ token, reading }) => [doing(token), " ", most(token, reading)];
