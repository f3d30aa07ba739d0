// What is drawn from, against Python's sampling.
import assert from "node:assert/strict";
import test from "node:test";

import { distribution, draws } from "../../transformer/views/journey/distribution.js";
import { apart, vectors } from "./vectors.js";

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
