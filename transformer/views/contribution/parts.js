// The parts that the cells of the map of contributions stand for, and what is said of one.

import { cellBands, cellCursor } from "../attention/cell_cursor.js";
import { el, finder } from "../../ui/static/dom.js";
import { openTab } from "../../ui/static/gradio.js";
import { alter, isSilent, withSilence } from "../../ui/static/interventions.js";
import { numeral, say, sayWith } from "../../ui/static/messages.js";
import { page, setHead } from "../../web/store.js";

const BEFORE = ["token", "position", "embedding norm"]; // rows above the layers, where there are such

// The head of a cell, or null. answer: the server's, see contribution/__init__.py.
/** @type {(cell: {row: number, column: number}, answer: any, stack: string) => any} */
export const headOf = ({ row, column }, { heads, others }, stack) => {
  const kinds = Object.entries(heads);
  const [layers, across] = [kinds[0][1].length, kinds[0][1][0].length];
  const layer = row - BEFORE.filter((name) => name in others).length;
  const kind = kinds[Math.floor(column / across)]?.[0];
  if (!kind || layer < 0 || layer >= layers) return null;
  return { stack, kind, layer, head: column % across };
};

// Lets a cell be chosen by pointer and keys. answer(): what the map shows, null without one.
// Returns {listeners, clear()}.
export const mountParts = (root, box, answer) => {
  const find = finder(root);
  const [says, buttons] = [find(".contribution-part"), find(".contribution-head")];
  const last = () => {
    const meta = answer() && box.layout?.meta;
    return meta && { row: meta.row_labels.length - 1, column: meta.column_labels.length - 1 };
  };
  const bands = cellBands(root, box);
  const mark = (cell) => bands(cell?.row ?? null, cell?.column ?? null, last());
  const valueAt = ({ row, column }) => box.calcdata[0][0].z[row][column];
  const nameOf = ({ row, column }) => {
    const { row_labels: rows, column_labels: columns } = box.layout.meta;
    return `${rows[row]}, ${columns[column]}`;
  };
  const tell = (cell) => {
    const value = valueAt(cell);
    const told = {
      part: el("b", "", nameOf(cell)),
      value: numeral(Math.abs(value ?? 0).toFixed(4)),
    };
    mark(cell);
    if (!Number.isFinite(value)) says.replaceChildren(say("There is no such part."));
    else if (value < 0) {
      says.replaceChildren(...sayWith("{part} takes {value} from the logit.", told));
    } else says.replaceChildren(...sayWith("{part} adds {value} to the logit.", told));
  };
  const choose = (cell) => {
    if (cell.column === null) return;
    tell(cell);
    const head = headOf(cell, answer(), page.run.stack);
    buttons.hidden = !head;
    if (!head) return;
    setHead(head);
    find(".show-head").textContent = say("Show head {layer}·{head}", head);
    find(".silence-part").textContent = isSilent(head)
      ? say("Let this head speak")
      : say("Silence head {layer}·{head}", head);
  };
  find(".show-head").addEventListener("click", () => openTab("attention"));
  find(".silence-part").addEventListener("click", () => alter(withSilence(page.head)));
  cellCursor(box, {
    last,
    start: () => ({ row: 0, column: 0 }),
    move: tell,
    pin: choose,
    leave: () => mark(null),
  });
  return {
    listeners: { plotly_click: ({ points }) => choose({ row: points[0].y, column: points[0].x }) },
    clear: () => {
      mark(null);
      says.replaceChildren();
      buttons.hidden = true;
    },
  };
};
