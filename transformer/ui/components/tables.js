// The numbers of a picture as a table behind it, a page of rows and columns at a time.
(() => {
  "use strict";
  const viz = window.viz;
  const [ROWS, COLUMNS] = [24, 12]; // of a page; a table of all cells would freeze the browser
  const DIGITS = 4;

  const number = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "hidden";
    if (typeof value !== "number") return String(value);
    return Number.isInteger(value) ? String(value) : value.toFixed(DIGITS);
  };
  const plain = (label) => viz.plainLabel(String(label));
  const listOf = (values) => (values ? Array.from(values) : []);

  // What a drawn figure says, as {rows, columns, value(row, column), corner}; null without numbers.
  const matrixOf = ({ layout }, [trace], own) => {
    const meta = layout.meta ?? {};
    const count = trace.z.length;
    const across = count ? trace.z[0].length : 0;
    const named = (labels, places, size) =>
      Array.from({ length: size }, (_, at) => (labels ? `${at} ${labels[at]}` : String(places?.[at] ?? at)));
    return {
      rows: named(meta.query_labels ?? meta.row_labels, trace.y, count),
      columns: named(meta.key_labels ?? meta.column_labels, trace.x, across),
      value: own ?? ((row, column) => number(trace.z[row][column])),
      corner: `${layout.yaxis?.title?.text ?? "row"} \\ ${layout.xaxis?.title?.text ?? "column"}`,
    };
  };
  const seriesOf = ({ layout }, traces) => {
    const flat = traces[0].orientation === "h";
    const values = (trace) => listOf(flat ? trace.x : trace.y);
    const places = listOf(flat ? traces[0].y : traces[0].x);
    const axis = flat ? layout.yaxis : layout.xaxis;
    const ticks = new Map(listOf(axis?.ticktext).map((text, place) => [axis.tickvals[place], plain(text)]));
    const labels = layout.meta?.labels;
    return {
      rows: places.map((at, place) => labels?.[place] ?? ticks.get(at) ?? String(at)),
      columns: traces.map((trace, place) => trace.name ?? `series ${place}`),
      value: (row, column) => number(values(traces[column])[row]),
      corner: axis?.title?.text ?? "",
    };
  };
  const contentOf = (box, figure, own) => {
    const traces = box._fullData.filter((trace) => trace.visible === true);
    const cells = traces.filter((trace) => trace.type === "heatmap" && trace.z?.length);
    if (cells.length) return matrixOf(figure, cells, own);
    const series = traces.filter((trace) => ["bar", "scatter"].includes(trace.type) && trace.x?.length);
    return series.length ? seriesOf(figure, series) : null;
  };

  const cell = (tag, text, scope) => {
    const made = viz.el(tag, "", text);
    if (scope) made.scope = scope;
    return made;
  };
  const page = ({ rows, columns, value, corner }, top, left) => {
    const table = viz.el("table");
    const [shownRows, shownColumns] = [rows.slice(top, top + ROWS), columns.slice(left, left + COLUMNS)];
    const head = viz.el("tr");
    head.append(cell("th", corner, "col"), ...shownColumns.map((name) => cell("th", name, "col")));
    const body = shownRows.map((name, row) => {
      const line = viz.el("tr");
      const values = shownColumns.map((_, column) => cell("td", value(top + row, left + column)));
      line.append(cell("th", name, "row"), ...values);
      return line;
    });
    const [thead, tbody] = [viz.el("thead"), viz.el("tbody")];
    thead.append(head);
    tbody.append(...body);
    table.append(thead, tbody);
    return table;
  };
  const pager = (what, at, size, total, go) => {
    const box = viz.el("span", "pager");
    if (total <= size) return box;
    const button = (sign, name, to) => {
      const made = viz.el("button", "", sign);
      made.setAttribute("aria-label", `${name} ${what}`);
      made.disabled = to < 0 || to >= total;
      made.addEventListener("click", () => go(to));
      return made;
    };
    const last = Math.min(at + size, total) - 1;
    box.append(
      button("‹", "Previous", at - size), ` ${what} ${at} to ${last} of ${total} `, button("›", "Next", at + size),
    );
    return box;
  };

  const fill = (details) => {
    const { content } = details.viz;
    let [top, left] = [0, 0];
    const show = () => {
      const head = viz.el("div", "table-head");
      head.append(
        pager("rows", top, ROWS, content.rows.length, (to) => { top = to; show(); }),
        pager("columns", left, COLUMNS, content.columns.length, (to) => { left = to; show(); }),
      );
      const wide = viz.el("div", "wide");
      wide.tabIndex = 0;
      wide.setAttribute("role", "region");
      wide.setAttribute("aria-label", "Numbers of the picture");
      wide.append(page(content, top, left));
      details.replaceChildren(details.firstElementChild, head, wide);
    };
    show();
  };

  // Put (or renew) the table behind a picture. numbers(row, column): the text of a cell, where the
  // picture's colours stand for something else than the number itself. table(figure): the whole
  // content {rows, columns, value(row, column), corner}, for a picture that is neither one matrix
  // nor series; false for one that has its numbers beside it already.
  viz.tableBehind = (box, figure, after, { numbers, table } = {}) => {
    const content = table === undefined ? contentOf(box, figure, numbers) : table && table(figure);
    let details = box.vizTable;
    if (!content) {
      details?.remove();
      box.vizTable = null;
      return;
    }
    if (!details) {
      details = box.vizTable = viz.el("details", "as-table");
      details.append(viz.el("summary", "", "Numbers as a table"));
      details.addEventListener("toggle", () => details.open && fill(details));
      after.after(details);
    }
    details.viz = { content };
    if (details.open) fill(details);
  };
})();
