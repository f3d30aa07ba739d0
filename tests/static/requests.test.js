// Which settings of a request the browser's engine takes.
import assert from "node:assert/strict";
import test from "node:test";

import { requestOf } from "../../transformer/browser/requests.js";

const RANGES = {
  temperature: [0, 100],
  top_k: [0, 1_000_000],
  top_p: [0, 1],
  seed: [0, 2 ** 32 - 1],
  max_new_tokens: [1, 200],
  beams: [1, 16],
  length_penalty: [0, 5],
};
const WHOLE = ["top_k", "seed", "max_new_tokens", "beams"];

test("a setting is taken up to its ends and not beyond, whole where it counts", () => {
  const all = Object.fromEntries(Object.entries(RANGES).map(([name, [low]]) => [name, low]));
  for (const [name, [low, high]] of Object.entries(RANGES)) {
    const method = ["beams", "length_penalty"].includes(name) ? "beam" : "sample";
    const given = (/** @type {any} */ value) =>
      requestOf({ text: "x", ...all, temperature: 1, method, [name]: value });
    for (const value of [low, high]) assert.doesNotThrow(() => given(value), `${name} ${value}`);
    const wrong = [low - 1, high + 1, NaN, ...(WHOLE.includes(name) ? [low + 0.5] : [])];
    for (const value of wrong) assert.throws(() => given(value), Error, `${name} ${value}`);
  }
});
