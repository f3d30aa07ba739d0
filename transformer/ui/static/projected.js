// Figures for the last row of a room: all of their type as large as the page's.

import { fontPx, plainLabel, shortLabel } from "./labels.js";

const EM = 0.62; // an average letter's width in its size
const LINE = 1.25; // a line's height in it
const LEAST_PX = 16; // else the cells' texts are left out
const FEWEST = 4; // letters of a token that still say which it is

/** @typedef {{ size?: number }} Font */
/** @type {(font?: Font) => Font} */
const enlarged = (font) => ({ ...font, size: Math.max(fontPx(), font?.size ?? 0) });

// All type of a figure whose size is not known yet. Two bars' numbers stand one below the other: bars
// that lie become as much wider, and so do panels of curves one above the other.
export const enlarge = (figure) => {
  const { data, layout } = figure;
  layout.font = enlarged(layout.font);
  for (const name of Object.keys(layout).filter((one) => /^[xy]axis\d*$/.test(one))) {
    const axis = layout[name];
    axis.tickfont = enlarged(axis.tickfont);
    if (axis.title) axis.title.font = enlarged(axis.title.font);
  }
  for (const note of layout.annotations ?? []) note.font = enlarged(note.font);
  for (const { label } of layout.shapes ?? []) if (label) label.font = enlarged(label.font);
  for (const trace of data) {
    if (trace.type !== "heatmap" && trace.textfont) trace.textfont = enlarged(trace.textfont);
    if (!trace.colorbar) continue;
    trace.colorbar.tickfont = enlarged(trace.colorbar.tickfont);
    trace.colorbar.title = { text: "" }; // the picture's heading says what it shows
  }
  const panels = Object.keys(layout).filter((one) => /^yaxis\d*$/.test(one)).length;
  const curves = data.every(({ type }) => type === "scatter");
  if (curves && panels > 1 && layout.height) layout.height = Math.round(layout.height * 1.5);
  const lying = data.filter(({ type, orientation }) => type === "bar" && orientation === "h");
  if (lying.length > 1 && layout.height) layout.height = Math.round(layout.height * 1.3);
};

// The texts in the cells of a figure whose size is known: as large as there is room for, a token's
// shortened to that; none where it would be too small to be read.
export const enlargeCells = ({ data, layout }) => {
  const { l = 0, r = 0, t = 0, b = 0 } = layout.margin ?? {};
  for (const trace of data) {
    if (trace.type !== "heatmap" || !trace.texttemplate) continue;
    const [across, down] = cellsOf(trace);
    const wide = (layout.width - l - r) / across;
    const high = (layout.height - t - b) / down;
    const most = Math.min(fontPx(), high / LINE);
    const fitting = Math.max(FEWEST, Math.floor(wide / EM / most));
    if (trace.text) trace.text = trace.text.map((row) => row.map((one) => shortened(one, fitting)));
    const longest = Math.max(1, ...texts(trace).map((one) => [...plainLabel(one)].length));
    const size = Math.min(most, wide / EM / longest);
    if (size < LEAST_PX) delete trace.texttemplate;
    else trace.textfont = { ...trace.textfont, size: Math.floor(size) };
  }
};
const NUMBER = "−0.00"; // what a cell without a text of its own says
/** @type {(trace: any) => string[]} */
const texts = ({ text }) => (text ? text.flat() : [NUMBER]);
/** @type {(text: string, limit: number) => string} */
const shortened = (text, limit) => (text ? shortLabel(text, limit) : text);
/** @type {(trace: any) => number[]} */
const cellsOf = ({ z, text }) => {
  if (text) return [text[0].length, text.length];
  const shape = typeof z?.shape === "string" ? z.shape.split(",").map(Number) : null;
  return shape ? [shape[1], shape[0]] : [z[0].length, z.length];
};
