// Sentences of the page's scripts in the page's language, and numbers as text. The English sentence is the
// key, as in Python's transformer/messages; the bundle of scripts contains its translations
// (views/export/bundle.py).

/**
 * @typedef {{ decimal: string, group: string, group_from: number }} Signs see messages/__init__.py
 * @typedef {{ forms: string, messages: Record<string, string | string[]> } & Signs} Known
 */
/** @type {Known} */
export const known = { forms: "", decimal: ".", group: ",", group_from: 4, messages: {} };
// Say everything in a language from now on; also called with more of its sentences.
/** @type {(more: Known) => void} */
export const speak = ({ messages, ...signs }) => {
  Object.assign(known, signs);
  Object.assign(known.messages, messages);
};

/** @import { ComponentChild } from "preact" */

const HOLE = /(?<!%)\{([a-z]\w*)\}/g;

/** @type {(sentence: string) => string} */
const translation = (sentence) => {
  const entry = known.messages[sentence] ?? sentence;
  return Array.isArray(entry) ? entry[0] : entry;
};

/** @type {(sentence: string, values: Record<string, unknown>) => string} */
const filled = (sentence, values) =>
  sentence.replace(HOLE, (hole, name) => String(name in values ? values[name] : hole));

/**
 * The sentence with its placeholders' values; a placeholder without a value is kept.
 * @param {string} sentence
 * @param {Record<string, unknown>} [values]
 */
export const say = (sentence, values = {}) => filled(translation(sentence), values);

// Parts one after another, between them this language's comma, or semicolon with ";".
/** @type {(parts: string[], sign?: "," | ";") => string} */
export const sayList = ([first = "", ...others], sign = ",") =>
  others.reduce(
    (before, part) =>
      sign === ";"
        ? say("{before}; {part}", { before, part })
        : say("{before}, {part}", { before, part }),
    first,
  );

/**
 * The sentence as a list of parts, for values that are elements.
 * @param {string} sentence
 * @param {Record<string, ComponentChild>} values
 */
export const sayWith = (sentence, values) =>
  translation(sentence)
    .split(HOLE)
    .map((part, place) => (place % 2 ? values[part] : part));

// A number in English format, with the decimal and group signs of the page's language.
/** @type {(text: string) => string} */
export const numeral = (text) => {
  const [whole, ...rest] = text.split(".");
  const few = whole.replace(/\D/g, "").length < known.group_from;
  return [whole.replaceAll(",", few ? "" : known.group), ...rest].join(known.decimal);
};
const NUMBER = /[-+]?(?:\d(?:[ '’_.,]?\d)*|[.,]\d+)(?:e[-+]?\d+)?(?: ?%)?/gi;
const PERCENT = /(?<=\d ?)(?:percent|per cent|prozent|pour cent|por ciento)/gi;
const MINUS = /(?<!(?:au|lo|al) )(?:minus|moins|menos|负) ?(?=[\d.,])/gi; // not "au moins 8"
const FRACTION = /^[^\d]*(?:\/|of|von|sur|de|中的)[^\d]*$/i; // between "15" and "100"
const OF_WHICH = /^[^\d]*[里中题][^\d]*$/; // between "100" and "15"
/** @type {(number: string) => number} */
const valueOf = (number) => {
  const digits = number.replace(/[ '’_%]/g, "");
  const signs = digits.replace(/[^.,]/g, "");
  const isTwice = new Set(signs).size < signs.length; // only groups have their sign more than once
  const isGroup = signs === known.group && /^[-+]?[1-9]\d{0,2}[.,]\d{3}$/.test(digits);
  const decimal = (isTwice && new Set(signs).size === 1) || isGroup ? "" : signs.slice(-1);
  const [whole, ...rest] = decimal ? digits.split(decimal) : [digits];
  if (/[.,]/.test(whole) && !/^[-+]?\d{1,3}([.,]\d{3})+$/.test(whole)) return NaN;
  const value = Number([whole.replace(/[.,]/g, ""), ...rest].join("."));
  return number.endsWith("%") ? value / 100 : value;
};
// The one number in a typed text, or after its last "=", as the page writes it or with another language's
// signs; of "15 of 100" the first, of "1/8" their ratio; NaN for none, or several.
/** @type {(text: string) => number} */
export const numberOf = (text) => {
  const typed = text.normalize("NFKC"); // thin spaces, full-width digits
  const plain = typed
    .slice(typed.lastIndexOf("=") + 1)
    .replace(/[−–—]/g, "-")
    .replace(MINUS, "-")
    .replace(/百分之 ?(\d+(?:[.,]\d+)?)/g, "$1 %")
    .replace(PERCENT, "%");
  const numbers = [...plain.matchAll(NUMBER)];
  const [first, second] = numbers;
  if (numbers.length === 1) return valueOf(first[0]);
  if (numbers.length !== 2) return NaN;
  const between = plain.slice(first.index + first[0].length, second.index);
  const [n, all] = [valueOf(first[0]), valueOf(second[0])];
  if (n === 100 && OF_WHICH.test(between)) return all;
  if (!FRACTION.test(between)) return NaN;
  return between.trim() === "/" && all !== 100 ? n / all : n;
};
// A whole number, its digits in groups.
/** @type {(count: number) => string} */
export const wholeText = (count) => numeral(String(count).replace(/\B(?=(\d{3})+$)/g, ","));

// Both ends of a signed colour scale, for a sentence's {least} and {most}.
/** @type {(limit: number) => {least: string, most: string}} */
export const colourEnds = (limit) => ({
  least: numeral((-limit).toPrecision(3)),
  most: numeral(limit.toPrecision(3)),
});

// A text as a whole sentence: with a capital letter and the language's full stop.
/** @type {(text: string) => string} */
export const capital = (text) => text.replace(/^./u, (first) => first.toLocaleUpperCase());
/** @type {(text: string) => string} */
export const asSentence = (text) => say("{sentence}.", { sentence: capital(text) });

/**
 * The sentence for n things; {n} is the number.
 * @param {string} one
 * @param {string} many
 * @param {number} n
 * @param {Record<string, unknown>} [values]
 */
export const sayN = (one, many, n, values = {}) => {
  const forms = known.messages[one];
  const plain = n === 1 ? one : many;
  const form = Array.isArray(forms)
    ? forms[Number(known.forms[n < 100 ? n : 100 + (n % 100)])]
    : plain;
  return filled(form, { n: wholeText(n), ...values });
};

// Numbers as text.

// A difference that should be almost 0: "1.2e−7", or "0".
/** @type {(value: number) => string} */
export const tinyNumber = (value) =>
  value === 0 ? "0" : numeral(value.toExponential(1)).replace("-", "−");

// A probability as a bar's label: "86 %", "1.7 %"; or with this many digits.
/** @type {(p: number, digits?: number) => string} */
export const percentText = (p, digits = p < 0.0995 ? 1 : 0) =>
  p > 0 && p < 0.001 ? `<${numeral("0.1")} %` : `${numeral((100 * p).toFixed(digits))} %`;
