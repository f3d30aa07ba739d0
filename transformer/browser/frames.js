// Figures that Python made without numbers (transformer/server/page/static_page.py), for the tokens and the numbers of any run.

import { say, sayList } from "../web/messages.js";

/** @import { Answerer, FigureName } from "./questions/types" */
/**
 * @typedef {import("./item.js").Item} Item
 * @typedef {import("../web/types").Figure} Figure
 * @typedef {import("../web/types").PlotlyObject} Axis
 */

const MAX_TICKS = 32; // as views/drawing/style.py
const [TICK, HOVER] = [14, 60]; // characters of a token on an axis and in a hover label
const TEXT_LIMIT = 64; // tokens on a side whose names hover labels have

// ---- labels ----

/** @type {(text: string, limit?: number) => string} */
export const label = (text, limit = TICK) => {
  const signs = [...text];
  const short = signs.length > limit ? `${signs.slice(0, limit - 1).join("")}…` : text;
  const escaped = short.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `\u2068${escaped}\u2069`;
};
/** @type {(text: string) => string} */
export const hover = (text) => label(text, HOVER);

const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u;
/** @type {(sign: string) => number} */
const pixels = (sign) => {
  if (WIDE.test(sign)) return 18;
  if ("mwMW%@…".includes(sign)) return 13;
  return /\p{Lu}/u.test(sign) ? 10 : 8;
};
// A token cut to at most `room` px, and its width as guessed.
/** @type {(text: string, room: number) => [string, number]} */
export const fitted = (text, room) => {
  for (let limit = TICK; ; limit -= 1) {
    const signs = [...text];
    const shown = signs.length > limit ? [...signs.slice(0, limit - 1), "…"] : signs;
    const width = shown.reduce((sum, sign) => sum + pixels(sign), 0);
    if (width <= room || limit === 1) return [label(text, limit), width];
  }
};

// ---- axes ----

// An axis of tokens, which keeps its direction.
/** @type {(axis: Axis, labels: string[]) => void} */
export const tokenAxis = (axis, labels) => {
  const stride = Math.max(1, Math.ceil(labels.length / MAX_TICKS));
  axis.tickvals = labels.flatMap((_, at) => (at % stride ? [] : [at]));
  axis.ticktext = axis.tickvals.map((/** @type {number} */ at) => label(labels[at]));
  const isDown = axis.range?.[0] > axis.range?.[1];
  const span = [-0.5, labels.length - 0.5];
  if (axis.range) axis.range = isDown ? span.reverse() : span;
};
// An axis with these texts, ready for Plotly, at 0, 1, ...
/** @type {(axis: Axis, texts: string[]) => void} */
export const namedAxis = (axis, texts) =>
  void Object.assign(axis, {
    ...{ tickvals: texts.map((_, at) => at), ticktext: texts, range: [-0.5, texts.length - 0.5] },
  });
/** @type {(axis: Axis) => number} */
const cellsOf = ({ range }) => Math.abs(range[1] - range[0]);
// The path over a figure's cells, over so many.
/** @type {(figure: Figure, nRows: number, nColumns: number) => string} */
export const stretched = ({ layout }, nRows, nColumns) => {
  const { shapes: [{ path }], xaxis, yaxis } = layout; // prettier-ignore
  const [down, across] = [nRows / cellsOf(yaxis), nColumns / cellsOf(xaxis)];
  /** @type {(at: string, by: number) => string} */
  const to = (at, by) => ((Number(at) + 0.5) * by - 0.5).toFixed(4);
  return path.replace(
    /(-?[\d.]+),(-?[\d.]+)/g,
    (/** @type {string} */ _, /** @type {string} */ x, /** @type {string} */ y) =>
      `${to(x, across)},${to(y, down)}`,
  );
};
/** @type {(item: Item, name: FigureName) => Figure} */
export const frameOf = ({ model }, name) => structuredClone(model.frames[name]);

// A matrix of queries by keys; few: its hover labels name the tokens.
/** @type {(figure: Figure, queries: string[], keys: string[]) => Figure} */
export const matrixOf = (figure, queries, keys) => {
  const { layout } = figure;
  layout.shapes[0].path = stretched(figure, queries.length, keys.length);
  tokenAxis(layout.xaxis, keys);
  tokenAxis(layout.yaxis, queries);
  layout.xaxis.tickangle = keys.length > 3 ? -90 : 0;
  Object.assign(layout.meta, { query_labels: queries, key_labels: keys });
  if (Math.max(queries.length, keys.length) > TEXT_LIMIT)
    for (const trace of figure.data) {
      const where = sayList([`${say("query")} %{y:d}`, `${say("key")} %{x:d}`]);
      const named = say("{title}: {part}", { title: where, part: "%{text}" });
      trace.hovertemplate = trace.hovertemplate.replace(named, where);
    }
  return figure;
};
// The figure of any head over these tokens, or of many combined.
/** @type {(item: Item, queries: string[], keys: string[], combined?: boolean) => Figure} */
export const headFrame = (item, queries, keys, combined = false) =>
  matrixOf(frameOf(item, combined ? "combined" : "head"), queries, keys);

// ---- two columns of tokens, see views/attention/lines.py ----

const [ROW_PX, MIN_HEIGHT, TOP_PX, BELOW_PX, COLUMN_PX, NUMBER_PX] = [24, 200, 72, 48, 106, 44];
const NO_NUMBER = "\u2007\u2008\u2007\u2007"; // as wide as "0.12"
/** @type {(figure: Figure, words: string[], sides: string[][], numbered: boolean) => Figure} */
const columns = (figure, words, sides, numbered) => {
  const { data, layout } = figure;
  const nRows = Math.max(...sides.map(({ length }) => length));
  const widths = sides.map((labels, x) => {
    const shown = labels.map((text) => fitted(text, COLUMN_PX));
    const number = numbered && x ? `${NO_NUMBER} ` : "";
    Object.assign(data[x], {
      x: labels.map(() => x),
      y: labels.map((_, at) => at),
      text: shown.map(([text]) => number + text),
      customdata: labels.map((text, at) =>
        say("{title}: {part}", { title: `${words[x]} ${at}`, part: hover(text) }),
      ),
    });
    return Math.max(60, ...shown.map(([, width]) => 12 + width));
  });
  const [l, r] = widths;
  layout.margin = { ...layout.margin, l, r: r + (numbered ? NUMBER_PX : 0) };
  layout.height = Math.max(MIN_HEIGHT, TOP_PX + ROW_PX * (nRows + 1) + BELOW_PX);
  layout.yaxis.range = [nRows - 0.5, -1.5];
  layout.meta.labels = sides;
  return figure;
};
/** @type {Answerer<"columns">} */
export const columnsOf = (item, { stack, kind }) => {
  const queries = item.labelsOf(stack);
  const keys = item.labelsOf(kind === "cross" ? "encoder" : stack);
  const words = [say("query"), say("key")];
  const lines = columns(frameOf(item, "lines"), words, [queries, keys], true);
  if (kind !== "cross") return { lines };
  const sides = [say("source"), say("target")];
  const { source_labels: source, labels: target } = item.facts; // also a last token that is not read
  const both = target ? [source, target] : [keys, queries];
  return { lines, alignment: columns(frameOf(item, "alignment"), sides, both, false) };
};
