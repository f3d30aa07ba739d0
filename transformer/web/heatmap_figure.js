// The figure of a head's numbers: colours, ticks, axes, and which cells are drawn. The same as Python's,
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
const BESIDE = 0.25; // of what is seen, drawn at each side of it too, for a picture that is dragged
const HATCHES = 44; // lines where nothing is drawn
const CLEAR = "rgba(0,0,0,0)";
const APART_EM = 2; // from one round value of the colour bar to the next, at least

// ---- colours ----

const SHOWN = {
  linear: [0, 0.2, 0.4, 0.6, 0.8, 1],
  sqrt: [0, 0.01, 0.05, 0.2, 0.5, 1],
  log: [FLOOR, 1e-3, 1e-2, 0.1, 1],
};
// Where weights stand on the colour bar, and what it says there. top: the brightest; below 1, the round
// ones that stand clear of it are shown, and itself.
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

// Where an axis of `count` cells begins and ends, of what is seen.
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

// The part of a matrix of `down` rows and `across` columns to draw while axes show these ranges: with
// more cells than the picture has pixels, cells are put together; zoomed in, each is drawn for itself.
/** @type {(down: number, across: number, ranges?: {x: number[], y: number[]}) => Part} */
export const partOf = (down, across, ranges) => {
  const [y, x] = [seen(ranges?.y, down), seen(ranges?.x, across)];
  const step = Math.max(1, Math.ceil(Math.max(y[1] - y[0], x[1] - x[0]) / MOST));
  const [[top, bottom], [left, right]] = [widened(y, down, step), widened(x, across, step)];
  return { top, left, down: bottom - top, across: right - left, step };
};

// Where the first cell of a part stands, and how far apart its cells are, as Plotly has it.
/** @type {(part: Part) => {x0: number, dx: number, y0: number, dy: number}} */
export const placesOf = ({ top, left, step }) => {
  const half = (step - 1) / 2;
  return { x0: left + half, dx: step, y0: top + half, dy: step };
};

// The cell that a drawn one shows, of those that are put together in it.
// values(part): rows of what is coloured; x, y: where the drawn one stands.
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

// Faint diagonal lines under the cells: those that are left out are see-through. One path for all.
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

// An axis of tokens at the integers 0, 1, ..., so that repeated ones keep places of their own.
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
