// The numbers of a picture as a table: {rows, columns, value(row, column), corner}.

import { numeral, say } from "./messages.js";
import { plainLabel } from "./labels.js";

/**
 * @typedef {(row: number, column: number, values?: any) => string} Value
 * @typedef {{rows: string[], columns: string[], value: Value, corner: string}} Table
 */

const DIGITS = 4;

// A number as a cell's text; a cell without a number is masked.
/** @type {(value: any) => string} */
export const cellText = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return say("hidden");
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) ? String(value) : numeral(value.toFixed(DIGITS));
};
/** @type {(values: ArrayLike<any> | undefined) => any[]} */
const listOf = (values) => (values ? Array.from(values) : []);

/** @type {(figure: any, traces: any[], own?: Value) => Table} */
const matrixOf = ({ layout }, traces, own) => {
  const [trace] = traces;
  const meta = layout.meta ?? {};
  const whole = trace.dx > 1; // the picture may draw several cells as one, the table does not
  const count = whole ? meta.query_labels.length : trace.z.length;
  const across = whole ? meta.key_labels.length : (trace.z[0]?.length ?? 0);
  /** @type {(labels: string[] | undefined, places: any, at: number) => string} */
  const nameAt = (labels, places, at) =>
    labels ? `${at} ${labels[at]}` : String(places?.[at] ?? at);
  /** @type {(labels: string[] | undefined, places: any, size: number) => string[]} */
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

/** @type {(figure: any, traces: any[]) => Table} */
const seriesOf = ({ layout }, traces) => {
  const flat = traces[0].orientation === "h";
  /** @type {(trace: any) => any[]} */
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
/** @type {(full: any[], figure: any, own?: Value) => Table | null} */
export const figureTable = (full, figure, own) => {
  const brought = figure.layout.meta?.table; // for a figure whose traces do not name it
  if (brought) return { ...brought, value: (row, column) => cellText(brought.cells[row][column]) };
  const traces = full.filter((trace) => trace.visible === true);
  const cells = traces.filter((trace) => trace.type === "heatmap" && trace.z?.length);
  if (cells.length) return matrixOf(figure, cells, own);
  /** @type {(trace: any) => boolean} */
  const isSeries = (trace) => ["bar", "scatter"].includes(trace.type) && trace.x?.length > 0;
  const series = traces.filter(isSeries);
  return series.length ? seriesOf(figure, series) : null;
};

// The table of a drawn picture. numbers(row, column, values): the text of a cell whose colour is not the
// number itself; values: of each of its traces. table(figure): the whole content, for a picture that is
// neither one matrix nor series; false if its numbers are already shown.
/** @type {(box: any, figure: any, own: {numbers?: Value, table?: any}) => Table | null} */
export const tableOf = (box, figure, { numbers, table }) =>
  table === undefined ? figureTable(box._fullData, figure, numbers) : table && table(figure);
