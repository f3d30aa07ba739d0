// The browser's engine against Python's.
import assert from "node:assert/strict";
import test from "node:test";

import { Text } from "../../transformer/browser/text.js";
import { apart, modelOf, vectors } from "./vectors.js";

test("texts in five scripts have Python's ids, labels and bytes", async () => {
  const { tokenizer } = await modelOf("stories");
  assert.equal(vectors.texts.length, 200);
  for (const { text, ids, decoded } of vectors.texts) {
    assert.deepEqual(tokenizer.encode(text), ids, text);
    assert.equal(tokenizer.decode(ids), decoded);
  }
  const labels = vectors.labels.map((/** @type {string} */ _, /** @type {number} */ id) =>
    tokenizer.label(id),
  );
  assert.deepEqual(labels, vectors.labels);
});

test("a greedy text has Python's tokens, logits, weights and contributions", async () => {
  const model = await modelOf("stories");
  for (const wanted of vectors.greedy) {
    const { text, ids, nPrompt } = await model.generate({
      text: wanted.text,
      max_new_tokens: 60,
      temperature: 0,
    });
    assert.deepEqual(ids, wanted.ids);
    assert.equal(nPrompt, wanted.n_prompt);
    const atOnce = new Text(model.network);
    atOnce.read(ids);
    for (const read of [text, atOnce]) {
      for (const { place, logits } of wanted.logits)
        assert.ok(apart(read.logitsAt(place), logits) < 1e-4);
      for (const { site, head, weights } of wanted.weights)
        assert.ok(apart(read.weights(site, head), weights) < 1e-5, site);
      const { heads, forward, biases, others } =
        read.contributions(wanted.place, wanted.target) ?? assert.fail();
      assert.ok(apart(heads.self, wanted.parts.heads) < 1e-4);
      assert.ok(apart(forward, wanted.parts.forward) < 1e-4);
      assert.ok(apart(biases, wanted.parts.biases) < 1e-4);
      assert.deepEqual(Object.keys(others), Object.keys(wanted.parts.others));
      assert.ok(apart(Object.values(others), Object.values(wanted.parts.others)) < 1e-4);
    }
  }
});

test("sampled texts have Python's tokens for all filters and seeds", async () => {
  const model = await modelOf("stories");
  assert.equal(vectors.sampled.length, 40);
  for (const { request, ids, stopped } of vectors.sampled) {
    const run = await model.generate(request);
    assert.deepEqual(run.ids, ids, JSON.stringify(request));
    assert.equal(run.stopped, stopped);
  }
});
