// The scripts' sentences in another language, and the glossary's terms found in a text.
import assert from "node:assert/strict";
import test from "node:test";

import { known, numeral, say, sayList, sayN } from "../../transformer/web/messages.js";
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

test("a token is joined to the word before it, but not after a full stop", () => {
  page.run = /** @type {any} */ ({
    labels: ["<s>", "␣L", "o", "."],
    special: [0],
    source_labels: [],
    source_special: [],
    stack: "decoder",
  });
  const after = (place) => beginning({ label: "ki", joins: true }, place);
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
  getElementById: (id) => (id === "glossary" ? { textContent: JSON.stringify(glossary) } : null),
  addEventListener: () => {},
});
const { termsIn } = await import("../../transformer/server/static/terms.js");
const found = (text) => termsIn(text).map(({ at, end, term }) => [text.slice(at, end), term]);

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
