// A mask as cells on a canvas: rows are queries, columns keys, each with its token; pointer and arrow keys
// move over them.

import { inPx, useCellKeys } from "../../web/cells.js";
import { themed } from "../../web/theme.js";
import { labelRoom, plainLabel, shortLabel, escapeLabel } from "../../web/labels.js";
import { say } from "../../web/messages.js";
import { useEvent } from "../../web/part.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../../web/preact.js";
import { page } from "../../web/store.js";

const [MAX_CELL_PX, EASY_CELL_PX, MIN_CELL_PX] = [24, 14, 4]; // px of a cell
const [HEIGHT, SIDE] = [720, 2200]; // px of a board at a glance, and of the largest
const [LABEL, LINE_PX, LEAST_MARK] = [11, 16, 8]; // characters; of a label; px of a cell with a mark
/**
 * @typedef {import("./types").BoardCell} BoardCell
 * @typedef {import("./types").BoardState} BoardState
 * @typedef {import("./types").BoardLabels} BoardLabels
 */

const SIGNS = { forbid: "×", allow: "+" };

// ---- the cells ----

/** @type {(labels: {queries: string[], keys: string[]}, room: {left: number, top: number}, width: number) => number} */
const cellPx = ({ queries, keys }, { left, top }, width) => {
  const fit = Math.min((width - left - 4) / keys.length, (HEIGHT - top - 4) / queries.length);
  const most = Math.min(MAX_CELL_PX, SIDE / Math.max(queries.length, keys.length));
  return Math.floor(Math.max(MIN_CELL_PX, Math.min(most, Math.max(fit, EASY_CELL_PX))));
};

// allowed(query, key); edit(query, key): "allow", "forbid" or null.
/** @type {(canvas: HTMLCanvasElement, cell: number, shown: BoardState) => void} */
const drawCells = (canvas, cell, { labels: { queries, keys }, allowed, edit }) => {
  const sharp = Math.min(devicePixelRatio, 4000 / (cell * Math.max(queries.length, keys.length)));
  canvas.width = Math.round(cell * keys.length * sharp);
  canvas.height = Math.round(cell * queries.length * sharp);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  const [text, accent, key, paper] = ["text", "accent", "key", "paper"].map((one) => themed(one));
  Object.assign(pen, { font: `bold ${cell * 0.9}px ${themed("font")}`, textAlign: "center" });
  pen.textBaseline = "middle";
  const large = cell >= LEAST_MARK;
  /** @type {(row: number, column: number) => void} */
  const drawn = (row, column) => {
    const said = edit(row, column);
    if (!said && !allowed(row, column)) return;
    const [x, y] = [column * cell, row * cell];
    pen.fillStyle = said ? { allow: key, forbid: paper }[said] : accent;
    pen.fillRect(x, y, cell - Number(large), cell - Number(large));
    pen.fillStyle = said === "forbid" ? text : paper;
    if (said && large) pen.fillText(SIGNS[said], x + cell / 2, y + cell / 2);
    else if (said === "forbid") pen.fillRect(x + 1, y + cell / 2 - 0.5, cell - 2, 1);
  };
  queries.forEach((_, row) => keys.forEach((__, column) => drawn(row, column)));
};

// ---- the labels ----

const shortened = (/** @type {string} */ label) =>
  plainLabel(shortLabel(escapeLabel(label), LABEL));
const roomFor = (/** @type {string[]} */ labels) => labelRoom({ ticktext: labels.map(shortened) });

// Labels of the rows or of the columns, as many as fit; edited(place): the edit of a line.
/** @param {import("./types").LabelsProps} props */
const Labels = ({ name, side, labels, cell, edited }) => {
  const every = Math.max(1, Math.ceil(LINE_PX / cell));
  /** @param {string} text @param {number} at */
  const label = (text, at) => {
    const edit = edited(at);
    return (
      at % every === 0 &&
      html`<bdi class=${edit ? "is-edited" : ""} style=${inPx({ [side]: (at + 0.5) * cell })}>${
        edit ? SIGNS[edit] : ""
      } ${shortened(text)}</bdi>`
    );
  };
  return html`<div class=${`board-labels ${name}`} aria-hidden="true">${labels.map(label)}</div>`;
};

// ---- the board on the page ----

// Convert a cell {query, key}, -1 for labels, to a row and a column of the keyboard's grid, and back.
/** @type {(cell: BoardCell) => import("../../web/types").Cell} */
const walked = ({ query, key }) => ({ row: query + 1, column: key + 1 });
/** @type {(at: import("../../web/types").LitCell) => BoardCell | null} */
const ofWalk = ({ row, column }) =>
  row || column ? { query: Number(row) - 1, key: Number(column) - 1 } : null; // where the labels meet

