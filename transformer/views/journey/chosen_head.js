// Beside the picture: the chosen head large, and which heads let one token read another.

import { openTab } from "../../ui/static/gradio.js";
import { numeral, say, sayWith } from "../../web/messages.js";
import { kindOf, siteName } from "../../web/sites.js";
import { headName, SmallHead } from "../../web/head_grid.js";
import { Heatmap } from "../../web/heatmap.js";
import { useAnswer, openSection } from "../../web/part.js";
import { html, useLayoutEffect } from "../../web/preact.js";
import { emit, labelsOf, page, setHead, setKey, setQuery, tracedFrom } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { useNumbers } from "../attention/large.js";
import { readStack, store } from "../attention/numbers.js";
import { headLabel, headMetrics } from "../head_metrics/known.js";
import { HEATMAP, readers } from "./asked.js";

const LOOK = { stage: "weights", scale: "sqrt", range: "fixed" };
const BELOW_PX = 56; // what stands under the cells

// ---- who reads what ----

// The weights with which every head reads the second token, {answer, asked}; null without one.
export const useReaders = (part) => {
  const { query, key, run } = page;
  const kind = query?.stack === key?.stack ? "self" : "cross";
  const wanted = query &&
    key && { run: run.run, stack: query.stack, query: query.index, kind, key: key.index };
  const { answer, asked } = useAnswer(part, readers, wanted);
  return wanted && JSON.stringify(asked) === JSON.stringify(wanted) ? answer : null;
};

export const Readers = ({ found }) => {
  /** @type {(token: any) => any} */
  const named = ({ stack, index }) =>
    html`<strong><${Token} label=${labelsOf(stack)[index]} /></strong>`;
  const [from, to] = [named(page.query), named(page.key)];
  const row = (head) => html`<li>
    <button type="button" class="reader" onClick=${() => setHead(head)}>
    <span>${headName(head.layer, head.head)}${page.run.kinds.length > 1 && ` (${kindOf(head)})`}</span>
    <span class="bars"><i class="drawn" style=${{ width: `${100 * head.weight}%` }} /></span>
    <span class="value">${numeral(head.weight.toFixed(2))}</span></button>
  </li>`;
  return html`<section class="readers" aria-live="polite">
    <h3>${sayWith("Which heads read {to} at {from}?", { from, to })}</h3>
    <ol>${found.ranked.slice(0, 5).map(row)}</ol>
    <p class="hint">${say("Their weights light up in the picture.")}${" "}
      <button type="button" class="to-tab" onClick=${() => openTab("what-if")}>${say("What if one is switched off?")}</button></p>
  </section>`;
};

// ---- the chosen head ----

const openArithmetic = () => {
  openTab("attention");
  openSection("attention_math");
};
// A cell of it in words: the one that is pointed at, else that of the two chosen tokens.
const cellInWords = ({ numbers, labels }, { row, column }) => {
  if (!numbers || row === null || column === null) {
    return say("Click a cell: who else reads so?");
  }
  const weight = numbers.weights[row * labels.key.length + column];
  const [query, key] = [labels.query[row], labels.key[column]];
  return say("{query} reads {key}: {weight}", { query, key, weight: numeral(weight.toFixed(3)) });
};

export const Large = ({ part, view, at, row }) => {
  const { shown, cell, atlases } = view;
  useNumbers({ part, fields: HEATMAP, shown, store }, at);
  useLayoutEffect(() => emit("reading"), [shown.key]);
  useAnswer(part, headMetrics, { run: page.run.run, stack: at.stack, kind: at.kind });
  const label = headLabel(page.run.run, siteName(at), at.head);
  const keys = readStack(at);
  const { key } = page;
  const column = key && key.stack === keys ? key.index - tracedFrom(keys) : null;
  const lit = cell.over ?? { row, column };
  const place = at.layer * page.run.n_heads + at.head;
  const atlas = atlases[at.kind];
  const meanwhile = atlas && html`<${SmallHead} class="first-head" ...${{ atlas, place }} />`;
  // A cell is a query and a key: who else reads so?
  const pin = ({ row: from, column: to }) => {
    setQuery(cell.tokenOf(at.stack, from));
    if (to !== null) setKey(cell.tokenOf(keys, to));
  };
  const room = (box) => ({
    side: { width: box.clientWidth, height: view.height - BELOW_PX },
    ...{ top: 6, least: 280, bar: false, pan: true },
  });
  const masked = at.stack === "decoder" && at.kind === "self";
  return html`<div class="chosen-head">
    <h3>${headName(at.layer, at.head)}${label && html`<span class="head-label">${label}</span>`}</h3>
    <div class="head-large panned">
      <${Heatmap} part=${part} numbers=${shown.numbers} labels=${shown.labels} look=${LOOK}
        title=${headName(at.layer, at.head)} keys="journey-keys" room=${room} lit=${lit}
        start=${() => lit} over=${cell.moves.over} pin=${pin}
        meanwhile=${meanwhile} />
      ${masked && html`<button type="button" class="to-tab to-masks" onClick=${() => openTab("masks")}>${say("hidden by the mask")}</button>`}
    </div>
    <p class="hint" id="journey-keys"><span class="cell-says">${cellInWords(shown, lit)}</span>
      <button type="button" class="to-tab" onClick=${openArithmetic}>${say("Its arithmetic")}</button></p>
  </div>`;
};
