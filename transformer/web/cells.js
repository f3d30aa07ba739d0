// The highlighted cells of a heatmap, and its cells by keyboard.

import { html, useRef, useState } from "./preact.js";

/** @typedef {{left: number, top: number, width: number, height: number, x: number[], y: number[]}} Frame the cells' box in px, and the range of cells: cell 0 from -0.5 to 0.5; y: [bottom, top] */
/** @typedef {{left: number, top: number, width: number, height: number}} Box */

// The frame of a picture drawn by Plotly, with its current zoom.
/** @type {(box: import("./types").PlotlyObject) => Frame} */
export const drawnFrame = ({ _fullLayout: { xaxis, yaxis } }) => ({
  left: xaxis._offset,
  top: yaxis._offset,
  width: xaxis._length,
  height: yaxis._length,
  x: xaxis.range,
  y: yaxis.range,
});

// The relative position of a cell on an axis, from 0 to 1 if it is visible.
/** @type {(range: number[], value: number) => number} */
const along = ([from, to], value) => (value - from) / (to - from);
/** @type {(part: number) => number} */
const inside = (part) => Math.min(1, Math.max(0, part));
/** @type {(frame: Frame, x: number) => number} */
const leftOf = ({ left, width, x: range }, x) => left + width * inside(along(range, x));
/** @type {(frame: Frame, y: number) => number} */
const topOf = ({ top, height, y: range }, y) => top + height * (1 - inside(along(range, y)));

// A range of cells in px: {left, top, width, height} within the picture.
/** @type {(frame: Frame, x0: number, x1: number, y0: number, y1: number) => Box} */
const rangeBox = (frame, x0, x1, y0, y1) => {
  const [left, top] = [leftOf(frame, x0 - 0.5), topOf(frame, y0 - 0.5)];
  const [right, bottom] = [leftOf(frame, x1 + 0.5), topOf(frame, y1 + 0.5)];
  return { left, top, width: right - left, height: bottom - top };
};
// The box of a range of cells in a picture drawn by Plotly.
/** @type {(box: import("./types").PlotlyObject, x0: number, x1: number, y0: number, y1: number) => Box} */
export const cellBox = (box, x0, x1, y0, y1) => rangeBox(drawnFrame(box), x0, x1, y0, y1);

// The cell at a place in px within the picture; a part outside is null.
/** @type {(frame: Frame, x: number, y: number) => {row: number | null, column: number | null}} */
export const cellAt = ({ left, top, width, height, x: across, y: down }, x, y) => {
  const [right, up] = [(x - left) / width, 1 - (y - top) / height];
  /** @type {(part: number, range: number[]) => number | null} */
  const place = (part, [from, to]) =>
    part > 0 && part < 1 ? Math.round(from + part * (to - from)) : null;
  return { row: place(up, down), column: place(right, across) };
};

/** @type {(box: Record<string, number>) => Record<string, string>} */
export const inPx = (box) =>
  Object.fromEntries(Object.entries(box).map(([side, px]) => [side, `${px}px`]));

// ---- lit cells ----

/** @param {{ name: string, at: Box | false }} props */
const Band = ({ name, at }) => at && html`<div class=${`band ${name}`} style=${inPx(at)} />`;
// Bands over a row, a column and the cell where they meet; lit as for Axes; last: {row, column}.
/** @param {{ frame: Frame, lit: import("./types").LitCell, last: import("./types").Cell }} props */
export const Bands = ({ frame, lit: { row, column }, last }) => {
  const y = row !== null && row <= last.row ? row : null;
  const x = column !== null && column <= last.column ? column : null;
  return [
    html`<${Band} name="row" at=${y !== null && rangeBox(frame, 0, last.column, y, y)} />`,
    html`<${Band} name="column" at=${x !== null && rangeBox(frame, x, x, 0, last.row)} />`,
    html`<${Band} name="cell" at=${x !== null && y !== null && rangeBox(frame, x, x, y, y)} />`,
  ];
};

// ---- by keyboard ----

/** @type {Record<string, number[]>} */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** @type {(value: number | null | undefined, last: number) => number} */
const clamp = (value, last) => Math.min(last, Math.max(0, value ?? 0));
// The cell that a key moves to, at most the last one; null for any other key.
/** @type {(key: string, cell: import("./types").Cell, last: import("./types").Cell) => import("./types").Cell | null} */
const movedCell = (key, { row, column }, last) => {
  if (key === "Home") return { row, column: 0 };
  if (key === "End") return { row, column: last.column };
  if (!(key in MOVES)) return null;
  const [down, right] = MOVES[key];
  return { row: clamp(row + down, last.row), column: clamp(column + right, last.column) };
};