// The cell under a pointer; null outside.
/** @type {(event: MouseEvent, canvas: HTMLCanvasElement, cell: number, labels: BoardLabels) => BoardCell | null} */
const cellUnder = (event, canvas, cell, { queries, keys }) => {
  const { left, top } = canvas.getBoundingClientRect();
  const at = (/** @type {number} */ px) => Math.max(-1, Math.floor(px / cell));
  const [query, key] = [at(event.clientY - top), at(event.clientX - left)];
  return query < queries.length && key < keys.length ? ofWalk(walked({ query, key })) : null;
};

// shown: see drawCells, with lineEdit("query,*" or "*,key"): the edit of a line, words(cell), and where: the
// mask's name; change(cell) edits a cell, null while editing is not possible.
/** @param {import("./types").BoardProps} props */
export const Board = ({ part, shown, change }) => {
  /** @type {{ current: HTMLCanvasElement }} */
  const canvas = useRef(null);
  const cursor = useRef(/** @type {HTMLElement | null} */ (null));
  const [at, setAt] = useState(/** @type {BoardCell | null} */ (null)); // the cell of the pointer or the keys
  const [spoken, speak] = useState(/** @type {BoardCell | null} */ (null)); // the cell that is read aloud
  const { labels, words, lineEdit } = shown;
  const { queries, keys } = labels;
  useEvent("run", () => [setAt, speak].forEach((set) => set(null)));
  const room = useMemo(() => ({ left: roomFor(queries), top: roomFor(keys) }), [labels]);
  const cell = cellPx(labels, room, part.width);
  useLayoutEffect(() => drawCells(canvas.current, cell, shown), [shown, cell, page.dark]);

  const edit = (/** @type {BoardCell | null} */ edited) => {
    if (!edited || !change) return;
    setAt(edited);
    change(edited);
    speak(edited);
  };
  const go = async (/** @type {BoardCell | null} */ to) => {
    setAt(to);
    speak(to);
    cursor.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const walk = useCellKeys({
    last: () => change && { row: queries.length, column: keys.length },
    start: () => walked(at ?? { query: 0, key: 0 }),
    move: (to) => go(ofWalk(to)),
    pin: (to) => edit(ofWalk(to)),
    leave: () => setAt(null),
  });
  const under = (/** @type {MouseEvent} */ event) =>
    change && cellUnder(event, canvas.current, cell, labels);
  const name = say("Mask of {where}, queries by keys: {queries} × {keys}", {
    where: shown.where,
    queries: queries.length,
    keys: keys.length,
  });
  const start = (/** @type {BoardCell} */ { query, key }) => ({
    left: key < 0 ? -room.left : key * cell,
    top: query < 0 ? -room.top : query * cell,
    width: key < 0 ? room.left : cell,
    height: query < 0 ? room.top : cell,
  });
  const size = inPx({ width: cell * keys.length, height: cell * queries.length });
  return html`<div class="wide board-box">
      <div class="board-frame" style=${inPx({ paddingLeft: room.left, paddingTop: room.top })}
        onClick=${(/** @type {MouseEvent} */ event) => edit(under(event))}
        onPointerMove=${(/** @type {MouseEvent} */ event) => setAt(under(event))}
        onPointerLeave=${() => setAt(null)}>
        <div class="board-cells" style=${size}>
          <${Labels} name="of-queries" side="top" labels=${queries} cell=${cell}
            edited=${(/** @type {number} */ query) => lineEdit(`${query},*`)} />
          <${Labels} name="of-keys" side="left" labels=${keys} cell=${cell}
            edited=${(/** @type {number} */ key) => lineEdit(`*,${key}`)} />
          <canvas class="board" tabindex="0" role="application" aria-roledescription="mask"
            aria-label=${name} aria-describedby="mask-keys" ref=${canvas} style=${size} ...${walk}></canvas>
          <div class="board-cursor" hidden=${!at} style=${at ? inPx(start(at)) : {}} ref=${cursor}></div>
        </div>
      </div>
    </div>
    <p class="board-cell" aria-live="off">${at && words(at)}</p>
    <p class="hint" id="mask-keys">${say("Keyboard: in the mask, arrow keys move from cell to cell and onto the labels, Home and End to the ends of a row; Enter or Space edits.")}</p>
    <p class="unseen board-said" role="status" aria-live="polite">${spoken && words(spoken)}</p>`;
};
