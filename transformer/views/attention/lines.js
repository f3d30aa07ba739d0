// Lines between two columns of tokens, drawn from the numbers of the large picture: from queries to the keys that
// they read, or from target tokens to the source token that each read most. Python makes the columns, and the same
// figures for programs: see lines.py.

import { askOnce } from "../../web/ask.js";
import { fields } from "../../web/fields.js";
import { Figure } from "../../web/figure.js";
import { weightsOfRow } from "../../web/head_numbers.js";
import { FONT_PX } from "../../web/labels.js";
import { asSentence, numeral, say, sayList } from "../../web/messages.js";
import { useAnswer } from "../../web/part.js";
import { html, useMemo } from "../../web/preact.js";
import { page, sameToken, setQuery } from "../../web/store.js";
import { fontPx } from "../../web/theme.js";
import { kindAsked, numbersOf, pictureAsked } from "./numbers.js";

const MAX_LINES = 2000; // of all queries together
const MAX_READINGS = 3; // in the hover label of a token
const WEIGHT_CHARACTERS = 4; // in front of a key
const MAX_ROWS = 240; // of the table: lines of all queries can be thousands, the strongest come first
const MAX_SPOKEN = 12; // lines in the picture's label

/** @import { Figure as PlotlyFigure, PlotlyObject } from "../../web/types" */
/**
 * @typedef {import("../../web/head_numbers.js").HeadNumbers} HeadNumbers
 * @typedef {Pick<HeadNumbers, "weights" | "allowed">} Weights
 * @typedef {[number, number, number]} Link places at the left and at the right, weight
 * @typedef {[number, number, string]} LineReading the same places (−1: none), and what their hover labels say
 */

/** @type {(from: string, to: string, weight: number, digits: number) => string} */
const reading = (from, to, weight, digits) =>
  say("{from} reads {to}, {weight}", { from, to, weight: numeral(weight.toFixed(digits)) });

// Of a head: the weights that are large enough, the strongest first. query: null for those of all.
/** @type {(numbers: Weights, names: string[][], query: number | null, threshold: number) => {links: Link[], readings: LineReading[]}} */
export const linesOfQueries = (numbers, [queries, keys], query, threshold) => {
  const { weights, allowed } = numbers;
  const least = Math.fround(threshold);
  /** @type {Link[]} */
  const links = [];
  const first = (query ?? 0) * keys.length;
  const end = query === null ? weights.length : Math.min(weights.length, first + keys.length);
  for (let at = first; at < end; at += 1) {
    if (allowed[at] && weights[at] >= least)
      links.push([Math.floor(at / keys.length), at % keys.length, weights[at]]);
  }
  const shown = links.sort((a, b) => b[2] - a[2]).slice(0, MAX_LINES);
  return {
    links: shown,
    readings: shown.map(([q, k, weight]) => [q, k, reading(queries[q], keys[k], weight, 4)]),
  };
};

// Of target tokens: the source token that each read most; by: "written" or "read", see lines.py.
/** @type {(numbers: HeadNumbers, names: string[][], by: string) => {links: Link[], readings: LineReading[]}} */
export const linesOfAlignment = (numbers, [sources, targets], by) => {
  const shift = by === "written" ? 1 : 0;
  /** @type {Link[][]} */
  const best = targets.map((_, target) => {
    const weights = target < shift ? new Float32Array() : weightsOfRow(numbers, target - shift);
    const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a]);
    return order
      .slice(0, 2)
      .flatMap((source) => (weights[source] > 0 ? [[source, target, weights[source]]] : []));
  });
  const links = best.flatMap((two) => two.slice(0, 1)); // the lines
  const reason = shift ? say("nothing predicted it") : say("written last, not read again");
  const why = links.length ? reason : say("switched off");
  /** @type {(link: Link) => LineReading} */
  const readingOf = ([source, target, weight]) => [
    source,
    target,
    reading(targets[target - shift], sources[source], weight, 4),
  ];
  const readings = best.flatMap((two, target) =>
    two.length ? two.map(readingOf) : [/** @type {LineReading} */ ([-1, target, why])],
  );
  return { links, readings };
};

