// Text for people: whole characters, no end signs, no half words.
import assert from "node:assert/strict";
import test from "node:test";

import { page } from "../../transformer/web/store.js";
import {
  continued,
  inText,
  ReadingInWords,
  wholeCharacters,
  wordOf,
} from "../../transformer/web/text.js";

const END = "<|endoftext|>";
const show = (/** @type {string[]} */ labels) => {
  page.run = /** @type {any} */ ({
    ...{ labels, special: [0], source_labels: [], source_special: [], stack: "decoder" },
  });
};

test("bytes of a character, in one token or several, are the character", () => {
  const dog = ["␣", "‹F0 9F›", "‹90›", "‹B6›", "␣and"];
  assert.deepEqual(wholeCharacters(dog), ["␣", "🐶", "", "", "␣and"]);
  assert.deepEqual(wholeCharacters(["‹E4›", "‹BD A0›", "‹E5 A5›", "‹BD›", "!"]), [
    "你好",
    "",
    "",
    "",
    "!",
  ]);
  assert.deepEqual(wholeCharacters(["a‹F0›", "b"]), ["a", "b"]); // no whole character
  assert.deepEqual(wholeCharacters(["‹U+200B›", "‹F0›"]), ["‹U+200B›", ""]);
});

test("a text for people has no end sign and no half word", () => {
  show([END, "␣L"]);
  assert.equal(inText(["␣Le", "␣lit", ".", END]), " Le lit.");
  assert.equal(continued(["o", "ki", "!"], 1), "Loki!");
  const cut = ["␣help", "␣me", "␣to", "␣the", "␣big", "␣red", "␣fin", "g"];
  assert.equal(continued(cut, 1), "help me to the big red …");
  assert.equal(continued([...cut, "."], 1), "help me to the big red fing.");
  assert.equal(wordOf("ittle", 1), "Little");
  assert.equal(wordOf("␣was", 1), "was");
});

test("a token that followed the same one last time is said to, wherever it stands", () => {
  show(["a", "b", "a", "b"]);
  for (const [index, followed] of [
    [2, 1],
    [3, 2],
  ])
    for (let read = 0; read <= index; read += 1) {
      const weights = [0, 1, 2, 3].map((place) => Number(place === read));
      const reading = /** @type {any} */ ({ stack: "decoder", whose: "It", weights, first: 0 });
      const words = ReadingInWords({ token: { stack: "decoder", index }, reading }).flat();
      const said = words.filter((part) => typeof part === "string").join("");
      assert.equal(said.includes("which followed"), read === followed, `${index} reads ${read}`);
    }
});
