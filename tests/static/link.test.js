// A link's text, which Python reads back, and the address of an embedded page.
import assert from "node:assert/strict";
import test from "node:test";

import { TOO_LONG, queryOf, stateOf } from "../../transformer/web/link_text.js";
import { hand, vectors } from "./vectors.js";

test("a state becomes a query, and a long one a compressed query", async () => {
  const queries = await Promise.all(vectors.states.map(queryOf));
  assert.ok(queries.some((query) => query.startsWith("z=")));
  assert.ok(queries.some((query) => !query.startsWith("z=")));
  assert.ok(queries.every((query) => query.length <= 6000));
  hand("links", queries); // Python: each holds the state that it was made of
});

test("a state that no link can hold has none", async () => {
  const noise = Array.from({ length: 20000 }, (_, at) =>
    String.fromCodePoint(0x4e00 + ((at * 7919) % 20000)),
  );
  assert.equal(await queryOf({ text: noise.join("") }), null);
  assert.equal(await queryOf({ text: "x".repeat(70000) }), null);
  assert.match(TOO_LONG, /6,000 characters/);
});

test("a link's text gives the state that it was written from", async () => {
  for (const state of vectors.states)
    assert.deepEqual(await stateOf((await queryOf(state)) ?? ""), state);
  assert.deepEqual(await stateOf("text=a&text=b&__theme=dark"), { text: "a" });
  assert.equal(await stateOf("z=broken"), null);
});
