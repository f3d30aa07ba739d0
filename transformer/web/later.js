// Says the texts of a page without a server, whose data has the calls of Python's `say` and its like in place of their texts:
// see `said_later` of transformer/messages. A call's arguments may hold others.

import { capital, known, numeral, say, sayN } from "./messages.js";

const CALL = /\ue000([^\ue000\ue002]*)\ue002/g;

/** @type {(named: string[]) => Record<string, string>} */
const valuesOf = (named) =>
  Object.fromEntries(named.map((one) => [one.split("=", 1)[0], one.slice(one.indexOf("=") + 1)]));

/** @type {Record<string, (...given: string[]) => string>} */
const FUNCTIONS = {
  say: (sentence, ...named) => say(sentence, valuesOf(named)),
  say_n: (one, many, n, ...named) => sayN(one, many, Number(n), valuesOf(named)),
  _number: numeral,
  signs: () => known.decimal + known.group,
  capital,
  lines: (text, width) =>
    (text.match(new RegExp(`\\S.{0,${Number(width) - 1}}(?!\\S)|\\S{${width}}`, "g")) ?? []).join(
      "<br>",
    ),
};

/** @type {(whole: string, call: string) => string} */
const called = (whole, call) => {
  try {
    const [name, ...given] = call.split("\ue001");
    return FUNCTIONS[name](...given);
  } catch {
    return whole; // a label that is not a tokenizer's may have any character
  }
};

// A text with every call in it replaced by what it says.
/** @type {(text: string) => string} */
export const said = (text) => {
  const inner = text.replace(CALL, called);
  return inner === text ? text : said(inner);
};
