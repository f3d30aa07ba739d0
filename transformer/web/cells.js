// The cells of a drawn heatmap by keyboard, and the bands that light a row, a column or a cell.

import { cellBox } from "../ui/static/axis_labels.js";
import { html, useRef, useState } from "./preact.js";

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export const clamp = (value, last) => Math.min(last, Math.max(0, value));
// Where a key leads from a cell, at most to the last one; null for another key.
export const movedCell = (key, { row, column }, last) => {
  if (key === "Home") return { row, column: 0 };
  if (key === "End") return { row, column: last.column };
  if (!(key in MOVES)) return null;
  const [down, right] = MOVES[key];
  return { row: clamp(row + down, last.row), column: clamp(column + right, last.column) };
};

const lastOf = (box) => {
  const z = box.calcdata?.[0][0].z;
  return z && { row: z.length - 1, column: z[0].length - 1 };
};
const band = (name, at) => {
  const style = Object.fromEntries(Object.entries(at).map(([side, px]) => [side, `${px}px`]));
  return html`<div class=${`band ${name}`} style=${style} />`;
};
const Bands = ({ box, cell: { row, column } }) => {
  const last = lastOf(box);
  if (!last || row > last.row || column > last.column) return null;
  return [
    band("row", cellBox(box, 0, last.column, row, row)),
    band("column", cellBox(box, column, column, 0, last.row)),
    band("cell", cellBox(box, column, column, row, row)),
  ];
};

// Arrow keys walk over the cells of a Figure, Home and End go to a row's ends, Enter pins the cell, as
// a click does; Escape is the page's. start(box): where to begin; move(cell, box) and pin(cell, box)
// follow. Gives props for the Figure; light(cell) lights another cell, null none.
export const useCells = ({ start, move, pin, name, keys }) => {
  const at = useRef(/** @type {any} */ (null)); // where the keys are
  const [lit, light] = useState(/** @type {any} */ (null));
  const go = (cell, box) => {
    at.current = cell;
    light(cell);
    move(cell, box);
  };
  const choose = (cell, box) => {
    light(cell);
    pin(cell, box);
  };
  const leave = () => {
    at.current = null;
    light(null);
  };
  const press = (event) => {
    const box = event.currentTarget;
    const last = lastOf(box);
    if (!last || event.ctrlKey || event.altKey || event.metaKey) return;
    const cell = at.current ?? start(box);
    if (["Enter", " "].includes(event.key)) {
      at.current = cell;
      if (!event.shiftKey) choose(cell, box);
    } else {
      const to = movedCell(event.key, cell, last);
      if (!to) return;
      go(to, box);
    }
    event.preventDefault();
  };
  const focus = ({ currentTarget: box }) => {
    if (box.matches(":focus-visible") && lastOf(box)) go(at.current ?? start(box), box);
  };
  const cells = {
    box: {
      role: "application",
      tabindex: 0,
      "aria-roledescription": "heatmap",
      "aria-label": name,
      "aria-describedby": keys,
      onFocus: focus,
      onBlur: leave,
      onKeyDown: press,
    },
    on: {
      plotly_click: ({ points }, box) => choose({ row: points[0].y, column: points[0].x }, box),
    },
    over: (box) => lit && html`<${Bands} ...${{ box, cell: lit }} />`,
  };
  return { cells, light };
};
