// A figure made in Python as a component: drawn by Plotly once it is visible, with a table of its numbers.

import { drawPicture, usePlot } from "./plots.js";
import { say, numeral } from "./messages.js";
import { html, useLayoutEffect, useRef, useState } from "./preact.js";
import { page } from "./store.js";
import { plainLabel } from "./labels.js";

/** @import { CellText, Drawn, Figure as PlotlyFigure, FigureProps, NumbersTable as Table, PlotlyObject, Question } from "./types" */

const DIGITS = 4;

// A number as a cell's text; a cell without a number is masked.
/** @type {(value: unknown) => string} */
export const cellText = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return say("hidden");
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) ? String(value) : numeral(value.toFixed(DIGITS));
};
/** @type {<Value>(values: ArrayLike<Value> | undefined) => Value[]} */
const listOf = (values) => (values ? Array.from(values) : []);

/** @type {(figure: { layout: PlotlyObject }, traces: PlotlyObject[], own?: CellText | null) => Table} */
const matrixOf = ({ layout }, traces, own) => {
  const [trace] = traces;
  const meta = layout.meta ?? {};
  const whole = trace.dx > 1; // the picture may draw several cells as one, the table does not
  const count = whole ? meta.query_labels.length : trace.z.length;
  const across = whole ? meta.key_labels.length : (trace.z[0]?.length ?? 0);
  /** @type {(labels: string[] | undefined, places: ArrayLike<number | string> | undefined, at: number) => string} */
  const nameAt = (labels, places, at) =>
    labels ? `${at} ${labels[at]}` : String(places?.[at] ?? at);
  /** @type {(labels: string[] | undefined, places: ArrayLike<number | string> | undefined, size: number) => string[]} */
  const named = (labels, places, size) =>
    Array.from({ length: size }, (_, at) => nameAt(labels, places, at));
  const [row, column] = [layout.yaxis?.title?.text, layout.xaxis?.title?.text];
  return {
    rows: named(meta.query_labels ?? meta.row_labels, trace.y, count),
    columns: named(meta.key_labels ?? meta.column_labels, trace.x, across),
    value: (down, right) => {
      const values = traces.map(({ z }) => z[down][right]);
      return own ? own(down, right, values) : cellText(values[0]);
    },
    corner: `${row ?? say("row")} \\ ${column ?? say("column")}`,
  };
};

/** @type {(figure: { layout: PlotlyObject }, traces: PlotlyObject[]) => Table} */
const seriesOf = ({ layout }, traces) => {
  const flat = traces[0].orientation === "h";
  /** @type {(trace: PlotlyObject) => unknown[]} */
  const values = (trace) => listOf(flat ? trace.x : trace.y);
  const places = listOf(flat ? traces[0].y : traces[0].x);
  const axis = flat ? layout.yaxis : layout.xaxis;
  const ticks = new Map(
    listOf(axis?.ticktext).map((text, place) => [axis.tickvals[place], plainLabel(String(text))]),
  );
  const labels = layout.meta?.labels;
  return {
    rows: places.map((at, place) => labels?.[place] ?? ticks.get(at) ?? String(at)),
    columns: traces.map((trace, place) => trace.name ?? say("series {place}", { place })),
    value: (row, column) => cellText(values(traces[column])[row]),
    corner: axis?.title?.text ?? "",
  };
};

// full: the traces as Plotly completed them; own(row, column): the text of a cell, if its colour
// shows something else. null without numbers.
/** @type {(full: PlotlyObject[], figure: { layout: PlotlyObject }, own?: CellText | null) => Table | null} */
export const figureTable = (full, figure, own) => {
  const brought = figure.layout.meta?.table; // for a figure whose traces do not name it
  if (brought) return { ...brought, value: (row, column) => cellText(brought.cells[row][column]) };
  const traces = full.filter((trace) => trace.visible === true);
  const cells = traces.filter((trace) => trace.type === "heatmap" && trace.z?.length);
  if (cells.length) return matrixOf(figure, cells, own);
  /** @type {(trace: PlotlyObject) => boolean} */
  const isSeries = (trace) => ["bar", "scatter"].includes(trace.type) && trace.x?.length > 0;
  const series = traces.filter(isSeries);
  return series.length ? seriesOf(figure, series) : null;
};

// The table of a drawn picture. numbers(row, column, values): the text of a cell whose colour is not the
// number itself; values: of each of its traces. table(figure): the whole content, for a picture that is
// neither one matrix nor series; false if its numbers are already shown.
/** @type {(box: Drawn, figure: PlotlyFigure, own: Pick<FigureProps, "numbers" | "table">) => Table | null} */
export const tableOf = (box, figure, { numbers, table }) =>
  table === undefined ? figureTable(box._fullData, figure, numbers) : table ? table(figure) : null;

// ---- as a component: a page of rows and columns at a time ----

