// Grading in a lesson's offline file: against Python's verdicts.
import assert from "node:assert/strict";
import test from "node:test";

import { grade, numberText, rightAnswer } from "../../transformer/views/export/static/grading.js";
import { vectors } from "./vectors.js";

test("every answer to every kind of check gets Python's verdict, in Python's words", () => {
  assert.ok(vectors.grading.length >= 10);
  for (const { check, given } of vectors.grading) {
    for (const { answer, right, says } of given)
      assert.deepEqual(grade(check, answer), { right, says }, JSON.stringify([check.kind, answer]));
    assert.deepEqual([...new Set(given.map(({ right }) => right))].toSorted(), [false, true]);
  }
});

test("the answer that is shown in the end is right", () => {
  for (const { check } of vectors.grading) assert.ok(grade(check, rightAnswer(check)).right);
});

test("what has no number is told in Python's words", () => {
  for (const { check, answer, says } of vectors.ungraded)
    assert.deepEqual(grade(check, answer), { right: null, says });
});

test("numbers are written as in Python", () => {
  for (const { value, text } of vectors.numerals) assert.equal(numberText(value), text);
});
