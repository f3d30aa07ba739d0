// One row of attention, computed in float64 from q, K, V and the mask, and compared with the recorded one.

import { isAblated } from "../../web/runs.js";
import { fields } from "../../web/fields.js";
import { Figure } from "../../web/figure.js";
import { headLookedAt } from "../../web/selection.js";
import { numeral, say, sayN, sayWith, tinyNumber } from "../../web/messages.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../../web/preact.js";
import { headShown, labelsOf, tracedFrom } from "../../web/store.js";
import { Token } from "../../web/text.js";
import {
  fitToWidth,
  largestDifference,
  numberText,
  rootOf,
  smallText,
  stepsOf,
  tableOfRow,
  workOutRow,
} from "./row_arithmetic.js";

const MOST_ROWS = 32; // lines of the table; the other keys are summed in one
const PAUSE_MS = 200; // the large heatmap is drawn first

/**
 * @typedef {import("./types").RecordedRow} Row
 * @typedef {import("./types").RowSteps} RowSteps
 * @typedef {import("./types").WorkedRow} WorkedRow
 */

// Debounce: `wanted` once it has not changed for a while.
/** @type {<Wanted>(part: import("../../web/part.js").Part, wanted: Wanted) => Wanted | null} */
const useRested = (part, wanted) => {
  const me = useRef({});
  const [rested, rest] = useState(/** @type {typeof wanted | null} */ (null));
  const key = JSON.stringify(wanted);
  const due = key !== JSON.stringify(rested);
  useLayoutEffect(() => {
    part.setPending(me, due);
    const timer = due ? setTimeout(() => rest(() => wanted), PAUSE_MS) : 0;
    return () => clearTimeout(timer);
  }, [key, due]);
  return rested;
};

// The answer with every step computed. A saved page has no recorded weights to compare with, and no figure.
/** @type {(row: Row) => WorkedRow} */
const workedOut = (row) => {
  const sums = workOutRow(row);
  const order = sums.weights
    .map((_, key) => key)
    .sort((a, b) => sums.weights[b] - sums.weights[a] || a - b);
  if (!row.weights || !row.scores || row.tolerance === undefined) return { row, sums, order };
  const byScore = largestDifference(sums.scores, row.scores);
  const byWeight = largestDifference(sums.weights, row.weights);
  const root = Math.sqrt(row.score_size); // scores before bias and cap are rounded too
  const span = Math.max(
    1,
    ...sums.scores.map(Math.abs),
    ...sums.dots.map((dot) => Math.abs(dot) / root),
  );
  const { tolerance } = row;
  const agrees = byScore < tolerance * span && byWeight < tolerance;
  return { row, sums, order, agreement: { byScore, byWeight, tolerance, agrees } };
};

/** @type {(agreement: import("./types").RowAgreement) => string} */
const agreementInWords = ({ byScore, byWeight, tolerance, agrees }) => {
  const values = {
    byWeight: tinyNumber(byWeight),
    byScore: tinyNumber(byScore),
    tolerance: numeral(tolerance.toExponential(0)).replace("-", "−"),
  };
  const sentence = say(
    "Largest difference from the network's own weights: {byWeight} (rounding: {tolerance}); " +
      "from its own scores: {byScore}.",
    values,
  );
  return agrees ? sentence : `${say("This does not agree with the network.")} ${sentence}`;
};

// ---- the table, a line a key ----

// widest: the weight of the longest bar.
/** @param {number} weight @param {number} widest */
const bar = (weight, widest) => html`<td class="weight-bar">
  <span style=${{ width: `${((100 * weight) / widest).toFixed(1)}%` }} /></td>`;
const numbers = (/** @type {string[]} */ texts) => texts.map((text) => html`<td>${text}</td>`);

/** @param {{ at: number, shown: WorkedRow, widest: number, chosen: boolean, choose: (key: number) => void }} props */
const KeyLine = ({ at, shown: { row, sums }, widest, chosen, choose }) => {
  const token = row.key_labels[at];
  const look = `${row.allowed[at] ? "" : "is-hidden"} ${chosen ? "is-chosen" : ""}`.trim();
  return html`<tr class=${look} data-key=${at}>
    <th scope="row"><small>${`${at} `}</small><button type="button" aria-pressed=${String(chosen)}
      aria-label=${say("key {key} {label}", { key: at, label: token })}
      onClick=${() => choose(at)}><${Token} label=${token} /></button></th>
    ${numbers([
      numberText(sums.dots[at]),
      ...(row.bias === null ? [] : [numberText(row.bias[at])]),
      numberText(sums.scores[at]),
      row.allowed[at] ? "+ 0" : "−∞",
      smallText(sums.exps[at]),
      smallText(sums.weights[at]),
    ])}${bar(sums.weights[at], widest)}
  </tr>`;
};
const restInWords = (/** @type {number[]} */ rest) =>
  sayN("the other {n} key", "the other {n} keys", rest.length);
