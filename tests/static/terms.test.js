// Which words of a text are terms of the glossary.

import assert from "node:assert/strict";
import test from "node:test";

const entries = {
  head: { words: ["head", "heads", "头"], says: "One.", other: ["箭头"] },
  attention: { words: ["attention"], says: "Two." },
  "self-attention": { words: ["self-attention"], says: "Three." },
};
globalThis.document = /** @type {any} */ ({
  getElementById: (id) => (id === "glossary" ? { textContent: JSON.stringify(entries) } : null),
  addEventListener: () => {},
});
const { termsIn } = await import("../../transformer/ui/static/terms.js");
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
