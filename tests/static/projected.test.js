// Figures for the last row of a room.
import assert from "node:assert/strict";
import test from "node:test";

import "./vectors.js";
import { enlarge, enlargeCells } from "../../transformer/web/plots.js";
import { page } from "../../transformer/web/store.js";

page.projector = true;

/** @type {(columns: number, text?: string) => any} */
const batch = (columns, text = "\u2068sentences\u2069") => ({
  data: [
    {
      type: "heatmap",
      texttemplate: "%{text}",
      text: [Array(columns).fill(text), Array(columns).fill("")],
      textfont: { size: 14, color: "#fff" },
    },
  ],
  layout: { width: 1240, height: 160, margin: { l: 60, r: 8, t: 4, b: 74 } },
});

test("a batch's cells say their tokens as large as there is room for, shortened to it", () => {
  const roomy = batch(6);
  enlargeCells(roomy);
  assert.deepEqual(roomy.data[0].textfont, { size: 24, color: "#fff" });
  assert.equal(roomy.data[0].text[0][0], "\u2068sentences\u2069");
  const narrow = batch(12);
  enlargeCells(narrow);
  assert.ok(narrow.data[0].textfont.size >= 23);
  assert.equal(narrow.data[0].text[0][0], "\u2068sente…\u2069");
  const full = batch(40);
  enlargeCells(full);
  assert.equal(full.data[0].texttemplate, undefined);
});

test("all type of a figure becomes as large, and what it needs becomes larger with it", () => {
  const bars = ["a", "b"].map((name) => ({
    type: "bar",
    orientation: "h",
    name,
    textfont: { size: 14 },
  }));
  const figure = {
    data: [...bars, { type: "heatmap", colorbar: { title: { text: "weight" } } }],
    layout: {
      height: 400,
      font: { size: 14, family: "x" },
      xaxis: { title: { text: "position", font: { size: 14 } } },
      xaxis2: { tickfont: { size: 30 } },
      annotations: [{ text: "q" }],
    },
  };
  enlarge(figure);
  const { layout, data } = /** @type {any} */ (figure);
  assert.deepEqual(layout.font, { size: 24, family: "x" });
  assert.deepEqual(
    [layout.xaxis.title.font.size, layout.xaxis.tickfont.size, layout.xaxis2.tickfont.size],
    [24, 24, 30],
  );
  assert.equal(layout.annotations[0].font.size, 24);
  assert.deepEqual([data[0].textfont.size, data[2].colorbar.title.text], [24, ""]);
  assert.equal(layout.height, 520);
});
