// Softmax, the colours' values, and what is drawn from: against Python.
import assert from "node:assert/strict";
import test from "node:test";

import { colourValues, headNumbers } from "../../transformer/web/head_numbers.js";
import { headFigure, partOf, placesOf, roundValues } from "../../transformer/web/heatmap_figure.js";
import { apart, vectors } from "./vectors.js";
import { distribution, draws } from "../../transformer/views/journey/distribution.js";

test("cells, colours, ticks, axes and hatching of a head are those of Python", () => {
  const { answer, weights, figures, theme } = vectors.head;
  const labels = { query: answer.query_labels, key: answer.key_labels };
  const fit = { side: { width: 2000, height: 2000 } };
  const plain = /** @type {any} */ (globalThis);
  const pen = { measureText: () => ({ width: 10 }) };
  plain.document = { createElement: () => ({ getContext: () => pen }) };
  const numbers = headNumbers(answer);
  assert.ok(apart(numbers.weights, weights.flat()) < 1e-6);
  assert.equal(figures.length, 18);
  for (const { axes, hatching, ...wanted } of figures) {
    const { data, layout } = headFigure({ numbers, labels, look: wanted, theme, fit });
    const [{ z, zmin, zmax, colorscale, colorbar }] = data;
    const name = `${wanted.stage} ${wanted.scale} ${wanted.range}`;
    wanted.z.forEach((row, place) => assert.ok(apart(z[place], row) < 1e-5, name));
    assert.ok(apart([zmin, zmax], [wanted.zmin, wanted.zmax]) < 1e-5, name);
    assert.deepEqual(colorscale, wanted.colorscale);
    if (wanted.ticktext) assert.deepEqual(colorbar.ticktext, wanted.ticktext, name);
    if (wanted.tickvals) assert.ok(apart(colorbar.tickvals, wanted.tickvals) < 1e-4, name);
    for (const axis of ["xaxis", "yaxis"]) {
      assert.deepEqual(layout[axis].range, axes[axis].range);
      assert.equal(layout[axis].title.text, axes[axis].title.text);
    }
    const [{ path, line }] = layout.shapes;
    assert.equal(line.color, hatching.color);
    /** @type {(text: string) => number[]} */
    const places = (text) => text.match(/-?[\d.]+/g)?.map(Number) ?? [];
    assert.ok(apart(places(path), places(hatching.path)) < 1e-3);
  }
  delete plain.document;
});

test("scores and weights are the network's, to the rounding of float32", () => {
  const { answer, scores, weights } = vectors.vectors;
  const most = Math.max(...scores.map(Math.abs));
  const later = headNumbers(answer);
  assert.ok(most > 20);
  assert.ok(apart(later.weights, weights) < 1e-5);
  assert.ok(apart(later.scores, scores) < 1e-5 * most);
  assert.equal(later.scores, later.scores); // worked out once
  const values = colourValues(later, 13, "masked", "linear");
  const shown = scores.map((score, at) => (later.allowed[at] ? score : null));
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

test("round values lie within the colours, as many as there is room for", () => {
  assert.deepEqual(roundValues(-9.3, 9.3, 10), [
    [-8, -6, -4, -2, 0, 2, 4, 6, 8],
    ["−8", "−6", "−4", "−2", "0", "2", "4", "6", "8"],
  ]);
  assert.deepEqual(roundValues(-1, 1, 4)[1], ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
  for (const bound of [1e-6, 0.007, 0.5, 3, 42, 1e5]) {
    for (const count of [0.5, 2, 7, 12]) {
      const [values] = roundValues(-bound, bound, count);
      assert.ok(values.includes(0), `${bound} ${count}`);
      assert.ok(values.length <= count + 1);
      assert.ok(values.every((value) => Math.abs(value) <= bound * 1.000001));
    }
  }
});

test("sampling probabilities are those of Python for all settings and ties", () => {
  assert.equal(vectors.draws.length, 48);
  for (const { logits, settings, drawn } of vectors.draws) {
    const { probabilities, count } = distribution(Float32Array.from(logits), settings);
    const said = JSON.stringify(settings);
    assert.ok(apart(probabilities, drawn) < 1e-5, said);
    assert.equal(count, drawn.filter((one) => one > 0).length, said);
  }
});

test("greedy decoding shows the network's probabilities and one candidate", () => {
  const { logits } = vectors.draws[0];
  const plain = { method: "sample", temperature: 1, top_k: 0, top_p: 1 };
  const own = distribution(logits, plain).probabilities;
  for (const change of [{ method: "greedy" }, { method: "beam" }, { temperature: 0 }]) {
    const settings = { ...plain, ...change, top_k: 2 };
    assert.equal(draws(settings), false);
    assert.deepEqual(distribution(logits, settings), { probabilities: own, count: 1 });
  }
});
