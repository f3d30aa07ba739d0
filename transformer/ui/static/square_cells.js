// Sizes of a heatmap whose cells are square.

import { cellCount, fontPx, labelRoom, shortenLabels, textWidth, thinLabels } from "./labels.js";

const TITLE_EM = 1.86; // an axis' title with the space around it
const BAR_PX = 35; // a colour bar
const BAR_LABEL_EM = 2.9; // its labels
const LONGEST = 11; // characters of a label on an axis
const SHORTEST = 7; // the same where there is little room
const LEAST_PX = 24; // a matrix of a single row
const LEAST_LONG_PX = 120; // its longer side
const NARROW_PX = 480; // below this, axes say less, so that the cells keep some room

/** @typedef {{width: number, height: number}} Room in px */

// px of one cell, of `across` by `down` of them in a room {width, height}.
/** @type {(room: Room, across: number, down: number) => number} */
export const cellSize = (room, across, down) => {
  const fitting = Math.min(room.width / across, room.height / down);
  return Math.max(
    fitting,
    LEAST_LONG_PX / Math.max(across, down),
    LEAST_PX / Math.min(across, down),
  );
};

// Margins from the labels' own widths, so that cells are square and use all the room there is.
// side: {width, height} in px; top: px above the cells; bar: whether there is a colour bar; least: px
// of the cells' side that a low window does not make less.
/** @type {(figure: any, fit: {side: Room, top?: number, bar?: boolean, least?: number}) => void} */
export const squareCells = (figure, { side, top = 8, bar = false, least = 0 }) => {
  const { layout } = figure;
  const { xaxis, yaxis } = layout;
  const narrow = side.width < NARROW_PX;
  for (const axis of [xaxis, yaxis]) {
    axis.automargin = false;
    shortenLabels(axis, narrow ? SHORTEST : LONGEST);
    axis.title.standoff = 6;
    if (narrow) axis.title.text = axis.title.text.split(/\s*[(（]/u)[0];
  }
  const [left, bottom] = [yaxis, xaxis].map(
    (axis) => labelRoom(axis) + Math.round(TITLE_EM * fontPx()),
  );
  const right = bar ? Math.round(BAR_PX + BAR_LABEL_EM * fontPx()) : 8;
  for (const trace of figure.data) {
    trace.showscale = bar && trace.showscale !== false;
    if (trace.colorbar) Object.assign(trace.colorbar, { title: { text: "" }, xpad: 4 });
  }
  const [across, down] = [cellCount(xaxis), cellCount(yaxis)];
  const room = {
    width: side.width - left - right,
    height: Math.max(least, side.height - top - bottom),
  };
  const size = cellSize(room, across, down);
  const [width, height] = [Math.round(size * across), Math.round(size * down)];
  thinLabels(xaxis, width);
  thinLabels(yaxis, height);
  fitTitle(xaxis, width);
  fitTitle(yaxis, height);
  layout.margin = { l: left, r: right, t: top, b: bottom };
  layout.width = left + width + right;
  layout.height = top + height + bottom;
};

// A title longer than its side says only what stands before its explanation.
/** @type {(axis: any, side: number) => void} */
const fitTitle = (axis, side) => {
  if (textWidth(axis.title.text) > side) axis.title.text = axis.title.text.split(" (")[0];
};
