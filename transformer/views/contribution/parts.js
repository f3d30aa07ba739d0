// The parts that the cells of the map of contributions stand for, and what is said of one.

import { openTab } from "../../ui/static/gradio.js";
import { alter, isAblated, withAblation } from "../../ui/static/interventions.js";
import { numeral, say, sayWith } from "../../web/messages.js";
import { html } from "../../web/preact.js";

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

// What is said of a cell of the drawn map.
export const partInWords = ({ row, column }, { calcdata, layout }) => {
  const value = calcdata[0][0].z[row][column];
  if (!Number.isFinite(value)) return say("There is no such part.");
  const { row_labels: rows, column_labels: columns } = layout.meta;
  const told = {
    part: html`<b>${`${rows[row]}, ${columns[column]}`}</b>`,
    value: numeral(Math.abs(value).toFixed(4)),
  };
  return value < 0
    ? sayWith("{part} takes {value} from the logit.", told)
    : sayWith("{part} adds {value} to the logit.", told);
};

// What can be done with the head of the chosen cell, null without one.
export const HeadButtons = ({ head }) => {
  const toggle = () => alter(withAblation(head));
  const words =
    head &&
    (isAblated(head)
      ? say("Switch this head on again")
      : say("Switch off layer {layer}, head {head}", head));
  return html`<p class="whatif-buttons contribution-head" hidden=${!head}>
    <button type="button" class="show-head" onClick=${() => openTab("attention")}>${
      head && say("Show layer {layer}, head {head}", head)
    }</button>
    <button type="button" class="ablate-part" onClick=${toggle}>${words}</button>
  </p>`;
};