const [ROWS, COLUMNS] = [24, 12]; // of a page; a table of all cells would freeze the browser

// ‹ the range that is shown ›. inWords({first, last, total}).
/** @param {{ inWords: (places: { first: number, last: number, total: number }) => string, at: number, size: number, total: number, go: (to: number) => void }} props */
export const Pager = ({ inWords, at, size, total, go }) => {
  if (!(total > size)) return html`<span class="pager"></span>`;
  /** @param {string} sign @param {string} name @param {number} to */
  const button = (sign, name, to) => html`<button type="button" aria-label=${name}
    disabled=${to === at || to >= total} onClick=${() => go(to)}>${sign}</button>`;
  const range = inWords({ first: at, last: Math.min(at + size, total) - 1, total });
  return html`<span class="pager">
    ${button("‹", say("One page back"), Math.max(0, at - size))} ${range} ${button("›", say("One page on"), at + size)}
  </span>`;
};

/** @param {{ content: Table, top: number, left: number }} props */
const Page = ({ content: { rows, columns, value, corner }, top, left }) => {
  const across = columns.slice(left, left + COLUMNS);
  const cells = (/** @type {number} */ row) =>
    across.map((_, at) => html`<td>${value(row, left + at)}</td>`);
  /** @param {string} name @param {number} at */
  const line = (name, at) => html`<tr><th scope="row">${name}</th>${cells(top + at)}</tr>`;
  return html`<table translate=${false}>
    <thead><tr><th scope="col">${corner}</th>${across.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
    <tbody>${rows.slice(top, top + ROWS).map(line)}</tbody>
  </table>`;
};

// content: {rows, columns, value(row, column), corner}, or null for a picture without a table.
/** @param {{ content: Table | null, hidden?: boolean }} props */
const NumberTable = ({ content, hidden = false }) => {
  const [open, setOpen] = useState(false);
  const [[top, left], go] = useState([0, 0]);
  useLayoutEffect(() => go([0, 0]), [content]);
  if (!content) return null;
  const shown = () => html`<div class="table-head">
    <${Pager} at=${top} size=${ROWS} total=${content.rows.length} go=${(/** @type {number} */ to) => go([to, left])}
      inWords=${(/** @type {Question} */ places) => say("rows {first} to {last} of {total}", places)} />
    <${Pager} at=${left} size=${COLUMNS} total=${content.columns.length} go=${(/** @type {number} */ to) => go([top, to])}
      inWords=${(/** @type {Question} */ places) => say("columns {first} to {last} of {total}", places)} />
  </div>
  <div class="wide" tabindex="0" role="region" aria-label=${say("Numbers of the picture")}>
    <${Page} ...${{ content, top, left }} />
  </div>`;
  const toggle = (/** @type {import("./types").ChangeOf<HTMLDetailsElement>} */ { target }) =>
    setOpen(target.open);
  return html`<details class="as-table" hidden=${hidden} onToggle=${toggle}>
    <summary title=${say("Numbers as a table")}>123</summary>${open && shown()}
  </details>`;
};

// ---- the figure ----

/**
 * part: see usePart. figure: its JSON; null for none. name: its data-picture. wide: its label if it scrolls
 * in a frame; label: its label otherwise. meanwhile: shown until it is drawn. on: Plotly's events, each with the drawn box. numbers, table: see
 * tableOf. how: see drawPicture. over(box): overlay of the drawn picture; box: attributes of the picture
 * itself; done(figure) follows each draw.
 * @param {FigureProps} props
 */
export const Figure = ({
  part,
  figure,
  name,
  wide,
  label,
  meanwhile = null,
  hidden = false,
  class: more = "",
  on = {},
  numbers,
  table,
  over,
  box: attributes = {},
  done = null,
  ...how
}) => {
  /** @type {{ current: Drawn }} */
  const box = useRef(null);
  const wanted = figure && !hidden ? [figure, part.width, page.projector, page.dark] : null;
  const draw = async () => {
    const drawn = await drawPicture(box.current, /** @type {PlotlyFigure} */ (figure), how);
    return () => {
      done?.(drawn);
      return { content: tableOf(box.current, drawn, { numbers, table }) };
    };
  };
  const shown = usePlot({ part, box, wanted, draw, on });
  const picture = html`<div class=${`picture ${more}`} data-picture=${name} translate=${false} hidden=${hidden}
    role=${label && "img"} aria-label=${label} ...${attributes} ref=${box} />`;
  const marked = over
    ? html`<div class="marked">${picture}${shown && over(box.current)}</div>`
    : picture;
  const frame = wide
    ? html`<div class="wide" tabindex="0" role="region" aria-label=${wide}>${marked}</div>`
    : marked;
  return [
    !shown && meanwhile,
    frame,
    html`<${NumberTable} content=${shown?.content} hidden=${hidden} />`,
  ];
};