// Keyboard focus for a grid of buttons: returns the props of the button at a cell. last: see movedCell;
// walked(cell) is called after a move.
/** @type {(last: import("./types").Cell, walked: (cell: import("./types").Cell) => void) => (row: number, column: number) => import("./types").Attributes} */
export const useButtonKeys = (last, walked) => {
  const buttons = useRef(/** @type {Record<string, HTMLElement | null>} */ ({}));
  return (row, column) => ({
    ref: (/** @type {HTMLElement | null} */ element) =>
      void (buttons.current[`${row} ${column}`] = element),
    onKeyDown: (/** @type {import("./types").KeyIn} */ event) => {
      const to = movedCell(event.key, { row, column }, last);
      if (!to) return;
      event.preventDefault();
      buttons.current[`${to.row} ${to.column}`]?.focus();
      walked(to);
    },
  });
};

// Listeners for the arrow keys, Home and End, which walk over the cells of a picture, and for Enter,
// which pins the cell, as a click does; Shift and Enter its row, if `rows`. Escape is the page's.
// last(box): the last {row, column}, or null while nothing is drawn; start(box): where to begin;
// move(cell, box), pin(cell, box) and leave() follow.
/**
 * @typedef {object} Walk
 * @property {(box: import("./types").Drawn) => import("./types").Cell | null | undefined | false} last
 * @property {(box: import("./types").Drawn) => Partial<import("./types").LitCell> | null | undefined} start
 * @property {(cell: import("./types").Cell, box: import("./types").Drawn) => void} move
 * @property {(cell: import("./types").LitCell, box: import("./types").Drawn) => void} pin
 * @property {() => void} leave
 * @property {boolean} [rows]
 */
/** @type {(walk: Walk) => import("./types").Attributes} */
export const useCellKeys = ({ last, start, move, pin, leave, rows = false }) => {
  const at = useRef(/** @type {import("./types").Cell | null} */ (null)); // where the keys are
  const begin = (/** @type {import("./types").Drawn} */ box) => {
    const [cell, end] = [at.current ?? start(box), last(box) || { row: 0, column: 0 }];
    return { row: clamp(cell?.row, end.row), column: clamp(cell?.column, end.column) };
  };
  /** @type {Walk["move"]} */
  const go = (cell, box) => {
    at.current = cell;
    move(cell, box);
  };
  const press = (/** @type {import("./types").KeyIn<import("./types").Drawn>} */ event) => {
    const box = event.currentTarget;
    const end = last(box);
    if (!end || event.ctrlKey || event.altKey || event.metaKey) return;
    const cell = begin(box);
    if (["Enter", " "].includes(event.key)) {
      at.current = cell;
      if (rows || !event.shiftKey)
        pin(event.shiftKey ? { row: cell.row, column: null } : cell, box);
    } else {
      const to = movedCell(event.key, cell, end);
      if (!to) return;
      go(to, box);
    }
    event.preventDefault();
  };
  return {
    onKeyDown: press,
    onFocus: (
      /** @type {FocusEvent & { currentTarget: import("./types").Drawn }} */ { currentTarget: box },
    ) => {
      if (box.matches(":focus-visible") && last(box)) go(begin(box), box);
    },
    onBlur: () => {
      at.current = null;
      leave();
    },
  };
};

/** @type {(box: import("./types").Drawn) => import("./types").Cell | null} */
const lastOf = (box) => {
  const z = box.calcdata?.[0][0].z;
  return z && { row: z.length - 1, column: z[0].length - 1 };
};

// Props for a Figure whose cells the keyboard moves over; keys, a click and light(cell) highlight a cell,
// null none.
/** @type {(cells: Pick<Walk, "start" | "move"> & { pin: (cell: import("./types").Cell, box: import("./types").Drawn) => void, name: string, keys: string }) => { cells: Pick<import("./types").FigureProps, "box" | "on" | "over">, light: (cell: import("./types").LitCell | null) => void }} */
export const useCells = ({ start, move, pin, name, keys }) => {
  const [lit, light] = useState(/** @type {import("./types").LitCell | null} */ (null));
  /** @type {Walk["move"]} */
  const go = (cell, box) => {
    light(cell);
    move(cell, box);
  };
  /** @type {Walk["pin"]} */
  const choose = (cell, box) => {
    light(cell);
    pin(/** @type {import("./types").Cell} */ (cell), box); // rows alone are not walked over
  };
  const leave = () => light(null);
  const cells = {
    box: {
      role: "application",
      tabindex: 0,
      "aria-roledescription": "heatmap",
      "aria-label": name,
      "aria-describedby": keys,
      ...useCellKeys({ last: lastOf, start, move: go, pin: choose, leave }),
    },
    on: {
      plotly_click: (
        /** @type {import("./types").Pointed} */ { points },
        /** @type {import("./types").Drawn} */ box,
      ) => choose({ row: points[0].y, column: points[0].x }, box),
    },
    over: (/** @type {import("./types").Drawn} */ box) =>
      lit &&
      lastOf(box) &&
      html`<${Bands} frame=${drawnFrame(box)} lit=${lit} last=${lastOf(box)} />`,
  };
  return { cells, light };
};
