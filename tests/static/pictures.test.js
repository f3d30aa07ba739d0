// Labels, sizes, tables and orders: what the pages' pictures and tables are made of.
import assert from "node:assert/strict";
import test from "node:test";

import { plainLabel, shortLabel, thinLabels } from "../../transformer/web/labels.js";
import { cellText, figureTable } from "../../transformer/web/figure.js";
import { recoloured } from "../../transformer/web/theme.js";
import { vectors } from "./vectors.js";

test("labels are shortened and escaped as in Python, and full ones name tokens", () => {
  for (const { text, escaped, limit, label } of vectors.labels) {
    assert.equal(shortLabel(escaped, limit), label);
    if (limit === 999) assert.equal(plainLabel(label), text);
  }
});

test("labels that would lie on each other are left out, evenly", () => {
  const places = Array.from({ length: 20 }, (_, place) => place);
  const axis = { range: [-0.5, 19.5], tickvals: places, ticktext: places.map(String) };
  thinLabels(axis, 112); // 5.6 px a label, which takes 16.1
  assert.deepEqual(axis.tickvals, [0, 3, 6, 9, 12, 15, 18]);
  assert.deepEqual(axis.ticktext, ["0", "3", "6", "9", "12", "15", "18"]);
  thinLabels(axis, 1000);
  assert.equal(axis.tickvals.length, 7);
});

test("series as a table: one column each, rows by their ticks", () => {
  const bar = (/** @type {string | undefined} */ name, /** @type {number[]} */ x) => ({
    type: "bar",
    visible: true,
    orientation: "h",
    name,
    x,
    y: [0, 1],
  });
  const layout = {
    yaxis: { tickvals: [0, 1], ticktext: ["&lt;a&gt;", "b"], title: { text: "token" } },
  };
  const table = figureTable([bar("A", [0.5, 0.25]), bar(undefined, [1, 2])], { layout });
  assert.ok(table);
  assert.deepEqual(table.rows, ["<a>", "b"]);
  assert.deepEqual(table.columns, ["A", "series 1"]);
  assert.deepEqual([table.value(1, 0), table.value(1, 1), table.corner], ["0.2500", "2", "token"]);
  assert.equal(figureTable([{ type: "scatter", visible: true, x: [] }], { layout }), null);
  assert.deepEqual([null, "x", 3].map(cellText), ["hidden", "x", "3"]);
});

/** @type {(value: any) => any} */
const withoutColours = (value) =>
  JSON.parse(JSON.stringify(value, (key, part) => (/color/.test(key) ? undefined : part)));

test("the dark theme changes the known colours of a picture and nothing else", () => {
  const { table, pictures } = vectors.dark;
  assert.ok(pictures.length > 20);
  for (const light of pictures) {
    const dark = recoloured(light, table);
    assert.equal(dark.layout.font.color, table[light.layout.font.color]);
    assert.deepEqual(recoloured(light, {}), light);
    assert.deepEqual(withoutColours(dark), withoutColours(light));
  }
  const [colour] = Object.keys(table);
  const token = { text: [colour], meta: { labels: [colour] } };
  assert.deepEqual(recoloured(token, table), token);
});
