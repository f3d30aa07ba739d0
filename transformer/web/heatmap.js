// One head's numbers as a heatmap with zoom, a closer look, a keyboard and a table: the figure that Python made
// for its tokens, filled in. Axes, colours and hover are those of views/attention/heatmap.py. Until plotly.js is
// loaded, the small picture of the head is shown enlarged.

import { escapeLabel, shortLabel } from "./labels.js";
import { plotlyIfLoaded, withTools } from "./plots.js";
import { say } from "./messages.js";
import { Figure } from "./figure.js";
import { Bands, cellAt, drawnFrame, useCellKeys } from "./cells.js";
import {
  cellTexts,
  colourValues,
  FLOOR,
  largestOf,
  RESCALE,
  weightsOfRow,
} from "./head_numbers.js";
import { html, useMemo, useState } from "./preact.js";

/** @typedef {import("./head_numbers.js").HeadNumbers} HeadNumbers */
/** @typedef {import("./head_numbers.js").CellRange} CellRange */
/** @typedef {{stage: string, scale: string, range: string}} Look stage: "scores", "masked" or "weights"; scale, range: of weights, "linear", "sqrt" or "log" and "fixed" or "own" */

const MAX_CELLS = 640; // cells along a side that are drawn
const MARGIN_SHARE = 0.25; // of the visible range, also drawn at each side, for dragging

// ---- which cells ----

// The visible range of an axis of `count` cells.
/** @type {(range: number[] | undefined, count: number) => number[]} */
const seen = (range, count) => {
  const [low, high] = range ? [Math.min(...range), Math.max(...range)] : [-0.5, count - 0.5];
  const inside = (/** @type {number} */ place) => Math.min(count, Math.max(0, place));
  return [inside(Math.floor(low + 0.5)), inside(Math.ceil(high + 0.5))];
};
/** @type {(ends: number[], count: number, step: number) => number[]} */
const widened = ([from, to], count, step) => {
  const more = Math.ceil(MARGIN_SHARE * (to - from));
  const start = Math.max(0, from - more);
  return [start - (start % step), Math.min(count, to + more)];
};

// The part of a matrix of `down` rows and `across` columns to draw while axes show these ranges: with more
// cells than pixels, several cells are drawn as one; zoomed in, each is drawn.
/** @type {(down: number, across: number, ranges?: {x: number[], y: number[]}) => CellRange} */
export const partOf = (down, across, ranges) => {
  const [y, x] = [seen(ranges?.y, down), seen(ranges?.x, across)];
  const step = Math.max(1, Math.ceil(Math.max(y[1] - y[0], x[1] - x[0]) / MAX_CELLS));
  const [[top, bottom], [left, right]] = [widened(y, down, step), widened(x, across, step)];
  return { top, left, down: bottom - top, across: right - left, step };
};

// The position of a part's first cell and the distance of its cells, as for Plotly.
/** @type {(part: CellRange) => {x0: number, dx: number, y0: number, dy: number}} */
export const placesOf = ({ top, left, step }) => {
  const half = (step - 1) / 2;
  return { x0: left + half, dx: step, y0: top + half, dy: step };
};

// The cell that a drawn one shows, of those drawn as one. values(part): rows of colour values; x, y: the
// position of the drawn cell.
/** @type {(x: number, y: number, part: CellRange, values: (part: CellRange) => Float32Array[]) => {row: number, column: number}} */
const cellShown = (x, y, part, values) => {
  if (part.step === 1) return { row: y, column: x };
  const half = (part.step - 1) / 2;
  const [top, left] = [y - half, x - half];
  const down = Math.min(part.step, part.top + part.down - top);
  const across = Math.min(part.step, part.left + part.across - left);
  const best = { row: top, column: left, value: -1 };
  values({ top, left, down, across, step: 1 }).forEach((cells, row) =>
    cells.forEach((value, column) => {
      if (Math.abs(value) <= best.value || Number.isNaN(value)) return;
      Object.assign(best, { row: top + row, column: left + column, value: Math.abs(value) });
    }),
  );
  return { row: best.row, column: best.column };
};

// ---- the figure ----

/** @type {(numbers: HeadNumbers, look: Look) => {zmin: number, zmax: number}} */
const colourRange = (numbers, { stage, scale, range }) => {
  if (stage !== "weights") {
    const bound = largestOf(numbers, stage) || 1;
    return { zmin: -bound, zmax: bound };
  }
  const largest = range === "own" ? largestOf(numbers, stage) : 1;
  return { zmin: 0, zmax: RESCALE[scale](largest <= FLOOR ? 1 : largest) };
};

// The figure in the colours of a look, still without cells.
/** @param {HeadNumbers} numbers @param {Look} look */
export const lookOf = (numbers, look) => {
  const { data, layout } = numbers.figure;
  const coloured = layout.meta.looks[look.stage === "weights" ? look.scale : "scores"];
  return { data: [{ ...data[0], ...coloured, ...colourRange(numbers, look) }], layout };
};

const MAX_CHARACTERS = 60; // characters of a token in the hover label
/** @type {(labels: string[]) => string[]} */
const hoverLabels = (labels) =>
  labels.map((label) => shortLabel(escapeLabel(label), MAX_CHARACTERS));
/** @type {(numbers: HeadNumbers) => string[][]} */
const readingTexts = ({ labels: { query, key } }) => {
  const keys = hoverLabels(key);
  const said = say("{query} reads {key}", { query: "\u0000", key: "\u0001" });
  return hoverLabels(query).map((from) => {
    const row = said.replace("\u0000", () => from);
    return keys.map((to) => row.replace("\u0001", () => to));
  });
};

