// What the page writes of a tensor: its numbers and its shape.
import assert from "node:assert/strict";
import test from "node:test";

import { axesText, shownNumber } from "../../transformer/views/equations/equations.js";

test("a tensor's numbers have three digits, a lone whole one none, and tiny and huge ones a power", () => {
  assert.deepEqual(
    [0.24749, -1.3941, 1, 0, "−∞", "True"].map((one) => shownNumber(one)),
    ["0.247", "−1.394", "1.000", "0.000", "−∞", "True"],
  );
  assert.equal(shownNumber(4, true), "4");
  assert.equal(shownNumber(5.65685, true), "5.657");
  assert.equal(shownNumber(2.1e-5), "2.1e−5");
  assert.equal(shownNumber(-2.1e-5), "−2.1e−5");
  assert.equal(shownNumber(-3.4028234663852886e38, true), "−3.4e38");
});

test("a shape tells its letters and sizes, a single number none", () => {
  const axes = /** @type {[string, number][]} */ ([
    ["B", 1],
    ["H", 8],
    ["Tq", 17],
    ["D", 32],
  ]);
  assert.equal(axesText(axes), "B × H × Tq × D = 1 × 8 × 17 × 32");
  assert.equal(axesText([]), "");
});
