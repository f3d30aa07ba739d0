// All heads of a layer at once, as lines in a colour for each: of every query, of the chosen one, or of one pair of
// tokens. After BertViz' head view (Vig 2019).

import { askOnce } from "../../web/ask.js";
import { fields } from "../../web/fields.js";
import { Figure } from "../../web/figure.js";
import { asSentence, capital, numeral, say, sayList } from "../../web/messages.js";
import { useAnswer } from "../../web/part.js";
import { html, useMemo } from "../../web/preact.js";
import { isAblated } from "../../web/runs.js";
import { readStack } from "../../web/selection.js";
import { headName } from "../../web/sites.js";
import { page, sameToken, setHead, setQuery, tracedFrom } from "../../web/store.js";
import { themed } from "../../web/theme.js";
import { inWindow, linesOfQueries, linked } from "./lines.js";
import { headAsked, kindAsked, numbersOf } from "./numbers.js";

const MAX_LINES = 600; // of all heads together, the strongest first
const MAX_ROWS = 240; // of the table
const MAX_SPOKEN = 12;
const BUNDLE_WIDTH = 0.5; // of a row is the bundle of all heads' lines between two tokens
const DASHES = ["solid", "dot", "dash"]; // heads beyond the colours

/** @import { Figure as PlotlyFigure, PlotlyObject } from "../../web/types" */
/** @typedef {{ head: number, from: number, to: number, weight: number }} HeadLine */

/** @type {(asked: { kind: import("./types").KindAsked, heads: import("./types").NumbersAsked[] }) => Promise<[import("./types").Columns, import("../../web/head_numbers.js").HeadNumbers[]]>} */
const answers = ({ kind, heads }) =>
  Promise.all([askOnce("columns", kind), Promise.all(heads.map(numbersOf))]);

// The strongest lines of all heads. query: null for those of all queries; key: the other token of a pair, if one is
// chosen: then however small.
/** @type {(heads: import("./lines.js").Weights[], names: string[][], query: number | null, key: number | null, threshold: number) => HeadLine[]} */
export const linesOfHeads = (heads, names, query, key, threshold) =>
  heads
    .flatMap((numbers, head) =>
      linesOfQueries(numbers, names, query, key === null ? threshold : 0).links.map(
        ([from, to, weight]) => ({ head, from, to, weight }),
      ),
    )
    .filter(({ to, weight }) => (key === null || to === key) && weight > 0)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, MAX_LINES);

/** @type {(head: number) => { color: string, dash: string }} */
const strokeOf = (head) => {
  const colours = themed("groups").split(" ");
  const round = Math.floor(head / colours.length);
  return { color: colours[head % colours.length], dash: DASHES[round % DASHES.length] };
};

// The columns with a trace for all lines of a head that are as strong.
/** @param {PlotlyFigure} columns @param {HeadLine[]} lines @param {number} count @param {number | null} query */
const drawn = (columns, lines, count, query) => {
  const links = lines.map(
    (line) => /** @type {import("./lines.js").Link} */ ([line.from, line.to, 0]),
  );
  const { data, layout } = linked(columns, { links, readings: [] }, null);
  const strokes = columns.layout.meta.strokes[query === null ? "all" : "one"];
  /** @type {Map<string, PlotlyObject>} */
  const traces = new Map();
  for (const { head, from, to, weight } of lines) {
    const bucket = Math.min(strokes.length - 1, Math.floor(weight * strokes.length));
    const stroke = strokes[bucket];
    const name = `${head} ${bucket}`;
    const trace = traces.get(name) ?? {
      ...{ ...stroke, x: [], y: [], line: { ...stroke.line, ...strokeOf(head) } },
      opacity: Math.min(1, stroke.opacity + 0.2),
    };
    const aside = count > 1 ? BUNDLE_WIDTH * (head / (count - 1) - 0.5) : 0;
    trace.x.push(0, 1, null);
    trace.y.push(from + aside, to + aside, null);
    traces.set(name, trace);
  }
  return { data: [...traces.values(), ...data.slice(-3)], layout };
};

