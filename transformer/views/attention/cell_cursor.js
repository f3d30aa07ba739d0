// A heatmap by keyboard and by its row labels, and the bands that light a row, a column or a cell.

import { cellBox } from "../../ui/static/axis_labels.js";
import { clamp, movedCell } from "../../web/cells.js";

// Arrow keys walk over the cells of `box`, Home and End go to a row's ends, Enter pins the cell and
// Shift+Enter its row; Escape is the page's. last(): the last {row, column}, or null while nothing
// is drawn; start(): where to begin; move(cell), pin(cell), leave() do the rest.
export const cellCursor = (box, { last, start, move, pin, leave }) => {
  /** @type {any} */
  let at = null;
  const begin = () => {
    const end = last();
    const cell = at ?? start() ?? {};
    return (
      end && { row: clamp(cell.row ?? 0, end.row), column: clamp(cell.column ?? 0, end.column) }
    );
  };
  const go = (cell) => {
    at = cell;
    move(cell);
  };
  box.addEventListener("focus", () => {
    const cell = box.matches(":focus-visible") ? begin() : null;
    if (cell) go(cell);
  });
  box.addEventListener("blur", () => {
    at = null;
    leave();
  });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const cell = begin();
    if (!cell) return;
    if (event.key === "Enter" || event.key === " ") {
      at = cell;
      pin(event.shiftKey ? { row: cell.row, column: null } : cell);
    } else {
      const to = movedCell(event.key, cell, last());
      if (!to) return;
      go(to);
    }
    event.preventDefault();
  });
};

// A click on a label beside a row of the drawn heatmap `box`: pick(row).
export const onRowLabel = (frame, box, pick) => {
  frame.addEventListener("click", (event) => {
    const { xaxis, yaxis } = box._fullLayout ?? {};
    if (!yaxis) return;
    const place = box.getBoundingClientRect();
    const [x, y] = [event.clientX - place.left, event.clientY - place.top - yaxis._offset];
    if (x >= xaxis._offset || y < 0 || y >= yaxis._length) return;
    pick(Math.round(yaxis.p2l(y)));
  });
};

// Returns light(row, column, last): bands over the heatmap `box`, any of the two may be null.
export const cellBands = (root, box) => {
  const band = (name, at) => {
    const made = root.querySelector(`.band.${name}`);
    made.hidden = !at;
    if (at) for (const [key, value] of Object.entries(at)) made.style[key] = `${value}px`;
  };
  return (row, column, last) => {
    const both = row !== null && column !== null;
    band("row", row === null ? null : cellBox(box, 0, last.column, row, row));
    band("column", column === null ? null : cellBox(box, column, column, 0, last.row));
    band("cell", both ? cellBox(box, column, column, row, row) : null);
  };
};
