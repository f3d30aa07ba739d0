// A link's text, the state that it holds, and what that state asks the server for.
import assert from "node:assert/strict";
import test from "node:test";

import { hand, vectors } from "./vectors.js";

// The page's fields, as server/page/pages.py writes them into it.
const schema = { textContent: JSON.stringify(vectors.schema) };
globalThis.document = /** @type {any} */ ({
  getElementById: (/** @type {string} */ name) => (name === "view-schema" ? schema : null),
});
const { TOO_LONG, partsOf, queryOf, stateOf } = await import("../../transformer/web/link_text.js");
const { everyField, textsOf } = await import("../../transformer/web/declared.js");
const { bindField, fields, shownFields } = await import("../../transformer/web/fields.js");
const { reactive } = await import("../../transformer/web/store.js");

test("a state becomes a query, and a long one a compressed query", async () => {
  const queries = await Promise.all(vectors.states.map(queryOf));
  assert.ok(queries.some((query) => query.startsWith("z=")));
  assert.ok(queries.some((query) => !query.startsWith("z=")));
  assert.ok(queries.every((query) => query.length <= 6000));
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
  assert.deepEqual(await stateOf("text=a&text=b&__theme=dark&view=api"), { text: "a" });
});

const packed = async (/** @type {string} */ text) => {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return Buffer.from(await new Response(stream).arrayBuffer()).toString("base64url");
};
test("a link that is cut off or holds anything else cannot be read", async () => {
  const whole = await packed('{"text": "a"}');
  assert.deepEqual(await stateOf(`z=${whole}`), { text: "a" });
  const others = ['{"text": 1}', '"a"', "[1]", "null", "[".repeat(60000), `"${"a".repeat(3e6)}"`];
  const broken = ["broken", "!!!", whole.slice(0, -6), ...(await Promise.all(others.map(packed)))];
  for (const z of broken) assert.equal(await stateOf(`z=${z}`), null);
});

test("a request becomes a link, and the link the same request", async () => {
  const asked = async (/** @type {any} */ request) =>
    partsOf((await stateOf((await queryOf(textsOf(request))) ?? "")) ?? {});
  hand("requests", await Promise.all(vectors.requests.map(asked))); // Python compares
});

test("what cannot be read in a link is said, and the rest is used", () => {
  const wrong = {
    ...{ temperature: "1e999", top_k: "٣", seed: "", max_new_tokens: "1_0" },
    ...{ forced_tokens: "1,x", interventions: "{}", wat: "1", constructor: "1" },
  };
  for (const [name, text] of [
    ...Object.entries(wrong),
    ["interventions", "[NaN]"],
    ["interventions", "[["],
  ]) {
    const state = { [name]: text, site: "decoder.1.self", stage: "masked" };
    const { problems, views, request } = partsOf(state);
    assert.deepEqual(problems, [`The link's '${name}' is unknown or unreadable.`]);
    assert.deepEqual(views, { site: "decoder.1.self", stage: "masked" });
    assert.deepEqual(request, {});
  }
  assert.deepEqual(partsOf({ text: "" }).request, { text: "" });
  const state = { model: "tiny", lines: "a", bare: "true", head: "3" };
  const { lines, bare, request } = partsOf(state);
  assert.deepEqual([lines, bare, request], ["a", true, { model: "tiny" }]);
});

test("the address follows a field that is bound late, and reads it again only where it changes", () => {
  assert.equal(shownFields().projector, undefined);
  const state = reactive({ is: "1" });
  let reads = 0;
  const read = () => {
    reads += 1;
    return state.is;
  };
  bindField("projector", read, () => {});
  assert.equal(shownFields().projector, "1");
  const before = reads;
  const other = Object.keys(everyField).find((name) => everyField[name].type === "bool") ?? "";
  fields[other] = !fields[other];
  assert.equal(shownFields()[other], String(fields[other]));
  assert.equal(reads, before);
  state.is = "";
  assert.equal(shownFields().projector, undefined);
});
