// Attention: the hovered, pinned or chosen cell of a picture, and its numbers.
import assert from "node:assert/strict";
import test from "node:test";

import { press, settled } from "../kit/dom.js";
import { drawn, show, texts } from "./drawn.js";
import { html } from "../../transformer/web/preact.js";
import { emit, page, setQuery } from "../../transformer/web/store.js";
import { CellNumbers, newShown, useCell } from "../../transformer/views/attention/cell.js";

/** @type {any} a head's numbers of four tokens; the last key is hidden from the third query */
const NUMBERS = {
  labels: { query: ["a", "b", "c", "d"], key: ["A", "B", "C", "D"] },
  scores: Float32Array.of(1, 0, 0, 0, 2, -1.5, 0, 0, 0.25, 3, 0, 9, 0, 0, 0, 0),
  weights: Float32Array.of(1, 0, 0, 0, 0.75, 0.25, 0, 0, 0.125, 0.625, 0.25, 0, 0, 0, 0, 0),
  allowed: Uint8Array.of(1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1),
};

/** @type {(facts?: object, keys?: string) => Promise<{ element: any, cell: any }>} */
const picture = async (facts = {}, keys = "decoder") => {
  show(facts);
  const shown = newShown();
  Object.assign(shown, { numbers: NUMBERS, queries: "decoder", keys });
  /** @type {any} */
  let cell = null;
  const Numbers = () => {
    cell = useCell(shown);
    return html`<${CellNumbers} cell=${cell} shown=${shown} keys="keys" more="more of it" />`;
  };
  const element = await drawn(() => html`<${Numbers} />`);
  return { element, cell };
};
/** @type {(element: any) => Record<string, string>} */
const valuesOf = (element) =>
  Object.fromEntries(
    element
      .querySelectorAll("dd")
      .map((/** @type {any} */ each) => [each.getAttribute("data-field"), each.textContent]),
  );
/** @type {(element: any) => string[]} */
const mostOf = (element) => [
  ...texts(element, ".top-keys h4"),
  ...texts(element, ".top-key").map((line, at) => {
    const { width } = element.querySelectorAll(".bar")[at].style;
    return `${line} ${width}`;
  }),
];

test("the numbers are those of the cell under the pointer, else of the pinned or chosen", async () => {
  const { element, cell } = await picture();
  const none = { query: "–", key: "–", score: "–", allowed: "–", weight: "–", sum: "–" };
  assert.deepEqual(valuesOf(element), none);
  assert.equal(element.querySelector("dl").getAttribute("class"), "readout unchosen");
  assert.deepEqual(mostOf(element), []);
  assert.match(texts(element, ".pin-note")[0], /^Point at a cell/);
  assert.ok(element.querySelector(".to-arithmetic").hasAttribute("hidden"));

  cell.moves.over({ row: 1, column: 1 });
  await settled(element);
  assert.deepEqual(valuesOf(element), {
    ...{ query: "b at 1", key: "B at 1", score: "-1.5000" },
    ...{ allowed: "allowed", weight: "0.2500", sum: "1.0000" },
  });
  assert.deepEqual(page.lit, {
    query: { stack: "decoder", index: 1 },
    key: { stack: "decoder", index: 1 },
  });
  assert.deepEqual(mostOf(element), ["This query reads most", "A0.750 75.0%", "B0.250 25.0%"]);
  assert.equal(element.querySelector("dl").getAttribute("class"), "readout");
  assert.ok(!element.querySelector(".to-arithmetic").hasAttribute("hidden"));

  cell.moves.pin({ row: 2, column: 3 }); // under the pointer is still the other
  await settled(element);
  assert.equal(valuesOf(element).key, "B at 1");
  assert.deepEqual(page.query, { stack: "decoder", index: 2 });
  cell.moves.over(null);
  await settled(element);
  assert.equal(page.lit, null);
  assert.deepEqual(valuesOf(element), {
    ...{ query: "c at 2", key: "D at 3", score: "9.0000" },
    ...{ allowed: "hidden", weight: "0.0000", sum: "1.0000" },
  });
  assert.match(texts(element, ".pin-note")[0], /^Pinned\. Esc lets go\./);
  page.pointed = { stack: "decoder", index: 1 }; // a token of the text: of its row the largest weight
  await settled(element);
  assert.deepEqual([valuesOf(element).query, valuesOf(element).key], ["b at 1", "A at 0"]);
  page.pointed = null;
  emit("escape");
  await settled(element);
  assert.equal(cell.pin, null);
  assert.equal(valuesOf(element).key, "B at 1"); // of the chosen token's row the largest weight
  setQuery({ stack: "decoder", index: 3 }); // an ablated head: no key has any weight
  await settled(element);
  assert.deepEqual(valuesOf(element), { ...none, query: "d at 3", sum: "0.0000" });
  assert.deepEqual(mostOf(element), []);
  setQuery({ stack: "decoder", index: 4 }); // not in the picture
  await settled(element);
  assert.deepEqual(valuesOf(element), none);
});