// The figure with its lines. Tokens without one are muted. query: the one whose lines they are, with the weights in
// front of the keys.
/** @param {PlotlyFigure} columns @param {{links: Link[], readings: LineReading[]}} lines @param {number | null} [query] */
export const linked = (
  { data: [left, right, heading], layout },
  { links, readings },
  query = null,
) => {
  const { strokes, colours } = layout.meta;
  /** @type {PlotlyObject[]} */
  const lines = strokes[query === null ? "all" : "one"].map(
    (/** @type {PlotlyObject} */ stroke) => ({ ...stroke, x: [], y: [] }),
  );
  const text = [...right.text];
  for (const [from, to, weight] of links) {
    const { x, y } = lines[Math.min(lines.length - 1, Math.floor(weight * lines.length))];
    x.push(0, 1, null);
    y.push(from, to, null);
    if (query !== null) text[to] = numeral(weight.toFixed(2)) + text[to].slice(WEIGHT_CHARACTERS);
  }
  const sides = [left, { ...right, text }].map((side, at) => {
    const places = new Set(links.map((link) => link[at]));
    if (at === 0 && query !== null) places.add(query);
    const colour = (/** @type {string} */ name) =>
      side.y.map((/** @type {number} */ place) => colours[places.has(place) ? name : "unlinked"]);
    /** @type {Record<number, string[]>} */
    const texts = {};
    for (const each of readings) (texts[Number(each[at])] ??= []).push(each[2]);
    /** @type {(name: string, place: number) => string} */
    const named = (name, place) =>
      [name, ...(texts[place] ?? []).slice(0, MAX_READINGS)].join("<br>");
    return {
      ...side,
      textfont: { ...side.textfont, color: colour("text") },
      marker: { ...side.marker, color: colour("dot") },
      customdata: side.customdata.map(named),
    };
  });
  return { data: [...lines.filter(({ x }) => x.length), ...sides, heading], layout };
};

const ABOVE_PX = 280; // the tabs and the controls
const PROJECTED_ABOVE_PX = 236; // the tabs
const LEAST_ROW_PX = 16;
// All rows in the window, as far as they can be read, with room for labels in the page's type.
/** @type {(figure: import("../../web/types").Figure) => void} */
export const inWindow = ({ layout }) => {
  const { range } = layout.yaxis;
  const type = fontPx() / FONT_PX;
  for (const side of ["l", "r"]) layout.margin[side] *= type;
  const { t: above = 0, b: below = 0 } = layout.margin;
  const rows = (layout.height - above - below) * type;
  const least = (range[0] - range[1]) * LEAST_ROW_PX * type;
  const room = window.innerHeight - (type > 1 ? PROJECTED_ABOVE_PX : ABOVE_PX) - above - below;
  layout.height = Math.min(rows, Math.max(least, room)) + above + below;
};

// ---- as a component ----

/** @type {(asked: { kind: import("./types").KindAsked, numbers: import("./types").NumbersAsked }) => Promise<[import("./types").Columns, HeadNumbers]>} */
const answers = ({ kind, numbers }) => Promise.all([askOnce("columns", kind), numbersOf(numbers)]);

// part: of the view; cell: see useCell; at: the chosen head.
/** @param {import("./types").LinesProps} props */
export const Lines = ({ part, cell, at }) => {
  const { picture, by, threshold } = fields;
  const isAlignment = picture === "alignment";
  const { answer } = useAnswer(part, answers, { kind: kindAsked(at), numbers: pictureAsked(at) });
  const row = cell.pin?.row ?? cell.rowOf(page.query);
  const query = isAlignment || row < 0 ? null : row;
  const shown = useMemo(() => {
    const columns = answer?.[0][picture];
    if (!columns) return null;
    const names = columns.data.map(({ customdata }) => customdata);
    const lines = isAlignment
      ? linesOfAlignment(answer[1], names, by)
      : linesOfQueries(answer[1], names, query, Number(threshold));
    const tokens = columns.layout.meta.labels;
    const [reader, read] = isAlignment ? [1, 0] : [0, 1];
    /** @type {(link: Link, side: number) => string} */
    const label = (link, side) => `${link[side]} ${tokens[side][link[side]]}`;
    return {
      figure: linked(columns, lines, query),
      links: lines.links.map((link) => ({
        from: label(link, reader),
        to: label(link, read),
        weight: link[2],
      })),
    };
  }, [answer, picture, by, threshold, query]);
  const name = isAlignment ? say("Most-read source tokens") : say("Lines from queries to keys");
  const heads = isAlignment ? [say("target"), say("source")] : [say("query"), say("key")];
  const links = shown?.links ?? [];
  const spoken = links
    .slice(0, MAX_SPOKEN)
    .map(({ from, to, weight }) => reading(from, to, weight, 2));
  const table = links.length > 0 && {
    rows: links.slice(0, MAX_ROWS).map((_, place) => String(place)),
    columns: [...heads, say("weight")],
    value: (/** @type {number} */ line, /** @type {number} */ column) => {
      const { from, to, weight } = links[line];
      return [from, to, numeral(weight.toFixed(4))][column];
    },
    corner: say("line"),
  };
  const pick = (/** @type {import("../../web/types").Pointed} */ { points: [{ x, y }] }) => {
    if (isAlignment || x !== 0) return;
    const token = cell.tokenOf(at.stack, y);
    setQuery(sameToken(page.query, token) ? null : token);
  };
  return html`<div>
    <${Figure} part=${part} name="lines" class="lines" figure=${shown?.figure} change=${inWindow}
      wide=${name} on=${{ plotly_click: pick }}
      label=${shown && `${asSentence(name)} ${sayList(spoken, ";") || say("No line.")}`} table=${() => table} />
  </div>`;
};
