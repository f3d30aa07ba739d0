// The hovered, pinned or selected cell of an attention picture, and its numbers.

import { views } from "../../web/declared.js";
import { weightsOfRow } from "../../web/head_numbers.js";
import { numeral, say, sayList } from "../../web/messages.js";
import { useEvent, openSection } from "../../web/part.js";
import { html, signal, useMemo, useSignalEffect } from "../../web/preact.js";
import { page, reactive, sameToken, setQuery, tracedFrom } from "../../web/store.js";
import { Token } from "../../web/text.js";

/**
 * @typedef {import("./types").ShownNumbers} Shown
 * @typedef {import("./types").CellState} CellState
 * @typedef {import("../../web/head_numbers.js").HeadNumbers} HeadNumbers
 * @typedef {import("../../web/types").LitCell} Cell
 * @typedef {import("../../web/types").Query} Query
 */

// A cell in words, for those who cannot see the picture; a whole row if its column is null.
/** @type {(at: Cell | null, numbers: HeadNumbers | null) => string} */
const inWords = (at, numbers) => {
  if (!numbers || !at || at.row === null) return "";
  const { labels, scores, weights, allowed } = numbers;
  const { row, column } = at;
  const query = labels.query[row];
  if (column === null) return say("query {row} “{query}”, the whole row", { row, query });
  const place = row * labels.key.length + column;
  const reads = say("query {row} “{query}” reads key {column} “{key}”", {
    row,
    query,
    column,
    key: labels.key[column],
  });
  const facts = [say("weight {weight}", { weight: numeral(weights[place].toFixed(4)) })];
  if (scores) facts.push(say("score {score}", { score: numeral(scores[place].toFixed(2)) }));
  facts.push(allowed[place] ? say("allowed") : say("hidden by the mask"));
  return say("{title}: {part}", { title: reads, part: sayList(facts) });
};

/**
 * The state {over, pin, said} of a picture, with functions that change it. shown: of signals; pinned: the signal of pin.
 * @type {(shown: Shown, pinned: import("./types").PinSignal) => CellState}
 */
const newCell = (shown, pinned) => {
  const over = /** @type {Cell | null} */ (null); // hovered
  const cell = /** @type {CellState} */ (/** @type {unknown} */ (reactive({ over, said: "" })));
  const get = () => pinned.value;
  const set = (/** @type {Cell | null} */ at) => void (pinned.value = at);
  Object.defineProperty(cell, "pin", { get, set });
  // A row or column of the picture as a token of a text, and back (-1: not in this picture).
  /** @type {CellState["tokenOf"]} */
  const tokenOf = (stack, place) => ({ stack, index: place + tracedFrom(stack) });
  /** @type {(token: Query | null, stack: string, axis: "query" | "key") => number} */
  const placeOf = (token, stack, axis) => {
    if (token?.stack !== stack || !shown.numbers) return -1;
    const place = token.index - tracedFrom(stack);
    return place < shown.numbers.labels[axis].length ? place : -1;
  };
  const rowOf = (/** @type {Query | null} */ token) => placeOf(token, shown.queries, "query");
  // A token of a text as a row (query), or else as a column (key); null if not shown here.
  /** @type {(token: Query | null) => Cell | null} */
  const cellOf = (token) => {
    const row = rowOf(token);
    if (row >= 0) return { row, column: null };
    const column = placeOf(token, shown.keys, "key");
    return column >= 0 ? { row: null, column } : null;
  };
  /** @type {(at: Cell) => boolean} */
  const fits = ({ row, column }) =>
    Number(row) < Number(shown.numbers?.labels.query.length) &&
    Number(column) < Number(shown.numbers?.labels.key.length);
  const chosen = () => {
    const pointed = page.pointed && cellOf(page.pointed);
    const at = cell.over ?? pointed ?? cell.pin ?? cellOf(page.query);
    return at && fits(at) ? at : null;
  };
  const lit = () => chosen() ?? { row: null, column: null };
  /** @type {CellState["moves"]["over"]} */
  const hover = (at, byKeys = false) => {
    cell.over = at;
    if (byKeys) cell.said = inWords(at, shown.numbers);
  };
  /** @type {CellState["moves"]["pin"]} */
  const pin = (at, byKeys = false) => {
    const same = cell.pin && cell.pin.row === at.row && cell.pin.column === at.column;
    cell.pin = same ? null : at;
    if (byKeys) {
      cell.over = null;
      cell.said = same
        ? say("No longer pinned.")
        : say("Pinned: {cell}", { cell: inWords(at, shown.numbers) });
    }
    setQuery(same ? null : tokenOf(shown.queries, Number(at.row)));
  };
  const letGo = () => Object.assign(cell, { pin: null, over: null });
  const start = () => cell.pin ?? cellOf(page.query);
  const isPinned = (/** @type {Query} */ token) =>
    Boolean(cell.pin) && sameToken(token, tokenOf(shown.queries, Number(cell.pin?.row)));
  const lights = () => {
    const at = cell.over;
    if (!at || at.column === null) return null;
    return { query: tokenOf(shown.queries, Number(at.row)), key: tokenOf(shown.keys, at.column) };
  };
  return Object.assign(cell, {
    tokenOf, rowOf, chosen, lit, moves: { over: hover, pin, start }, letGo, isPinned, lights,
  }); // prettier-ignore
};

