// A view that is declared in Python alone: what its pictures are asked with, and what its fields change.
import assert from "node:assert/strict";
import test from "node:test";

import { fire, settled } from "../kit/dom.js";
import { drawnView, show, texts, valuesOf } from "./drawn.js";
import { pictureNamed, viewNamed, views } from "../../transformer/web/declared.js";
import { fields } from "../../transformer/web/fields.js";
import { page, setHead, setQuery } from "../../transformer/web/store.js";
import { mount } from "../../transformer/web/view.js";

/** @type {(view: string, props?: object) => Promise<{ element: any, asked: Record<string, any[]> }>} */
const panelOf = async (view, props = {}) => {
  /** @type {Record<string, any[]>} */
  const asked = {};
  const answers = (viewNamed(view)?.pictures ?? []).map(({ name }) => [
    name,
    (/** @type {any} */ data) => {
      (asked[name] ??= []).push(data);
      return { figure: null, sentence: `of ${name}` };
    },
  ]);
  const panel = (/** @type {any} */ mounted) =>
    mount.panel({ ...mounted, props: { view, ...props } });
  const element = await drawnView(panel, Object.fromEntries(answers));
  return { element, asked };
};

test("views and pictures are found by their names", () => {
  for (const view of views) {
    assert.equal(viewNamed(view.name), view);
    for (const picture of view.pictures) assert.equal(pictureNamed(picture.name), picture);
  }
  assert.equal(viewNamed("none"), undefined);
});

test("a picture is asked with the view's fields and with what is chosen", async () => {
  const run = show();
  setHead({ stack: "decoder", kind: "self", layer: 1, head: 0 });
  const { element, asked } = await panelOf("corpus");
  const chosen = { run, stack: "decoder", kind: "self", layer: 1, head: 0 };
  const { across, up } = fields;
  assert.deepEqual(asked.corpus, [{ ...chosen, across, up }]);
  assert.deepEqual(texts(element, ".panel-title"), ["Each head over many texts"]);
  assert.deepEqual(texts(element, ".panel-pictures p"), ["of corpus"]);
  const menus = element.querySelectorAll(".panel-controls select");
  assert.equal(menus.length, 2);
  const other = valuesOf(element, ".panel-controls option", "value").find(
    (name) => name !== across,
  );
  fire(menus[0], "change", { target: { value: other } });
  await settled(element);
  assert.equal(fields.across, other);
  assert.deepEqual(asked.corpus[1], { ...chosen, across: other, up });
  fields.across = across;
  const folded = await panelOf("corpus", { folded: "yes" });
  assert.deepEqual(texts(folded.element, ".panel-title"), []);
});

test("a chosen token gives the position, the step after it and the row", async () => {
  const run = show(); // of three steps after three tokens
  setHead({ stack: "decoder", kind: "self", layer: 0, head: 1 });
  /** @type {(view: string, picture: string) => Promise<any>} */
  const askedOf = async (view, picture) => (await panelOf(view)).asked[picture][0];
  assert.deepEqual(await askedOf("branches", "choices"), { run, step: 0 });
  assert.deepEqual(await askedOf("masked", "masked"), { run, position: null });
  assert.deepEqual((await askedOf("attention_math", "attention_math")).query, null);
  for (const [index, step] of [
    [0, 0],
    [3, 0],
    [4, 1],
    [5, 2],
  ]) {
    setQuery({ stack: "decoder", index });
    assert.deepEqual(await askedOf("branches", "choices"), { run, step });
    assert.deepEqual(await askedOf("masked", "masked"), { run, position: index });
  }
  const site = { site: "decoder.0.self", head: 1 };
  assert.deepEqual(await askedOf("attention_math", "attention_math"), { run, ...site, query: 5 });
  show({ trace_start: 2 });
  setQuery({ stack: "decoder", index: 4 });
  assert.equal((await askedOf("attention_math", "attention_math")).query, 2);
  const { element, asked } = await panelOf("breaks");
  assert.deepEqual(asked.broken, [{ model: "tiny" }]);
  assert.equal(element.querySelectorAll("p").length, 4);
  page.batch = /** @type {any} */ ({ batch: "b7" });
  assert.deepEqual((await panelOf("masks")).asked.padded[0].batch, "b7");
});
