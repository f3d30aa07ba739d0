// A link's text, which Python reads back, and the address of a page inside another one.
import assert from "node:assert/strict";
import test from "node:test";

import {
  TOO_LONG,
  foreignPart,
  holdsOwn,
  oneOf,
  queryOf,
  siteNamed,
  stateOf,
  wholeNumber,
  isEmbedded,
  withoutEmbed,
} from "../../transformer/web/link_text.js";
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

test("parts of the framework's are told from ours", () => {
  assert.equal(holdsOwn("text=a"), true);
  assert.equal(holdsOwn("__theme=dark&view=api"), false);
  assert.equal(holdsOwn("section"), false);
  assert.equal(foreignPart("text=a&__theme=dark&view=api"), "__theme=dark&view=api");
});

test("what a link gives is checked, with a sentence", () => {
  assert.equal(oneOf("tab", "masks", ["masks"]), "masks");
  assert.throws(() => oneOf("tab", "x".repeat(50), ["a", "b"]), {
    message: `The link's tab must be one of a, b; got ${"x".repeat(40)}….`,
  });
  assert.equal(wholeNumber("head", "3", 0, 3), 3);
  for (const text of ["4", "-1", "1.0", "1e0", " 1", "", "１"]) {
    assert.throws(() => wholeNumber("head", text, 0, 3), /whole number from 0 to 3/);
  }
  const item = { kinds: [{ stack: "decoder", kind: "self", n_layers: 2 }] };
  assert.deepEqual(siteNamed("site", "decoder.1.self", item), {
    stack: "decoder",
    layer: 1,
    kind: "self",
  });
  assert.throws(
    () => siteNamed("site", "decoder.2.self", item),
    /decoder.0.self to decoder.1.self/,
  );
});

test("a link's text gives the state that it was written from", async () => {
  for (const state of vectors.states)
    assert.deepEqual(await stateOf((await queryOf(state)) ?? ""), state);
  assert.deepEqual(await stateOf("text=a&text=b&__theme=dark"), { text: "a" });
  assert.equal(await stateOf("z=broken"), null);
});

test("?embed is how a page is shown: it stays in the address, and is no part of what it shows", async () => {
  for (const search of ["?embed", "?embed=", "?embed=1", "?__theme=dark&embed"])
    assert.equal(isEmbedded(search), true, search);
  assert.equal(isEmbedded("?text=embed"), false);
  assert.equal(holdsOwn("embed=1"), false);
  assert.deepEqual(await stateOf("embed=1&tab=masks"), { tab: "masks" });
  assert.equal(foreignPart("embed&text=a&__theme=dark"), "embed&__theme=dark");
  assert.equal(withoutEmbed("?embed"), "");
  assert.equal(withoutEmbed("?__theme=dark&embed=1"), "?__theme=dark");
});
