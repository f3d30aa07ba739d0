// Figures for the last row of a room.
import assert from "node:assert/strict";
import test from "node:test";

import "./vectors.js";
import { enlarge } from "../../transformer/web/plots.js";
import { page } from "../../transformer/web/store.js";

page.projector = true;

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
