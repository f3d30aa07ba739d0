// The labels of a figure's axes: their text, and the room that they need.

import { computed } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { themed } from "./colours.js";

// The family and the size of type in a picture, and the room that one line of an axis' labels needs.
const family = computed(() => themed("font"));
export const fontFamily = () => family.value;
const size = computed(() => Number(themed(page.projector ? "projected-px" : "font-px")));
export const fontPx = () => size.value;
export const linePx = () => 1.15 * fontPx(); // “␣” stands below the line
const LABEL_GAP_PX = 12; // between the labels and the cells
const SHORTEST = 7; // characters, where there is little room

/** @typedef {{tickvals: number[], ticktext: string[], range: number[]}} TokenAxis of a figure */

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
// The labels of a drawn figure's axis, as short as a phone needs them, or `limit` characters.
/** @type {(axis: TokenAxis, limit?: number) => void} */
export const shortenLabels = (axis, limit = SHORTEST) => {
  axis.ticktext = axis.ticktext.map((label) => shortLabel(label, limit));
};

/** @type {any} */
let pen = null;
/** @type {(label: string) => number} */
export const textWidth = (label) => {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = `${fontPx()}px ${fontFamily()}`;
  return pen.measureText(plainLabel(label)).width;
};
// The room in px that an axis' widest label takes.
/** @type {(axis: Partial<TokenAxis>) => number} */
export const labelRoom = (axis) =>
  Math.ceil(Math.max(0, ...(axis.ticktext ?? []).map(textWidth))) + LABEL_GAP_PX;

// How many cells an axis shows.
/** @type {(axis: TokenAxis) => number} */
export const cellCount = (axis) => Math.abs(axis.range[1] - axis.range[0]);

// Drop labels of a token axis, so many pixels long, that would lie on each other.
/** @type {(axis: TokenAxis, pixels: number) => void} */
export const thinLabels = (axis, pixels) => {
  const gap = axis.tickvals.length > 1 ? axis.tickvals[1] - axis.tickvals[0] : 1;
  const every = Math.ceil(linePx() / ((pixels / cellCount(axis)) * gap));
  if (every <= 1) return;
  axis.tickvals = axis.tickvals.filter((_, place) => place % every === 0);
  axis.ticktext = axis.ticktext.filter((_, place) => place % every === 0);
};
