// The address of a page inside another one, and a presenter's keys.
import assert from "node:assert/strict";
import test from "node:test";

import {
  foreignPart,
  holdsOwn,
  isEmbedded,
  shortQueryOf,
  stateOf,
  withoutEmbed,
} from "../../transformer/web/link_text.js";

test("?embed is how a page is shown, and no part of what it shows", async () => {
  for (const search of ["?embed", "?embed=", "?embed=1", "?__theme=dark&embed"])
    assert.equal(isEmbedded(search), true, search);
  assert.equal(isEmbedded("?text=embed"), false);
  assert.equal(holdsOwn("embed=1"), false);
  assert.deepEqual(await stateOf("embed=1&tab=masks"), { tab: "masks" });
});

test("it stays in the address, and the whole page's address is the same without it", () => {
  assert.equal(foreignPart("embed&text=a&__theme=dark"), "embed&__theme=dark");
  assert.equal(foreignPart("text=a"), "");
  assert.equal(withoutEmbed("?embed"), "");
  assert.equal(withoutEmbed("?__theme=dark&embed=1"), "?__theme=dark");
});

test("a code's text is the shorter of the two that a link may have", async () => {
  assert.equal(await shortQueryOf({ tab: "masks" }), "tab=masks");
  assert.equal(await shortQueryOf({}), "");
  const long = { text: "once upon a time ".repeat(40), tab: "masks" };
  const short = await shortQueryOf(long);
  assert.match(short, /^z=/);
  assert.ok(short.length < 150);
  assert.deepEqual(await stateOf(short), long);
});
