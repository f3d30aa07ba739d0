// The scripts' sentences in another language, and the glossary's terms found in a text.
import assert from "node:assert/strict";
import test from "node:test";

import { known, numberOf, numeral, say, sayList, sayN } from "../../transformer/web/messages.js";
import { page } from "../../transformer/web/store.js";
import { beginning } from "../../transformer/web/text.js";

Object.assign(known, {
  forms: Array.from({ length: 200 }, (_, n) => (n === 1 ? 0 : n > 4 ? 2 : 1)).join(""),
  decimal: ",",
  group: ".",
  group_from: 5,
  messages: {
    "no {name}; got {got}": "{got}: NOT {name}",
    "{before}; {part}": "{before}；{part}",
    "{n} token": ["ONE", "{n} FEW", "{n} MANY"],
  },
});

test("a sentence is looked up, and its values are filled in once", () => {
  assert.equal(say("no {name}; got {got}", { name: "{got}", got: 3 }), "3: NOT {got}");
  assert.equal(
    say("not translated %{x} {yet}", { x: 1, yet: "still" }),
    "not translated %{x} still",
  );
});

test("a list has the signs of the language", () => {
  const lists = [[], ["a"], ["a", "{part}", "c"]].map((parts) => sayList(parts, ";"));
  assert.deepEqual(lists, ["", "a", "a；{part}；c"]);
});

test("a number takes its form", () => {
  const said = [0, 1, 3, 5, 301, 1000].map((n) => sayN("{n} token", "{n} tokens", n));
  assert.deepEqual(said, ["0 FEW", "ONE", "3 FEW", "5 MANY", "301 MANY", "1000 MANY"]);
  assert.deepEqual(
    [1, 2].map((n) => sayN("{n} head", "{n} heads", n)),
    ["1 head", "2 heads"],
  );
});

test("numbers have the signs of the language, and groups where it makes them", () => {
  const written = ["0.25", "-1,234.5", "12,345.6", "1.2e-7", "12,345"].map(numeral);
  assert.deepEqual(written, ["0,25", "-1234,5", "12.345,6", "1,2e-7", "12.345"]);
});

test("an answer's number is read as the page or a pupil writes it, in each language", () => {
  const german = { ...known };
  const SIGNS = { en: [".", ",", 4], de: [",", ".", 5], fr: [",", "\u202f", 5], es: [",", ".", 5] };
  const anywhere = {
    "0,85": 0.85, "0.85": 0.85, ".85": 0.85, "85 %": 0.85, "85\u202f%": 0.85, "９５％": 0.95,
    "about 9,5 %": 0.095, "≈0.85": 0.85, "etwa 9,5 Prozent": 0.095, "environ 9,5 pour cent": 0.095,
    "unos 9,5 por ciento": 0.095, "约９．５％": 0.095, "百分之9": 0.09, "大约0.85左右": 0.85,
    "−0,01": -0.01, "–1.75": -1.75, "524288": 524288, "524 288": 524288, "524\u202f288": 524288,
    "524\u2009288": 524288, "524'288": 524288, "1,234,567": 1234567, "1.234.567": 1234567,
    "1.234,5": 1234.5, "1,234.5": 1234.5, "15,46": 15.46, "0.85.": 0.85, "1,2e-7": 1.2e-7,
    "15 of 100": 15, "15 von 100": 15, "15 sur 100": 15, "15/100": 15, "1/8": 0.125, "32 numbers": 32,
    "100个里答对15个": 15, "2048 × 256 = 524288": 524288, "minus 1.75": -1.75, "au moins 8": 8, "负1.75": -1.75, "—0,5": -0.5,
  }; // prettier-ignore
  for (const [language, [decimal, group, group_from]] of Object.entries(SIGNS)) {
    Object.assign(known, { decimal, group, group_from });
    for (const [text, value] of Object.entries(anywhere)) {
      assert.equal(numberOf(text), value, `${language}: ${text}`);
    }
    for (const written of ["0.849", "15.46", "524,288", "2,048", "-1,234.5", "-0.01"]) {
      const value = Number(written.replaceAll(",", ""));
      assert.equal(numberOf(numeral(written)), value, `${language}: ${numeral(written)}`);
    }
    for (const none of [
      "",
      "many",
      "%",
      "5·0",
      "0.8-0.9",
      "1,2,3",
      "12.34.56",
      "7 or 8",
      "2,048 × 256",
      "= ?",
      "L 5·0 is 0.3",
    ]) {
      assert.ok(Number.isNaN(numberOf(none)), `${language}: ${none}`);
    }
  }
  Object.assign(known, german);
});

test("a token is joined to the word before it, but not after a full stop", () => {
  page.run = /** @type {any} */ ({
    labels: ["<s>", "␣L", "o", "."],
    special: [0],
    source_labels: [],
    source_special: [],
    stack: "decoder",
  });
  const after = (/** @type {number} */ place) => beginning({ label: "ki", joins: true }, place);
  assert.deepEqual([0, 1, 2, 3].map(after), ["ki", "Lki", "Loki", "ki"]);
  page.run.labels = ["<s>", '␣"', "Lo"];
  assert.equal(after(2), "Loki"); // not the quotation mark
});

const glossary = {
  head: { words: ["head", "heads", "头"], says: "One.", other: ["箭头"] },
  attention: { words: ["attention"], says: "Two." },
  "self-attention": { words: ["self-attention"], says: "Three." },
};
globalThis.document = /** @type {any} */ ({
  getElementById: (/** @type {string} */ id) =>
    id === "glossary" ? { textContent: JSON.stringify(glossary) } : null,
  addEventListener: () => {},
});
const { termsIn } = await import("../../transformer/server/static/terms.js");
const found = (/** @type {string} */ text) =>
  termsIn(text).map(({ at, end, term }) => [text.slice(at, end), term]);

test("a term is found in all its forms, longest first, at word boundaries", () => {
  assert.deepEqual(found("Heads ahead: self-attention, head's attention"), [
    ["Heads", "head"],
    ["self-attention", "self-attention"],
    ["head", "head"],
    ["attention", "attention"],
  ]);
});

test("what only looks like a word is none", () => {
  assert.deepEqual(found("按箭头键，看第5个头。"), [["头", "head"]]);
});
