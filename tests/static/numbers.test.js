// Softmax, the colours' values, and what is drawn from: against Python.
import assert from "node:assert/strict";
import test from "node:test";

import { colourValues, headNumbers } from "../../transformer/web/head_numbers.js";
import { cellsOf, lookOf, partOf, placesOf } from "../../transformer/web/heatmap.js";
import { apart, vectors } from "./vectors.js";
import { stepsOf, workOutRow } from "../../transformer/views/attention/row_arithmetic.js";
import {
  linesOfAlignment,
  linesOfQueries,
  linked,
} from "../../transformer/views/attention/lines.js";
import { linesOfHeads } from "../../transformer/views/attention/head_lines.js";
import { distribution, draws } from "../../transformer/views/journey/distribution.js";

test("the figure of a head, filled in by the page, is that of Python", () => {
  const { answer, weights, figures } = vectors.head;
  const numbers = headNumbers(answer);
  assert.ok(apart(numbers.weights, weights.flat()) < 1e-6);
  assert.equal(figures.length, 18);
  for (const wanted of figures) {
    const name = `${wanted.stage} ${wanted.scale} ${wanted.range}`;
    const [look] = lookOf(numbers, wanted).data;
    for (const same of ["colorscale", "colorbar", "hovertemplate"])
      assert.deepEqual(look[same], wanted[same], name);
    assert.ok(apart([look.zmin, look.zmax], [wanted.zmin, wanted.zmax]) < 1e-5, name);
    /** @type {Record<string, any>} */
    const cells = cellsOf(numbers, wanted, look.hovertemplate);
    wanted.z.forEach((/** @type {any} */ row, /** @type {number} */ place) =>
      assert.ok(apart(cells.z[place], row) < 1e-5, name),
    );
    assert.ok(apart(cells.customdata.flat(2), wanted.numbers.flat(2)) < 1e-4, name);
    assert.deepEqual(cells.text, wanted.text);
  }
});

test("lines between tokens, drawn by the page, are those of Python", () => {
  assert.equal(vectors.lines.length, 10);
  for (const { answer, columns, data, query = null, threshold, by } of vectors.lines) {
    const numbers = headNumbers(answer);
    const names = columns.data.map((/** @type {any} */ { customdata }) => customdata);
    const lines = by
      ? linesOfAlignment(numbers, names, by)
      : linesOfQueries(numbers, names, query, threshold);
    assert.deepEqual(linked(columns, lines, query).data, data, `${query} ${threshold} ${by}`);
  }
});

test("scores and weights are the network's, to the rounding of float32", () => {
  const { answer, scores, weights } = vectors.vectors;
  const most = Math.max(...scores.map(Math.abs));
  const later = headNumbers(answer);
  assert.ok(most > 20);
  assert.ok(apart(later.weights, weights) < 1e-5);
  assert.ok(apart(later.scores, scores) < 1e-5 * most);
  assert.equal(later.scores, later.scores); // worked out once
  const values = colourValues(later, "masked", "linear");
  const shown = scores.map((/** @type {number} */ score, /** @type {number} */ at) =>
    later.allowed[at] ? score : null,
  );
  assert.ok(apart(values.map((row) => [...row]).flat(), shown) < 1e-5 * most);
});

test("of a long text every cell is drawn once the picture is zoomed in", () => {
  assert.deepEqual(partOf(512, 640), { top: 0, left: 0, down: 512, across: 640, step: 1 });
  const far = partOf(1024, 1024);
  assert.deepEqual(far, { top: 0, left: 0, down: 1024, across: 1024, step: 2 });
  assert.deepEqual(placesOf(far), { x0: 0.5, dx: 2, y0: 0.5, dy: 2 });
  const near = partOf(1024, 1024, { x: [99.5, 299.5], y: [1023.5, 823.5] });
  assert.deepEqual(near, { top: 774, left: 50, down: 250, across: 300, step: 1 });
  const between = partOf(3000, 3000, { x: [-200, 800.2], y: [1.5, 900.5] });
  assert.deepEqual([between.step, between.left, between.top % 2], [2, 0, 0]);
});

test("sampling probabilities are those of Python for all settings and ties", () => {
  assert.equal(vectors.draws.length, 48);
  for (const { logits, settings, never, drawn, count: wanted } of vectors.draws) {
    const { probabilities, count } = distribution(Float32Array.from(logits), settings, never);
    const said = JSON.stringify(settings);
    assert.ok(apart(probabilities, drawn) < 1e-5, said);
    assert.equal(count, wanted, said);
  }
});

test("greedy decoding shows the network's probabilities and one candidate", () => {
  const { logits } = vectors.draws[0];
  const plain = { method: "sample", temperature: 1, top_k: 0, top_p: 1 };
  const own = distribution(logits, plain, null).probabilities;
  for (const change of [{ method: "greedy" }, { method: "beam" }, { temperature: 0 }]) {
    const settings = { ...plain, ...change, top_k: 2 };
    assert.equal(draws(settings), false);
    assert.deepEqual(distribution(logits, settings, null), { probabilities: own, count: 1 });
  }
});

test("a score is divided by what its network divides it by, and called so", () => {
  const one = { keys: Float32Array.of(6, 8), values: Float32Array.of(1, 1), allowed: [1] };
  const row = { q: Float32Array.of(1, 1), ...one, bias: null, cap: null };
  /** @type {[number, boolean, RegExp, string][]} */
  const networks = [
    [2, false, /head's size/, "14.000 / √2 = 9.899"],
    [4, true, /historical network/, "14.000 / √4 = 7.000"],
    [1, false, /own:$/, "14.000 / √1 = 14.000"], // T5, GPT-Neo
    [0.1 ** -2, false, /own:$/, "14.000 / √100 = 1.400"], // Granite
  ];
  for (const [score_size, historical, words, reckoning] of networks) {
    const whole = { ...row, score_size, historical };
    const [, [says, worked]] = stepsOf(whole, workOutRow(whole), 0);
    assert.match(says, words);
    assert.equal(worked, reckoning);
  }
});

test("a capped score is worked out in words", () => {
  const row = { q: Float32Array.of(1, 1), keys: Float32Array.of(6, 8), values: Float32Array.of(1) };
  const whole = { ...row, allowed: [1], bias: null, cap: 8, score_size: 2, historical: false };
  const [, , [says, worked]] = stepsOf(whole, workOutRow(whole), 0);
  assert.match(says, /no score exceeds 8:/);
  assert.equal(worked, "8 tanh(9.899 / 8) = 6.758"); // by hand: tanh(1.2374) = 0.8447
});

test("lines of several heads are the strongest of each, and of a pair all", () => {
  const heads = [[0.9, 0, 0.3, 0.7], [0.04, 0.96, 0.6, 0.4], [0.5, 0.5, 0, 1]].map((weights) => ({
    weights: Float32Array.from(weights),
    allowed: Uint8Array.from([1, 0, 1, 1]),
  })); // prettier-ignore
  const names = [
    ["a", "b"],
    ["a", "b"],
  ];
  /** @type {(query: number | null, key: number | null, threshold: number) => string[]} */
  const told = (query, key, threshold) =>
    linesOfHeads(heads, names, query, key, threshold).map(({ head, from, to }) =>
      [head, from, to].join(""),
    );
  assert.deepEqual(told(null, null, 0.5), ["211", "000", "011", "110", "200"]);
  assert.deepEqual(told(1, null, 0.5), ["211", "011", "110"]);
  assert.deepEqual(told(1, 0, 0.5), ["110", "010"]); // however small, but for 0
  assert.deepEqual(told(0, 0, 0.5), ["000", "200", "100"]);
});
