// The cells of a heatmap by keyboard, and those of a Figure lit.

import { Bands, drawnFrame } from "./axes.js";
import { html, useRef, useState } from "./preact.js";

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

const clamp = (value, last) => Math.min(last, Math.max(0, value ?? 0));
// Where a key leads from a cell, at most to the last one; null for another key.
export const movedCell = (key, { row, column }, last) => {
  if (key === "Home") return { row, column: 0 };
  if (key === "End") return { row, column: last.column };
  if (!(key in MOVES)) return null;
  const [down, right] = MOVES[key];
  return { row: clamp(row + down, last.row), column: clamp(column + right, last.column) };
};

// Listeners for the arrow keys, Home and End, which walk over the cells of a picture, and for Enter,
// which pins the cell, as a click does; Shift and Enter its row, if `rows`. Escape is the page's.
// last(box): the last {row, column}, or null while nothing is drawn; start(box): where to begin;
// move(cell, box), pin(cell, box) and leave() follow.
export const useCellKeys = ({ last, start, move, pin, leave, rows = false }) => {
  const at = useRef(/** @type {any} */ (null)); // where the keys are
  const begin = (box) => {
    const [cell, end] = [at.current ?? start(box), last(box)];
    return { row: clamp(cell?.row, end.row), column: clamp(cell?.column, end.column) };
  };
  const go = (cell, box) => {
    at.current = cell;
    move(cell, box);
  };
  const press = (event) => {
    const box = event.currentTarget;
    if (!last(box) || event.ctrlKey || event.altKey || event.metaKey) return;
    const cell = begin(box);
    if (["Enter", " "].includes(event.key)) {
      at.current = cell;
      if (rows || !event.shiftKey)
        pin(event.shiftKey ? { row: cell.row, column: null } : cell, box);
    } else {
      const to = movedCell(event.key, cell, last(box));
      if (!to) return;
      go(to, box);
    }
    event.preventDefault();
  };
  return {
    onKeyDown: press,
    onFocus: ({ currentTarget: box }) => {
      if (box.matches(":focus-visible") && last(box)) go(begin(box), box);
    },
    onBlur: () => {
      at.current = null;
      leave();
    },
  };
};

const lastOf = (box) => {
  const z = box.calcdata?.[0][0].z;
  return z && { row: z.length - 1, column: z[0].length - 1 };
};

// The same as props for a Figure whose cells are walked; keys, a click and light(cell) light a cell,
// null none.
export const useCells = ({ start, move, pin, name, keys }) => {
  const [lit, light] = useState(/** @type {any} */ (null));
  const go = (cell, box) => {
    light(cell);
    move(cell, box);
  };
  const choose = (cell, box) => {
    light(cell);
    pin(cell, box);
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
      plotly_click: ({ points }, box) => choose({ row: points[0].y, column: points[0].x }, box),
    },
    over: (box) =>
      lit &&
      lastOf(box) &&
      html`<${Bands} frame=${drawnFrame(box)} lit=${lit} last=${lastOf(box)} />`,
  };
  return { cells, light };
};