test("a column lists its queries, and a token of another stack is a column", async () => {
  const { element, cell } = await picture({ source_labels: ["A", "B", "C", "D"] }, "encoder");
  setQuery({ stack: "encoder", index: 1 });
  await settled(element);
  assert.deepEqual(valuesOf(element).key, "B at 1");
  assert.equal(valuesOf(element).query, "–");
  assert.deepEqual(mostOf(element), ["This key is read most by", "c0.625 62.5%", "b0.250 25.0%"]);
  assert.deepEqual(cell.chosen(), { row: null, column: 1 });
  assert.deepEqual([cell.rowOf({ stack: "encoder", index: 1 }), cell.rowOf(null)], [-1, -1]);
  assert.equal(cell.rowOf({ stack: "decoder", index: 3 }), 3);
  assert.equal(cell.rowOf({ stack: "decoder", index: 4 }), -1);
  cell.moves.over({ row: 1, column: 9 }); // of a picture that was larger
  await settled(element);
  assert.deepEqual(cell.lit(), { row: null, column: null });
});

test("what keys do is said in words, and a cell is pinned and let go by the same key", async () => {
  const { element, cell } = await picture();
  /** @type {(row: number | null, column: number | null) => Promise<string>} */
  const point = async (row, column) => {
    cell.moves.over({ row, column }, true);
    await settled(element);
    return texts(element, ".said")[0];
  };
  assert.equal(
    await point(2, 1),
    "query 2 “c” reads key 1 “B”: weight 0.6250, score 3.00, allowed",
  );
  assert.match(await point(1, 3), /^query 1 “b” reads key 3 “D”: .*, hidden by the mask$/);
  assert.equal(await point(2, null), "query 2 “c”, the whole row");
  assert.equal(cell.lights(), null);
  cell.moves.over({ row: 0, column: 0 });
  await settled(element);
  assert.equal(texts(element, ".said")[0], "query 2 “c”, the whole row"); // a pointer is not read out
  cell.moves.pin({ row: 1, column: 1 }, true);
  await settled(element);
  assert.match(texts(element, ".said")[0], /^Pinned: query 1 “b” reads key 1 “B”: weight 0\.2500/);
  assert.equal(cell.over, null);
  assert.ok(cell.isPinned({ stack: "decoder", index: 1 }));
  assert.ok(!cell.isPinned({ stack: "decoder", index: 2 }));
  assert.deepEqual(cell.moves.start(), { row: 1, column: 1 });
  cell.moves.pin({ row: 1, column: 2 });
  assert.deepEqual(cell.pin, { row: 1, column: 2 });
  cell.moves.pin({ row: 1, column: 2 }, true);
  await settled(element);
  assert.deepEqual([cell.pin, page.query], [null, null]);
  assert.equal(texts(element, ".said")[0], "No longer pinned.");
  cell.moves.over({ row: 2, column: 0 });
  await settled(element);
  press(element.querySelector(".to-arithmetic")); // pins what it is asked about
  await settled(element);
  assert.deepEqual(cell.pin, { row: 2, column: 0 });
  setQuery({ stack: "decoder", index: 0 }); // another row: the pin goes
  await settled(element);
  assert.equal(cell.pin, null);
});
