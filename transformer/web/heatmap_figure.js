// The figure of a head's numbers: colours, ticks, axes, and the drawn cells, as in
// transformer/views/attention/heatmap.py.

import { scaleOf } from "./colours.js";
import { escapeLabel, fontFamily, fontPx, squareCells } from "./labels.js";
import { numeral, say } from "./messages.js";
import { colourValues, FLOOR, largestOf, RESCALE } from "./head_numbers.js";

/** @typedef {import("./head_numbers.js").HeadNumbers} HeadNumbers */
/** @typedef {import("./head_numbers.js").Part} Part */
/** @typedef {{query: string[], key: string[]}} Labels */
/** @typedef {{stage: string, scale: string, range: string}} Look stage: "scores", "masked" or "weights"; scale, range: of weights, "linear", "sqrt" or "log" and "fixed" or "own" */

const MOST = 640; // cells along a side that are drawn
const BESIDE = 0.25; // of the visible range, also drawn at each side, for dragging
const HATCHES = 44; // hatching lines
const CLEAR = "rgba(0,0,0,0)";
const APART_EM = 2; // least distance between two values of the colour bar

// ---- colours ----

const SHOWN = {
  linear: [0, 0.2, 0.4, 0.6, 0.8, 1],
  sqrt: [0, 0.01, 0.05, 0.2, 0.5, 1],
  log: [FLOOR, 1e-3, 1e-2, 0.1, 1],
};
// Ticks of the colour bar of weights. top: the brightest; if below 1, it is shown with the round values
// clearly below it.
/** @type {(scale: string, top: number) => {tickvals: number[], ticktext: string[]}} */
const weightTicks = (scale, top) => {
  const one = RESCALE[scale];
  let shown = SHOWN[scale];
  if (top < 1) {
    if (scale === "linear") shown = shown.slice(0, -1).map((weight) => top * weight);
    shown = [...shown.filter((weight) => one(weight) < 0.9 * one(top)), top];
  }
  /** @type {(weight: number) => string} */
  const text = (weight) => numeral(String(Number(weight.toPrecision(2))));
  return {
    tickvals: shown.map(one),
    ticktext: shown.map((weight) => (weight === FLOOR ? `≤ ${text(weight)}` : text(weight))),
  };
};

/**
 * The round values from low to high, as numbers and as texts; `count` at most, and one more.
 * @type {(low: number, high: number, count: number) => [number[], string[]]}
 */
export const roundValues = (low, high, count) => {
  const least = (high - low) / Math.max(1, count);
  const ten = 10 ** Math.floor(Math.log10(least));
  const step = ten * ([1, 2, 5].find((one) => one * ten >= least) ?? 10);
  const digits = Math.max(0, -Math.floor(Math.log10(step * 1.01)));
  const first = Math.ceil(low / step - 1e-9);
  const length = Math.floor(high / step + 1e-9) - first + 1;
  const values = Array.from({ length }, (_, place) => (first + place) * step);
  const texts = values.map((value) => numeral(value.toFixed(digits).replace("-", "−")));
  return [values, texts];
};

/** @type {(numbers: HeadNumbers, look: Look, theme: import("./colours.js").Theme) => any} */
const colours = (numbers, { stage, scale, range }, { diverging, weights }) => {
  if (stage !== "weights") {
    const bound = largestOf(numbers, stage) || 1;
    return { colorscale: scaleOf(diverging), zmin: -bound, zmax: bound };
  }
  const largest = range === "own" ? largestOf(numbers, stage) : 1;
  const top = largest <= FLOOR ? 1 : largest;
  const ticks = weightTicks(scale, top);
  return { colorscale: scaleOf(weights), zmin: 0, zmax: RESCALE[scale](top), ticks };
};

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
  const more = Math.ceil(BESIDE * (to - from));
  const start = Math.max(0, from - more);
  return [start - (start % step), Math.min(count, to + more)];
};

// The part of a matrix of `down` rows and `across` columns to draw while axes show these ranges: with more
// cells than pixels, several cells are drawn as one; zoomed in, each is drawn.
/** @type {(down: number, across: number, ranges?: {x: number[], y: number[]}) => Part} */
export const partOf = (down, across, ranges) => {
  const [y, x] = [seen(ranges?.y, down), seen(ranges?.x, across)];
  const step = Math.max(1, Math.ceil(Math.max(y[1] - y[0], x[1] - x[0]) / MOST));
  const [[top, bottom], [left, right]] = [widened(y, down, step), widened(x, across, step)];
  return { top, left, down: bottom - top, across: right - left, step };
};