// weights: of each head, where a pair of tokens is chosen.
/** @param {{ at: import("./types").ShownHead, count: number, weights: number[] | null }} props */
const Legend = ({ at, count, weights }) => {
  const one = (/** @type {number} */ head) => {
    const of = { stack: at.stack, kind: at.kind, layer: at.layer, head };
    const { color, dash } = strokeOf(head);
    return html`<button type="button" class="head-colour" aria-pressed=${String(head === at.head)} title=${capital(headName(of))}
      onClick=${() => setHead(of)}><i class=${dash} style=${{ "--colour": color }} />${head}${weights && html` <b>${numeral((weights[head] ?? 0).toFixed(2))}</b>`}</button>`;
  };
  return html`<div class="head-colours" role="group" aria-label=${say("Heads of layer {layer}", { layer: at.layer })}>
    <span>${say("head")}</span>${Array.from({ length: count }, (_, head) => one(head))}</div>`;
};

// part: of the view; cell: see useCell; at: the chosen head, all of whose layer are shown.
/** @param {import("./types").LinesProps} props */
export const HeadLines = ({ part, cell, at }) => {
  const { n_heads: count } = page.run;
  const { threshold } = fields;
  const { stack, kind, layer } = at;
  const heads = Array.from({ length: count }, (_, head) => ({ stack, kind, layer, head }));
  const asked = { kind: kindAsked(at), heads: heads.map(headAsked) };
  const { answer } = useAnswer(part, answers, asked);
  const row = cell.pin?.row ?? cell.rowOf(page.query);
  const query = row < 0 ? null : row;
  const keys = readStack(at);
  const key =
    query !== null && page.key?.stack === keys ? (page.key?.index ?? 0) - tracedFrom(keys) : null;
  const off = heads.filter((head) => isAblated(head)).map(({ head }) => head);
  const shown = useMemo(() => {
    const columns = answer?.[0].lines;
    if (!columns) return null;
    const names = columns.data.map(({ customdata }) => customdata);
    const lines = linesOfHeads(answer[1], names, query, key, Number(threshold)).filter(
      ({ head }) => !off.includes(head),
    );
    return {
      figure: drawn(columns, lines, count, query),
      lines,
      labels: columns.layout.meta.labels,
    };
  }, [answer, threshold, query, key, page.dark, off.join()]);
  const lines = shown?.lines ?? [];
  const cells = (/** @type {HeadLine} */ { head, from, to, weight }) => {
    const [queries, read] = shown?.labels ?? [[], []];
    const number = numeral(weight.toFixed(4));
    return [String(head), `${from} ${queries[from]}`, `${to} ${read[to]}`, number];
  };
  /** @type {number[] | null} */
  const weights = key === null ? null : [];
  if (weights) for (const { head, weight } of lines) weights[head] = weight;
  const name = say("Lines of every head of layer {layer}", { layer });
  const spoken = lines.slice(0, MAX_SPOKEN).map((line) => sayList(cells(line)));
  const table = lines.length > 0 && {
    rows: lines.slice(0, MAX_ROWS).map((_, place) => String(place)),
    columns: [say("head"), say("query"), say("key"), say("weight")],
    value: (/** @type {number} */ line, /** @type {number} */ column) => cells(lines[line])[column],
    corner: say("line"),
  };
  const pick = (/** @type {import("../../web/types").Pointed} */ { points: [{ x, y }] }) => {
    if (x !== 0) return;
    const token = cell.tokenOf(stack, Math.round(y));
    setQuery(sameToken(page.query, token) ? null : token);
  };
  return html`<div class="head-lines">
    <${Legend} at=${at} count=${count} weights=${weights} />
    <${Figure} part=${part} name="lines" class="lines" figure=${shown?.figure} change=${inWindow} wide=${name}
      on=${{ plotly_click: pick }} label=${shown && `${asSentence(name)} ${sayList(spoken, ";") || say("No line.")}`} table=${() => table} />
  </div>`;
};
