// What is drawn from, against Python's sampling; and where the bands of the journey run.
import assert from "node:assert/strict";
import test from "node:test";

import { distribution, draws } from "../../transformer/views/journey/distribution.js";
import { bandsOf, geometryOf } from "../../transformer/views/journey/geometry.js";
import { apart, vectors } from "./vectors.js";

test("what is drawn from is Python's, at every temperature, top-k and top-p, with equal logits too", () => {
  assert.equal(vectors.draws.length, 48);
  for (const { logits, settings, drawn } of vectors.draws) {
    const { probabilities, count } = distribution(Float32Array.from(logits), settings);
    const said = JSON.stringify(settings);
    assert.ok(apart(probabilities, drawn) < 1e-5, said);
    assert.equal(count, drawn.filter((one) => one > 0).length, said);
  }
});

test("where nothing is drawn, the network's own probabilities are shown, and one token can come", () => {
  const { logits } = vectors.draws[0];
  const plain = { method: "sample", temperature: 1, top_k: 0, top_p: 1 };
  const own = distribution(logits, plain).probabilities;
  for (const change of [{ method: "greedy" }, { method: "beam" }, { temperature: 0 }]) {
    const settings = { ...plain, ...change, top_k: 2 };
    assert.equal(draws(settings), false);
    assert.deepEqual(distribution(logits, settings), { probabilities: own, count: 1 });
  }
});

const WIDE = {
  width: 560,
  height: 660,
  nLayers: 3,
  nHeads: 2,
  kinds: [{ kind: "self" }],
  small: true,
  source: false,
};

test("a band is as wide as its part adds, and the bands of a layer do not cross", () => {
  const at = geometryOf(WIDE);
  const heads = { self: Float32Array.of(4, 1, 0.01, -2, 0, 0) };
  const bands = bandsOf(at, { heads, feed_forward: Float32Array.of(2, 0, 0) }, WIDE.kinds);
  assert.deepEqual(bands.map(({ amount }) => amount).sort(), [-2, 1, 2, 4]);
  const of = (wanted) => /** @type {any} */ (bands.find(({ amount }) => amount === wanted));
  const [wide, narrow] = [of(4).width, of(1).width];
  assert.ok(Math.abs(wide - 4 * narrow) < 1e-6);
  assert.ok(of(4).lane > of(1).lane && of(1).lane > of(2).lane); // head 0, head 1, the feed-forward below them
  assert.ok(of(4).lane < at.x(1)); // beside their own layer
});