// The numbers of a figure's cells: what is drawn, and what the hover label says by its template.
/** @param {HeadNumbers} numbers @param {Look} look @param {string} template */
export const cellsOf = (numbers, { stage, scale }, template) => {
  const { scores, labels } = numbers;
  const across = labels.key.length;
  const part = partOf(labels.query.length, across);
  const z = colourValues(numbers, stage, scale, part);
  if (part.step > 1) return { z, ...placesOf(part), hoverinfo: "none", hovertemplate: "" };
  const rows = z.map((_, row) => {
    const own = weightsOfRow(numbers, row);
    return scores ? Array.from(own, (weight, at) => [scores[row * across + at], weight]) : own;
  });
  const text = template.includes("%{text}") && { text: readingTexts(numbers) };
  return { z, ...placesOf(part), customdata: rows, ...text };
};

/**
 * part: see usePart. numbers: of a head, see head_numbers.js, null until they arrive; meanwhile: shown until
 * the picture is drawn. look: {stage, scale, range}. title: what it
 * is called; keys: the id of a text about its keyboard. room(box): see squareCells. lit: {row, column}, either
 * null. start(): the chosen cell, where the keyboard begins, or null. over(cell, byKeys): a cell is pointed
 * at, null for none; pin(cell, byKeys): one was clicked, or with column null a row.
 * @param {import("./types").HeatmapProps} props
 */
export const Heatmap = ({
  part,
  numbers,
  meanwhile,
  look,
  title,
  keys,
  room,
  lit,
  start,
  over,
  pin,
}) => {
  const { query = [], key = [] } = numbers?.labels ?? {};
  const last = { row: query.length - 1, column: key.length - 1 };
  const { row = null, column = null } = start() ?? {};
  const figure = useMemo(
    () => numbers && lookOf(numbers, look),
    [numbers, ...Object.values(look), row, column],
  );
  const drawn = /** @type {HeadNumbers} */ (numbers); // nothing asks for a value before there are any
  const values = (/** @type {CellRange} */ some) =>
    colourValues(drawn, look.stage, look.scale, some);
  const whole = partOf(query.length, key.length);
  const [zoomed, zoom] = useState({ of: /** @type {object | null} */ (null), part: whole });
  const shown = zoomed.of === figure ? zoomed.part : whole;

  const change = (/** @type {import("./types").Figure} */ { data: [cells] }) =>
    Object.assign(cells, cellsOf(drawn, look, cells.hovertemplate));
  // With more cells than pixels, a zoom or a drag redraws the visible cells at full resolution.
  /** @type {(_: unknown, box: import("./types").Drawn) => void} */
  const follow = (_, box) => {
    const near = partOf(query.length, key.length, drawnFrame(box));
    const isOther = whole.step > 1 && JSON.stringify(near) !== JSON.stringify(shown);
    if (isOther) plotlyIfLoaded()?.restyle(box, { z: [values(near)], ...placesOf(near) }, [0]);
    zoom({ of: figure, part: isOther ? near : shown });
  };
  const cellOf = (/** @type {import("./types").Pointed} */ { points: [{ x, y }] }) =>
    cellShown(x, y, shown, values);
  const on = {
    plotly_hover: (/** @type {import("./types").Pointed} */ event) => over(cellOf(event)),
    plotly_unhover: () => over(null),
    plotly_click: (/** @type {import("./types").Pointed} */ event) => pin(cellOf(event)),
    plotly_relayout: follow,
  };
  const bands = (/** @type {import("./types").Drawn} */ picture) =>
    html`<${Bands} frame=${drawnFrame(picture)} ...${{ lit, last }} />`;
  // A click on the label of a row.
  const pickRow = (/** @type {MouseEvent & { target: HTMLElement }} */ { target, clientY }) => {
    /** @type {import("./types").Drawn | null} */
    const picture = target.closest(".large");
    if (!picture || !target.closest(".ytick")) return;
    const frameNow = drawnFrame(picture);
    const { row: at } = cellAt(
      frameNow,
      frameNow.left + frameNow.width / 2,
      clientY - picture.getBoundingClientRect().top,
    );
    if (at !== null) pin({ row: at, column: null });
  };
  const walk = useCellKeys({
    last: () => figure && last,
    start,
    move: (cell) => over(cell, true),
    pin: (cell) => pin(cell, true),
    leave: () => over(null),
    rows: true,
  });
  const box = {
    role: "application",
    tabindex: 0,
    "aria-roledescription": "heatmap",
    "aria-label": say("{title}; heatmap of query by key", { title }),
    "aria-describedby": keys,
    ...walk,
  };
  const texts = numbers && cellTexts(numbers, look.stage);
  return [
    html`<div class=${figure ? "large-box" : "large-box empty"} onClick=${pickRow}>
      <${Figure} class="large" name="heatmap" over=${bands} config=${withTools}
        fit=${(/** @type {import("./types").Drawn} */ picture) => ({ bar: true, chosen: { row, column }, ...room(picture) })}
        numbers=${texts} ...${{ part, figure, meanwhile, change, on, box }} />
    </div>`,
    shown.step > 1 &&
      html`<p class="hint">${say(
        "Each point of the picture stands for {n} × {n} cells and shows the largest; drag over a " +
          "part to see every cell.",
        { n: shown.step },
      )}</p>`,
  ];
};