// The position of a part's first cell and the distance of its cells, as for Plotly.
/** @type {(part: Part) => {x0: number, dx: number, y0: number, dy: number}} */
export const placesOf = ({ top, left, step }) => {
  const half = (step - 1) / 2;
  return { x0: left + half, dx: step, y0: top + half, dy: step };
};

// The cell that a drawn one shows, of those drawn as one. values(part): rows of colour values; x, y: the
// position of the drawn cell.
/** @type {(x: number, y: number, part: Part, values: (part: Part) => Float32Array[]) => {row: number, column: number}} */
export const cellShown = (x, y, part, values) => {
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

// Faint diagonal lines under the cells, visible where cells are left out. One path for all.
/** @type {(down: number, across: number, color: string) => any} */
const hatching = (down, across, color) => {
  /** @type {(end: number[]) => string[]} */
  const placed = ([x, y]) => [x * across - 0.5, y * down - 0.5].map((at) => at.toFixed(4));
  const lines = Array.from({ length: HATCHES - 1 }, (_, place) => {
    const reach = (2 * (place + 1)) / HATCHES;
    const [low, high] = [Math.max(0, reach - 1), Math.min(1, reach)];
    const ends = [
      [low, high],
      [high, low],
    ];
    return `M${ends.map((end) => placed(end).join()).join("L")}`;
  });
  const line = { color, width: 1 };
  return { type: "path", path: lines.join(""), xref: "x", yref: "y", layer: "below", line };
};

// An axis of tokens at the integers 0, 1, ..., so that repeated tokens keep separate positions.
/** @type {(title: string, tokens: string[], theme: any, more: any) => any} */
const axis = (title, tokens, { line }, more) => ({
  title: { text: title, font: { size: fontPx() } },
  showgrid: false,
  zeroline: false,
  ticklabeloverflow: "allow", // else Plotly measures every label once for each label
  linecolor: line,
  tickcolor: line,
  tickmode: "array",
  tickvals: tokens.map((_, place) => place),
  ticktext: tokens.map((token) => `\u2068${escapeLabel(token)}\u2069`),
  constrain: "domain",
  ...more,
});

/** @type {(labels: Labels, theme: any) => any} */
const layoutOf = ({ query, key }, theme) => ({
  template: "none",
  font: { family: fontFamily(), size: fontPx(), color: theme.text },
  paper_bgcolor: CLEAR,
  plot_bgcolor: CLEAR,
  modebar: { bgcolor: CLEAR, color: theme.muted, activecolor: theme.accent },
  meta: { query_labels: query, key_labels: key },
  shapes: [hatching(query.length, key.length, theme.hatch)],
  xaxis: axis(say("key (the token that is read)"), key, theme, {
    range: [-0.5, key.length - 0.5],
    tickangle: key.length > 3 ? -90 : 0,
  }),
  yaxis: axis(say("query (the token that reads)"), query, theme, {
    range: [query.length - 0.5, -0.5],
    constraintoward: "top",
    scaleanchor: "x",
  }),
});

/**
 * {data, layout, values(part), part}: of square cells in a room of px; part: see partOf.
 * @param {{numbers: HeadNumbers, labels: Labels, look: Look, theme: any, fit: any}} of fit: see squareCells
 */
export const headFigure = ({ numbers, labels, look, theme, fit }) => {
  const [down, across] = [labels.query.length, labels.key.length];
  /** @type {(part: Part) => Float32Array[]} */
  const values = (part) => colourValues(numbers, across, look.stage, look.scale, part);
  const part = partOf(down, across);
  const { ticks, ...coloured } = colours(numbers, look, theme);
  const colorbar = { thickness: 14, outlinewidth: 0, ypad: 0, tickmode: "array", ...ticks };
  const trace = {
    type: "heatmap",
    hoverinfo: "none",
    hoverongaps: true,
    z: values(part),
    ...placesOf(part),
    ...coloured,
    colorbar,
  };
  const figure = { data: [trace], layout: layoutOf(labels, theme), values, part };
  squareCells(figure, { bar: true, ...fit });
  if (!ticks) {
    const { height, margin } = figure.layout;
    const count = (height - margin.t - margin.b) / (APART_EM * fontPx());
    [colorbar.tickvals, colorbar.ticktext] = roundValues(trace.zmin, trace.zmax, count);
  }
  return figure;
};
