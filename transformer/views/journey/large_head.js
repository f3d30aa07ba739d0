// The chosen head large, in the place of the journey's picture.

import { SmallHead, knownName } from "../../web/head_grid.js";
import { weightsOfRow } from "../../web/head_numbers.js";
import { Heatmap } from "../../web/heatmap.js";
import { capital, numeral, say } from "../../web/messages.js";
import { openSection } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { isAblated } from "../../web/runs.js";
import { readStack } from "../../web/selection.js";
import { headName } from "../../web/sites.js";
import { page, setKey, setQuery, shell, tracedFrom } from "../../web/store.js";
import { knownAtlas } from "../attention/numbers.js";

const LOOK = { stage: "weights", scale: "sqrt", range: "fixed" };
const BELOW_PX = 56; // the text under the cells

// A cell in words: the hovered one, else that of the two chosen tokens. off: the head's name, if it is switched off.
/** @type {(numbers: import("../../web/head_numbers.js").HeadNumbers | null, at: import("../../web/types").LitCell, off: string | false) => string} */
const cellInWords = (numbers, { row, column }, off) => {
  if (off) return say("{whose} is switched off: it reads nothing.", { whose: off });
  if (!numbers || row === null || column === null) {
    return say("Click a cell: which other heads read like this?");
  }
  const { query, key } = numbers.labels;
  const weight = numeral(weightsOfRow(numbers, row)[column].toFixed(3));
  return say("{from} reads {to}, {weight}", { from: query[row], to: key[column], weight });
};

/** @param {import("./types").LargeHeadProps} props */
export const LargeHead = ({ part, height, shown, numbers, cell, at, row }) => {
  const keys = readStack(at);
  const { key } = page;
  const column = key && key.stack === keys ? key.index - tracedFrom(keys) : null;
  const chosen = { row, column };
  const lit = cell.over ?? chosen;
  const place = at.layer * page.run.n_heads + at.head;
  const atlas = knownAtlas(at);
  const meanwhile =
    atlas && html`<${SmallHead} class="first-head" atlas=${atlas} place=${place} />`;
  // A cell is a query and a key: which other heads read it?
  const pin = (/** @type {import("../../web/types").LitCell} */ { row: from, column: to }) => {
    setQuery(cell.tokenOf(at.stack, Number(from)));
    if (to !== null) setKey(cell.tokenOf(keys, to));
  };
  const room = (/** @type {HTMLElement} */ box) => ({
    side: { width: box.clientWidth, height: height - BELOW_PX },
    ...{ top: 6, least: 280, bar: false, pan: true },
  });
  const masked = at.stack === "decoder" && at.kind === "self";
  const isOff = isAblated(at);
  const name = capital(headName(at));
  return html`<div class="chosen-head">
    <div class=${`head-large panned ${isOff ? "off" : ""}`}>
      <${Heatmap} key=${shown.refusals} part=${part} numbers=${shown.numbers} look=${LOOK}
        title=${knownName(name, isOff)} keys="journey-keys" room=${room} lit=${lit}
        start=${() => chosen} over=${cell.moves.over} pin=${pin}
        meanwhile=${meanwhile} />
      ${masked && html`<button type="button" class="to-tab to-masks" onClick=${() => shell.openTab("masks")}>${say("hidden by the mask")}</button>`}
    </div>
    <p class="hint" id="journey-keys"><span class="cell-says">${cellInWords(numbers, lit, isOff && name)}</span>
      <button type="button" class="to-tab" onClick=${() => openSection("attention_math", "attention")}>${say("Its arithmetic")}</button></p>
  </div>`;
};
