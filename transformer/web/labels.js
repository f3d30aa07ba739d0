// The labels of a figure's axes, the room that they need, and the size of square cells.

import { fontFamily, fontPx } from "./theme.js";

export const FONT_PX = 14; // in which Python lays a figure out
const LINE = 1.15; // of the type's size: “␣” reaches below the line
const linePx = () => LINE * fontPx();
const LEAST_TYPE = 0.78; // of the usual size, where every label then has room
const LABEL_GAP_PX = 12; // between the labels and the cells
const NARROW_CHARACTERS = 7; // characters, where there is little room

/** @typedef {{tickvals: number[], ticktext: string[], range: number[], tickfont?: { size?: number }}} TokenAxis of a figure */

// Axis labels come escaped for Plotly, between two direction marks.
/** @type {(label: string) => string} */
export const plainLabel = (label) =>
  label
    .replace(/[\u2068\u2069]/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
/** @type {(text: string) => string} */
export const escapeLabel = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
/** @type {(label: string, limit: number) => string} */
export const shortLabel = (label, limit) => {
  const text = [...plainLabel(label)];
  const shown = text.length > limit ? `${text.slice(0, limit - 1).join("")}…` : text.join("");
  return `\u2068${escapeLabel(shown)}\u2069`;
};
// The labels of a drawn figure's axis, shortened for a phone or to `limit` characters.
/** @type {(axis: TokenAxis, limit?: number) => void} */
export const shortenLabels = (axis, limit = NARROW_CHARACTERS) => {
  axis.ticktext = axis.ticktext.map((label) => shortLabel(label, limit));
};

/** @type {CanvasRenderingContext2D | null} */
let context = null; // that measures, once one is needed
const measuring = () => {
  context ??= document.createElement("canvas").getContext("2d");
  return /** @type {CanvasRenderingContext2D} */ (context);
};
/** @type {(label: string) => number} */
export const textWidth = (label) => {
  const pen = measuring();
  pen.font = `${fontPx()}px ${fontFamily()}`;
  return pen.measureText(plainLabel(label)).width;
};
// The room in px that an axis' widest label takes.
/** @type {(axis: Partial<TokenAxis>) => number} */
export const labelRoom = (axis) =>
  Math.ceil(Math.max(0, ...(axis.ticktext ?? []).map(textWidth))) + LABEL_GAP_PX;

// How many cells an axis shows.
/** @type {(axis: TokenAxis) => number} */
const cellCount = (axis) => Math.abs(axis.range[1] - axis.range[0]);

// How far apart labels of a token axis, this many pixels long, have to be, in cells.
/** @type {(axis: TokenAxis, pixels: number) => number} */
const cellsApart = (axis, pixels) =>
  (LINE * (axis.tickfont?.size ?? fontPx()) * cellCount(axis)) / pixels;

// Label the chosen place of a token axis in place of the labels that it would overlap.
/** @type {(axis: TokenAxis, pixels: number, place: number, label: string) => void} */
const labelChosen = (axis, pixels, place, label) => {
  const apart = cellsApart(axis, pixels);
  const kept = axis.tickvals.map((at) => Math.abs(at - place) >= apart);
  axis.ticktext = [...axis.ticktext.filter((_, at) => kept[at]), `<b>${label}</b>`];
  axis.tickvals = [...axis.tickvals.filter((_, at) => kept[at]), place];
};

// Drop labels of a token axis, this many pixels long, that would overlap.
/** @type {(axis: TokenAxis, pixels: number) => void} */
export const thinLabels = (axis, pixels) => {
  const gap = axis.tickvals.length > 1 ? axis.tickvals[1] - axis.tickvals[0] : 1;
  const every = Math.ceil(cellsApart(axis, pixels) / gap);
  if (every <= 1) return;
  axis.tickvals = axis.tickvals.filter((_, place) => place % every === 0);
  axis.ticktext = axis.ticktext.filter((_, place) => place % every === 0);
};

// ---- sizes of a heatmap whose cells are square ----

const TITLE_EM = 1.86; // an axis' title with the space around it
const BAR_PX = 35; // a colour bar
const BAR_LABEL_EM = 2.9; // its labels
const MAX_CHARACTERS = 11; // characters of a label on an axis
const LEAST_PX = 24; // a matrix of a single row
const LEAST_LONG_PX = 120; // its longer side
const PHONE_PX = 560;
const FINGER_PX = 10; // a cell on a phone, if there are few enough; the picture is panned
const MAX_PANNED_CELLS = 48; // cells along a side
const NARROW_PX = 480; // below this, axes say less, so that the cells keep some room

/** @typedef {{width: number, height: number}} Room in px */

// Margins from the labels' own widths, so that cells are square and use all the room there is. side: {width,
// height} in px; top: px above the cells; bar: whether there is a colour bar; least: px of the cells' side,
// even in a low window; pan: the picture may be wider than a phone; isShort: labels are cut short; chosen: {row,
// column}, either null, whose labels are always shown.
/** @type {(figure: import("./types").Figure, fit: import("./types").SquareFit & { side: Room }) => void} */
export const squareCells = (
  figure,
  { side, top: above = 8, bar = false, least = 0, pan = false, isShort = false, chosen },
) => {
  const { layout } = figure;
  const { xaxis, yaxis } = layout;
  const narrow = side.width < NARROW_PX;
  const top = Math.max(above, bar ? linePx() / 2 : 0); // of the bar's upper label
  const limit = narrow || isShort ? NARROW_CHARACTERS : MAX_CHARACTERS;
  for (const axis of [xaxis, yaxis]) {
    axis.automargin = false;
    shortenLabels(axis, limit);
    axis.title.standoff = 6;
    if (narrow) axis.title.text = axis.title.text.split(/\s*[(（]/u)[0];
  }
  const short = (/** @type {string} */ label) => shortLabel(escapeLabel(label), limit);
  const all = [layout.meta?.query_labels, layout.meta?.key_labels]; // each can be chosen
  const [left, bottom] = [yaxis, xaxis].map(
    (axis, at) =>
      labelRoom(all[at] ? { ticktext: all[at].map(short) } : axis) +
      Math.round(TITLE_EM * fontPx()),
  );
  const right = bar ? Math.round(BAR_PX + BAR_LABEL_EM * fontPx()) : 8;
  for (const trace of figure.data) {
    trace.showscale = bar && trace.showscale !== false;
    if (trace.colorbar) Object.assign(trace.colorbar, { title: { text: "" }, xpad: 4 });
  }
  const [across, down] = [cellCount(xaxis), cellCount(yaxis)];
  const wide = (side.width - left - right) / across;
  const high = Math.max(least, side.height - top - bottom) / down;
  const [longer, shorter] = [Math.max(across, down), Math.min(across, down)];
  const isPanned = pan && window.innerWidth < PHONE_PX && longer <= MAX_PANNED_CELLS;
  const leastPx = Math.max(LEAST_LONG_PX / longer, LEAST_PX / shorter, isPanned ? FINGER_PX : 0);
  const cellPx = Math.max(Math.min(wide, high), leastPx);
  const [width, height] = [Math.round(cellPx * across), Math.round(cellPx * down)];
  const fitting = Math.floor(cellPx / LINE);
  const isSmaller = fitting < fontPx() && fitting >= LEAST_TYPE * fontPx();
  for (const axis of isSmaller ? [xaxis, yaxis] : [])
    axis.tickfont = { ...axis.tickfont, size: fitting };
  thinLabels(xaxis, width);
  thinLabels(yaxis, height);
  const { row = null, column = null } = chosen ?? {};
  // A token of another run can still be chosen.
  if (row !== null && all[0]?.[row]) labelChosen(yaxis, height, row, short(all[0][row]));
  if (column !== null && all[1]?.[column]) labelChosen(xaxis, width, column, short(all[1][column]));
  for (const [{ title }, length] of [
    [xaxis, width],
    [yaxis, height],
  ])
    if (textWidth(title.text) > length) title.text = title.text.split(" (")[0]; // without its explanation
  layout.margin = { l: left, r: right, t: top, b: bottom };
  layout.width = left + width + right;
  layout.height = top + height + bottom;
};
