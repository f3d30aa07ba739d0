// A mask as a board of cells on a canvas: rows are queries, columns keys, each with its token; a
// pointer and the arrow keys walk over them.

import { fontFamily } from "../../web/labels.js";
import { say } from "../../web/messages.js";
import { useEvent } from "../../web/part.js";
import { html, useLayoutEffect, useRef, useState } from "../../web/preact.js";
import { page } from "../../web/store.js";

const [LARGEST, EASY, LEAST] = [24, 14, 4]; // px of a cell
const [HEIGHT, SIDE] = [720, 2200]; // px of a board at a glance, and of the largest
const [LABEL, LINE, LEAST_MARK] = [11, 16, 8]; // characters; px of a label; px of a cell with a mark

const short = (label) => {
  const text = [...label];
  return text.length > LABEL ? `${text.slice(0, LABEL - 1).join("")}…` : label;
};
const colours = (canvas) => {
  const style = getComputedStyle(canvas);
  const of = (name) => style.getPropertyValue(`--viz-${name}`).trim();
  return {
    text: of("text"),
    muted: of("muted"),
    line: of("line"),
    accent: of("accent"),
    key: of("key"),
    paper: of("paper"),
  };
};

// Sizes of a board: px of a cell, of the labels at the left and on top.
const boardSize = (canvas, { queries, keys }, width) => {
  const pen = canvas.getContext("2d");
  pen.font = `14px ${fontFamily()}`;
  const room = (labels) =>
    Math.ceil(Math.max(...labels.map((label) => pen.measureText(short(label)).width))) + 12;
  const [left, top] = [room(queries), room(keys)];
  const longest = Math.max(queries.length, keys.length);
  const fit = Math.floor(
    Math.min((width - left - 4) / keys.length, (HEIGHT - top - 4) / queries.length),
  );
  const cell = Math.max(LEAST, Math.min(LARGEST, Math.max(fit, EASY), Math.floor(SIDE / longest)));
  return {
    cell,
    left,
    top,
    width: left + cell * keys.length + 2,
    height: top + cell * queries.length + 2,
  };
};

const drawLabels = (pen, { queries, keys }, { cell, left, top }, { text, key }, lineEdit) => {
  const every = Math.max(1, Math.ceil(LINE / cell));
  pen.font = `14px ${fontFamily()}`;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  const sign = { forbid: "× ", allow: "+ " };
  const write = (label, edit, x, y) => {
    pen.fillStyle = edit ? key : text;
    pen.fillText(`${sign[edit] ?? ""}${short(label)}`, x, y);
  };
  queries.forEach((label, row) => {
    if (row % every === 0) write(label, lineEdit(`${row},*`), left - 6, top + (row + 0.5) * cell);
  });
  keys.forEach((label, column) => {
    if (column % every !== 0) return;
    pen.save();
    pen.translate(left + (column + 0.5) * cell, top - 6);
    pen.rotate(Math.PI / 2);
    write(label, lineEdit(`*,${column}`), 0, 0);
    pen.restore();
  });
};
const hatch = (pen, { left, top }, width, height, colour) => {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  pen.beginPath();
  for (let at = -height; at < width; at += 9) {
    pen.moveTo(left + at, top + height);
    pen.lineTo(left + at + height, top);
  }
  Object.assign(pen, { strokeStyle: colour, lineWidth: 1 });
  pen.stroke();
  pen.restore();
};
const mark = (pen, edit, x, y, cell, { text, paper }) => {
  const reach = Math.max(2, cell * 0.26);
  pen.beginPath();
  if (edit === "forbid") {
    pen.moveTo(x - reach, y - reach);
    pen.lineTo(x + reach, y + reach);
    pen.moveTo(x + reach, y - reach);
    pen.lineTo(x - reach, y + reach);
  } else {
    pen.moveTo(x - reach, y);
    pen.lineTo(x + reach, y);
    pen.moveTo(x, y - reach);
    pen.lineTo(x, y + reach);
  }
  Object.assign(pen, {
    strokeStyle: edit === "forbid" ? text : paper,
    lineWidth: Math.max(1.5, cell / 9),
  });
  pen.stroke();
};

// labels {queries, keys}; allowed(query, key); edit(query, key): "allow", "forbid" or null;
// lineEdit("query,*" or "*,key"): the same of a whole line.
const drawBoard = (canvas, labels, size, { allowed, edit, lineEdit }) => {
  const [rows, columns] = [labels.queries.length, labels.keys.length];
  const { cell, left, top, width, height } = size;
  const sharp = Math.min(window.devicePixelRatio || 1, 4000 / Math.max(width, height));
  Object.assign(canvas, { width: Math.round(width * sharp), height: Math.round(height * sharp) });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = canvas.getContext("2d");
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  pen.direction = "ltr";
  const ink = colours(canvas);
  hatch(pen, size, columns * cell, rows * cell, ink.line);
  const gap = cell >= LEAST_MARK ? 1 : 0;
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const [x, y] = [left + column * cell, top + row * cell];
      const open = allowed(row, column);
      const said = edit(row, column);
      pen.fillStyle = said === "allow" ? ink.key : open ? ink.accent : ink.paper;
      if (open || said) pen.fillRect(x, y, cell - gap, cell - gap);
      if (said && cell >= LEAST_MARK) mark(pen, said, x + cell / 2, y + cell / 2, cell, ink);
      else if (said === "forbid") {
        pen.fillStyle = ink.text;
        pen.fillRect(x + 1, y + cell / 2 - 0.5, cell - 2, 1);
      }
    }
  }
  pen.strokeStyle = ink.muted;
  pen.strokeRect(left - 0.5, top - 0.5, columns * cell + 1, rows * cell + 1);
  drawLabels(pen, labels, size, ink, lineEdit);
};