/** @type {() => Shown} */
export const newShown = () => reactive({ numbers: null, queries: "", keys: "", refusals: 0 });
/** @type {(shown: Shown, pinned?: import("./types").PinSignal) => CellState} */
export const useCell = (shown, pinned = undefined) => {
  const cell = useMemo(() => newCell(shown, pinned ?? signal(null)), []);
  useEvent("query", (token) => {
    page.pointed = null;
    if (token && !cell.isPinned(token)) cell.pin = null;
  });
  useSignalEffect(() => {
    if (page.pointed) cell.over = null;
  });
  useEvent("escape", cell.letGo);
  useSignalEffect(() => void (page.lit = cell.lights()));
  return cell;
};

// ---- its numbers ----

/** @type {Record<string, string>} */
const NAMES = {
  query: say("query"),
  key: say("key"),
  score: say("score q·k/√d"),
  allowed: say("mask"),
  weight: say("weight"),
  sum: say("row sum"),
};
/** @type {(numbers: HeadNumbers, column: number) => number[]} */
const columnAt = ({ labels: { query, key }, weights }, column) =>
  query.map((_, row) => weights[row * key.length + column]);
/** @param {string[]} labels @param {number} place */
const tokenAt = (labels, place) =>
  html`<${Token} label=${labels[place]} /><small> ${say("at {place}", { place })}</small>`;

/** @type {(at: Cell, numbers: HeadNumbers) => Record<string, import("preact").ComponentChild>} */
const facts = ({ row, column }, numbers) => {
  const { labels } = numbers;
  /** @type {ReturnType<typeof facts>} */
  const values = {};
  if (row !== null) {
    values.query = tokenAt(labels.query, row);
    const sum = weightsOfRow(numbers, row).reduce((total, weight) => total + weight, 0);
    values.sum = numeral(sum.toFixed(4));
  }
  if (column !== null) values.key = tokenAt(labels.key, column);
  if (row === null || column === null) return values;
  const place = row * labels.key.length + column;
  if (numbers.scores) values.score = numeral(numbers.scores[place].toFixed(4));
  values.allowed = numbers.allowed[place] ? say("allowed") : say("hidden");
  values.weight = numeral(numbers.weights[place].toFixed(4));
  return values;
};

// The keys that the chosen query reads most, or the queries that read the chosen key most.
/** @param {{ at: Cell, numbers: HeadNumbers }} props */
const MostRead = ({ at: { row, column }, numbers }) => {
  const asks = row !== null;
  const weights = asks ? weightsOfRow(numbers, row) : columnAt(numbers, Number(column));
  const names = asks ? numbers.labels.key : numbers.labels.query;
  const best = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 5);
  if (!weights[best[0]]) return null; // of an ablated head
  const line = (/** @type {number} */ at) => html`<div class="top-key">
    <${Token} label=${names[at]} />
    <span class="bar" style=${{ width: `${(100 * weights[at]).toFixed(1)}%` }}></span>
    <span class="value">${numeral(weights[at].toFixed(3))}</span>
  </div>`;
  return html`<h4>${asks ? say("This query reads most") : say("This key is read most by")}</h4>
    ${best.filter((at) => weights[at] > 0).map(line)}`;
};

/** @type {(cell: CellState) => string} */
const pinNote = ({ pin }) =>
  pin ? say("Pinned. Esc lets go.") : say("Point at a cell for its numbers; click to pin.");

// Open the arithmetic of a weight's row, if the page has that view.
const isWorkedOut = views.some(({ name }) => name === "attention_math");
/** @param {{ cell: CellState, at: Cell | null }} props */
const Arithmetic = ({ cell, at }) => {
  const open = () => {
    if (!cell.pin && at) cell.moves.pin(at);
    openSection("attention_math");
  };
  return html`<button type="button" class="to-arithmetic" onClick=${open}
    hidden=${!isWorkedOut || !at || at.row === null || at.column === null}>${say("Where does this weight come from?")}</button>`;
};

// A cell; of a chosen row the one that weighs most.
/** @type {(at: Cell, numbers: HeadNumbers) => Cell} */
const withKey = ({ row, column }, numbers) => {
  if (row === null || column !== null) return { row, column };
  const weights = weightsOfRow(numbers, row);
  const best = weights.reduce((most, one, place) => (one > weights[most] ? place : most), 0);
  return { row, column: weights[best] ? best : null };
};

// more: a sentence about the head; keys: the id of the text about the keyboard.
/** @param {{ cell: CellState, shown: Shown, keys: string, more?: string | null | false }} props */
export const CellNumbers = ({ cell, shown, keys, more = "" }) => {
  const { numbers } = shown;
  const at = numbers && cell.chosen();
  const values = at ? facts(withKey(at, numbers), numbers) : {};
  const fact = (/** @type {[string, string]} */ [name, title]) =>
    html`<div><dt>${title}</dt><dd data-field=${name}>${values[name] ?? "–"}</dd></div>`;
  return html`<div class="numbers-side">
    <dl class=${at ? "readout" : "readout unchosen"} aria-live="off">${Object.entries(NAMES).map(fact)}</dl>
    <p class="shared-keys hint">${more}</p>
    <p class="pin-note">${pinNote(cell)} <${Arithmetic} cell=${cell} at=${at} /></p>
    <div class="top-keys">${at && html`<${MostRead} at=${at} numbers=${numbers} />`}</div>
    <p class="hint for-keys" id=${keys}>${say("Keyboard: in the large picture, arrow keys move from cell to cell, Home and End to the ends of a row; Enter pins the cell, Shift and Enter its row, Esc lets go. Click a row's label to pin the row.")}</p>
    <p class="unseen said" role="status" aria-live="polite">${cell.said}</p>
  </div>`;
};