/** @param {{ shown: WorkedRow, chosen: number, choose: (key: number) => void }} props */
const Table = ({ shown, chosen, choose }) => {
  const { row, sums, order } = shown;
  const [most, rest] = [order.slice(0, MOST_ROWS), order.slice(MOST_ROWS)];
  /** @type {(values: number[], keys: number[]) => number} */
  const sum = (values, keys) => keys.reduce((total, at) => total + values[at], 0);
  const left = sum(sums.weights, rest);
  const widest = Math.max(sums.weights[order[0]], left);
  const isScaledAlone = row.bias === null && row.cap === null;
  const names = [
    say("key"),
    "q·k",
    ...(row.bias === null ? [] : ["b"]),
    isScaledAlone ? `÷ ${rootOf(row.score_size)}` : say("score"),
    say("mask"),
    "exp",
    say("weight"),
  ];
  const blank = names.slice(1, -2).map(() => "");
  const line = (/** @type {number} */ at) =>
    html`<${KeyLine} key=${at} at=${at} shown=${shown} widest=${widest} chosen=${at === chosen}
      choose=${choose} />`;
  return html`<table>
    <thead><tr>${names.map((name) => html`<th scope="col">${name}</th>`)}<td></td></tr></thead>
    <tbody>
      ${most.sort((a, b) => a - b).map(line)}
      ${
        rest.length > 0 &&
        html`<tr class="is-rest"><th scope="row">${restInWords(rest)}</th>
          ${numbers([...blank, smallText(sum(sums.exps, rest)), smallText(left)])}${bar(left, widest)}
        </tr>`
      }
      <tr class="is-sum"><th scope="row">${say("sum")}</th>
        ${numbers([...blank, numberText(sums.total), numberText(sum(sums.weights, order)), ""])}
      </tr>
    </tbody>
  </table>`;
};

// ---- the formulas of one key, with its numbers ----

/** @param {{ shown: WorkedRow, chosen: number }} props */
const Steps = ({ shown: { row, sums }, chosen }) => {
  const title = sayWith("With the numbers of key {key}: {token}", {
    key: chosen,
    token: html`<${Token} label=${row.key_labels[chosen]} />`,
  });
  const step = (/** @type {[string, string]} */ [says, formula]) =>
    html`<li>${`${says} `}<span class="reckoning">${formula}</span></li>`;
  return html`<section>
    <h4 class="steps-title">${title}</h4>
    <ol class="row-steps">${stepsOf(row, sums, chosen).map(step)}</ol>
  </section>`;
};

// The key of the cell that is pinned in this row; one of a longer row that is on its way is none.
/** @type {(row: Row | undefined) => number | null} */
const pinnedKey = (row) => {
  const [query, key] = fields.cell.split(",").map(Number);
  return row && query === row.query && key < row.key_labels.length ? key : null;
};

export const Worked = () => {
  const part = usePart();
  const [picked, pick] = useState(
    /** @type {{ of?: import("./types").RecordedRow | null, key?: number }} */ ({}),
  );
  const at = headShown();
  const isOff = at && isAblated(at);
  const wanted = useRested(part, headLookedAt());
  const { answer, asked } = useAnswer(part, "attention_math", wanted);
  const shown = useMemo(() => answer && workedOut(answer), [answer]);
  /** @type {Partial<WorkedRow>} */
  const { row, order, agreement } = shown ?? {};
  const chosen = picked.of === answer ? picked.key : (pinnedKey(row) ?? order?.[0]);
  const choose = (/** @type {number} */ key) => pick({ of: answer, key });
  const facts = shown && {
    ...{
      run: asked?.run,
      site: asked?.site,
      head: asked?.head,
      query: shown.row.query,
      key: chosen,
    },
    agrees: agreement?.agrees,
    ...{ "weight-difference": agreement?.byWeight, "score-difference": agreement?.byScore },
  };
  const label =
    row && say("q, the keys, scores, weights and output of query {query}", { query: row.query });
  return html`<div class="attention-math" ...${part.attributes(facts)}>
    <p>${say("How one query of the chosen head reads its keys, number by number. Your browser does this arithmetic itself, from the network's own q, K and V. Choose a head in the grid, and a query by its token in the text.")}</p>
    ${isOff && html`<p>${say("This head is switched off: what it works out here reaches nothing.")}</p>`}
    <p class=${`agreement ${agreement?.agrees === false ? "disagrees" : ""}`} role="status">${
      agreement && agreementInWords(agreement)
    }</p>
    ${
      (!answer || answer.figure) &&
      html`<${Figure} part=${part} name="attention_math" figure=${answer?.figure} label=${label}
        change=${fitToWidth(part.width)} table=${() => shown && tableOfRow(shown)} />`
    }
    ${
      shown &&
      html`<div class="attention-math-both">
        <section>
          <h4>${say("Every key: from agreement to weight")}</h4>
          <div class="wide row-table" tabindex="0" role="region" aria-label=${say("Every key: from agreement to weight")}>
            <${Table} shown=${shown} chosen=${chosen} choose=${choose} />
          </div>
        </section>
        <${Steps} shown=${shown} chosen=${chosen} />
      </div>`
    }
  </div>`;
};
/** @type {(stack: string, row: number) => string} */
const labelOf = (stack, row) => labelsOf(stack)[row + tracedFrom(stack)];
// The row that it shows, visible while it is folded.
const finding = () => {
  const { site, head, query } = headLookedAt() ?? { site: "", head: 0, query: null };
  const [stack, layer] = site.split(".");
  return query === null
    ? ""
    : sayWith("layer {layer}, head {head}, query {query} {token}", {
        ...{ layer, head, query },
        token: html`<${Token} label=${labelOf(stack, query)} />`,
      });
};
export const mount = mounted(Worked, finding);