// The cell under a pointer: {query, key}, -1 for the labels; null outside.
const boardCell = (canvas, size, labels, event) => {
  const place = canvas.getBoundingClientRect();
  const at = (pixels, edge, count) => {
    const cell = Math.floor((pixels - edge) / size.cell);
    return cell < 0 ? -1 : cell < count ? cell : null;
  };
  const query = at(event.clientY - place.top, size.top, labels.queries.length);
  const key = at(event.clientX - place.left, size.left, labels.keys.length);
  return query === null || key === null || (query < 0 && key < 0) ? null : { query, key };
};

// ---- the board on the page ----

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const clamp = (value, last) => Math.min(last, Math.max(-1, value));
// Where a key leads from a cell, at most onto the labels; null for another key.
const moved = (name, at, { queries, keys }) => {
  if (name === "Home") return { ...at, key: at.query < 0 ? 0 : -1 };
  if (name === "End") return { ...at, key: keys.length - 1 };
  if (!(name in MOVES)) return null;
  const [down, right] = MOVES[name];
  const to = {
    query: clamp(at.query + down, queries.length - 1),
    key: clamp(at.key + right, keys.length - 1),
  };
  return to.query < 0 && to.key < 0 ? at : to;
};
const placeOf = ({ query, key }, { cell, left, top }) => {
  const [x, width] = key < 0 ? [0, left] : [left + key * cell, cell];
  const [y, height] = query < 0 ? [0, top] : [top + query * cell, cell];
  const px = Object.entries({ left: x, top: y, width, height });
  return Object.fromEntries(px.map(([name, value]) => [name, `${value}px`]));
};

// shown: see drawBoard, with labels, words(cell) and where, what mask it is; change(cell) edits one,
// null as long as none can be.
export const Board = ({ part, shown, change }) => {
  const canvas = useRef(/** @type {any} */ (null));
  const box = useRef(/** @type {any} */ (null));
  const cursor = useRef(/** @type {any} */ (null));
  const [size, setSize] = useState(/** @type {any} */ (null));
  const [at, setAt] = useState(/** @type {any} */ (null)); // the cell of the pointer or the keys
  const [told, tell] = useState(/** @type {any} */ (null)); // the cell that is read aloud
  const { labels, words } = shown;
  useEvent("run", () => [setAt, tell].forEach((set) => set(null)));
  useLayoutEffect(() => {
    if (!part.width) return;
    const found = boardSize(canvas.current, labels, box.current.clientWidth);
    drawBoard(canvas.current, labels, found, shown);
    setSize(found);
  }, [shown, part.width, page.dark]);
  useLayoutEffect(() => {
    if (at?.byKey) cursor.current.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [at]);

  const go = (cell) => {
    setAt({ ...cell, byKey: true });
    tell(cell);
  };
  const edit = (cell) => {
    setAt(cell);
    change(cell);
    tell(cell);
  };
  const under = (event) => size && change && boardCell(canvas.current, size, labels, event);
  const click = (event) => {
    const cell = under(event);
    if (cell) edit(cell);
  };
  const focus = () => {
    if (size && change && canvas.current.matches(":focus-visible")) go(at ?? { query: 0, key: 0 });
  };
  const press = (event) => {
    if (!size || !change || event.ctrlKey || event.altKey || event.metaKey) return;
    const from = at ?? { query: 0, key: 0 };
    const to = moved(event.key, from, labels);
    if (event.key === "Enter" || event.key === " ") edit(from);
    else if (to) go(to);
    else return;
    event.preventDefault();
  };
  const name = say("Mask of {where}: {queries} queries by {keys} keys", {
    where: shown.where,
    queries: labels.queries.length,
    keys: labels.keys.length,
  });
  return html`<div class="wide board-box" ref=${box}>
      <div class="board-frame">
        <canvas class="board" tabindex="0" role="application" aria-roledescription="mask"
          aria-label=${name} aria-describedby="mask-keys" ref=${canvas} onClick=${click}
          onPointerMove=${(event) => setAt(under(event))} onPointerLeave=${() => setAt(null)}
          onBlur=${() => setAt(null)} onFocus=${focus} onKeyDown=${press}></canvas>
        <div class="board-cursor" hidden=${!at || !size} style=${at && size ? placeOf(at, size) : {}}
          ref=${cursor}></div>
      </div>
    </div>
    <p class="board-cell" aria-live="off">${at && words(at)}</p>
    <p class="hint" id="mask-keys">${say("Keyboard: in the mask, arrow keys move from cell to cell and onto the labels, Home and End to the ends of a row; Enter or Space edits.")}</p>
    <p class="unseen board-said" role="status" aria-live="polite">${told && words(told)}</p>`;
};
