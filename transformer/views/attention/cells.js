// The cell of the attention picture that is pointed at, pinned or chosen by a token: its numbers, the
// bands that light its row and column, and the keyboard.

import { finder } from "../../ui/static/dom.js";
import { labelChosen, placeAxisLabels } from "../../ui/static/axis_labels.js";
import { say } from "../../ui/static/messages.js";
import { emit, on, page, sameToken, setQuery, tracedFrom } from "../../web/store.js";
import { closerLook } from "./closer.js";
import { cellBands, cellCursor, onRowLabel } from "./cell_cursor.js";
import { cellInWords, readOut } from "./readout.js";

// state: {pin, over, numbers, labels, ...}, of the attention view. queryStack(), keyStack(): what the
// rows and the columns are. isHeatmap(): whether the picture has cells.
// shift(): how many rows before a token's own its weights stand, 1 where the picture is of what each
// token was written from.
// Returns {show, listeners, tokenOf, rowOf, closer}; closer: see closerLook.
export const mountCells = (
  element,
  state,
  { queryStack, keyStack, isHeatmap, shift = () => 0 },
) => {
  const find = finder(element);
  const root = find(".attention");
  const large = find(".large");

  // A row or column of the picture as a token of a text, and back (-1: not in this picture).
  const tokenOf = (stack, place) => ({ stack, index: place + tracedFrom(stack) });
  const placeOf = (token, stack, axis) => {
    if (token?.stack !== stack) return -1;
    const place = token.index - tracedFrom(stack);
    return place < (state.labels?.[axis].length ?? 0) ? place : -1;
  };
  // A token of a text as a row (it asks), or else as a column (it is read); null if not shown here.
  const cellOf = (token) => {
    const row = placeOf(token, queryStack(), "query");
    if (row >= 0) return { row: Math.max(0, row - shift()), column: null };
    const column = placeOf(token, keyStack(), "key");
    return column >= 0 ? { row: null, column } : null;
  };
  const chosenCell = () => state.over ?? state.pin ?? cellOf(page.query);
  const last = () =>
    state.labels && { row: state.labels.query.length - 1, column: state.labels.key.length - 1 };

  const showNumbers = readOut(find(".numbers-side"));
  const closer = closerLook(large);
  const bands = cellBands(root, large);
  const show = () => {
    if (!state.labels || !state.numbers) return;
    const cell = chosenCell();
    showNumbers(cell, state.labels, state.numbers);
    light(cell);
    const pinned = state.pin?.column === null ? say("Row pinned.") : "Pinned.";
    const free = cell
      ? say("Click to pin.")
      : say("Point at a cell for its numbers; click to pin.");
    const told = state.pin ? say("{pinned} Esc lets go.", { pinned }) : free;
    find(".pin-note").textContent = [told, isHeatmap() && closer.note()].filter(Boolean).join(" ");
    emit(
      "light",
      state.over && {
        query: tokenOf(queryStack(), cell.row),
        key: tokenOf(keyStack(), cell.column),
      },
    );
  };
  const light = (cell) => {
    const row = cell?.row ?? null;
    // A token that was chosen in the text is also shown as a key where the text reads itself.
    const itself = cell && row !== null && !state.over && !state.pin && queryStack() === keyStack();
    const column = cell?.column ?? (itself ? row : null);
    if (isHeatmap() && large._fullLayout) {
      bands(row, column, last());
      labelChosen(large, row, column, state.labels);
    }
    root.dataset.row = row === null ? "" : String(row);
    root.dataset.column = column === null ? "" : String(column);
  };
  const setOver = (cell) => {
    state.over = cell;
    show();
  };
  const setPin = (cell) => {
    const same = state.pin && state.pin.row === cell.row && state.pin.column === cell.column;
    state.pin = same ? null : cell;
    setQuery(same ? null : tokenOf(queryStack(), cell.row));
    show();
    emit("pin", state.pin);
  };
  const listeners = {
    plotly_hover: ({ points }) => setOver(closer.cellAt(points[0])),
    plotly_unhover: () => setOver(null),
    plotly_click: ({ points }) => setPin(closer.cellAt(points[0])),
    plotly_relayout: () => {
      placeAxisLabels(large);
      closer.follow();
      show();
    },
  };
  const words = (cell) => cellInWords(cell, state.labels, state.numbers);
  const tell = (text) => (find(".said").textContent = text);
  cellCursor(large, {
    last,
    start: () => state.pin ?? cellOf(page.query),
    move: (cell) => {
      setOver(cell);
      tell(words(cell));
    },
    pin: (cell) => {
      state.over = null;
      setPin(cell);
      tell(state.pin ? say("Pinned: {cell}", { cell: words(cell) }) : say("No longer pinned."));
    },
    leave: () => state.over && setOver(null),
  });
  const byKeys = () => root.classList.toggle("by-keys", large.matches(":focus-visible"));
  for (const event of ["focus", "blur", "keydown"]) large.addEventListener(event, byKeys);
  onRowLabel(find(".large-box"), large, (row) => setPin({ row, column: null }));

  on("query", (token) => {
    const pinned = state.pin && tokenOf(queryStack(), state.pin.row);
    if (token && pinned && !sameToken(token, pinned)) state.pin = null;
    show();
  });
  on("point", (token) => {
    state.over = null;
    const cell = token && state.labels ? cellOf(token) : null;
    if (!cell) return show();
    light(queryStack() === keyStack() ? { ...cell, column: cell.row } : cell);
  });
  on("escape", () => {
    Object.assign(state, { pin: null, over: null });
    show();
  });
  const rowOf = (token) => placeOf(token, queryStack(), "query");
  return { show, listeners, tokenOf, rowOf, closer };
};
