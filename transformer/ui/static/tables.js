// The numbers of a picture as a table behind it, a page of rows and columns at a time.

import { el } from "./dom.js";
import { say } from "./messages.js";
import { figureTable } from "./table_content.js";

const [ROWS, COLUMNS] = [24, 12]; // of a page; a table of all cells would freeze the browser

const PAGES = {
  rows: {
    previous: say("Previous rows"),
    next: say("Next rows"),
    range: (places) => say("rows {first} to {last} of {total}", places),
  },
  columns: {
    previous: say("Previous columns"),
    next: say("Next columns"),
    range: (places) => say("columns {first} to {last} of {total}", places),
  },
};

const cell = (tag, text, scope) => {
  const made = el(tag, "", text);
  if (scope) made.scope = scope;
  return made;
};
const pageOf = ({ rows, columns, value, corner }, top, left) => {
  const table = el("table");
  const shownRows = rows.slice(top, top + ROWS);
  const shownColumns = columns.slice(left, left + COLUMNS);
  const head = el("tr");
  head.append(cell("th", corner, "col"), ...shownColumns.map((name) => cell("th", name, "col")));
  const body = shownRows.map((name, row) => {
    const line = el("tr");
    const values = shownColumns.map((_, column) => cell("td", value(top + row, left + column)));
    line.append(cell("th", name, "row"), ...values);
    return line;
  });
  const [thead, tbody] = [el("thead"), el("tbody")];
  thead.append(head);
  tbody.append(...body);
  table.append(thead, tbody);
  return table;
};
const pager = (what, at, size, total, go) => {
  const box = el("span", "pager");
  if (total <= size) return box;
  const button = (sign, name, to) => {
    const made = el("button", "", sign);
    made.setAttribute("aria-label", name);
    made.disabled = to < 0 || to >= total;
    made.addEventListener("click", () => go(to));
    return made;
  };
  const last = Math.min(at + size, total) - 1;
  box.append(
    button("‹", what.previous, at - size),
    ` ${what.range({ first: at, last, total })} `,
    button("›", what.next, at + size),
  );
  return box;
};

const fill = (details, content) => {
  let [top, left] = [0, 0];
  const goDown = (to) => {
    top = to;
    show();
  };
  const goRight = (to) => {
    left = to;
    show();
  };
  const show = () => {
    const head = el("div", "table-head");
    head.append(
      pager(PAGES.rows, top, ROWS, content.rows.length, goDown),
      pager(PAGES.columns, left, COLUMNS, content.columns.length, goRight),
    );
    const wide = el("div", "wide");
    wide.tabIndex = 0;
    wide.setAttribute("role", "region");
    wide.setAttribute("aria-label", say("Numbers of the picture"));
    wide.append(pageOf(content, top, left));
    details.replaceChildren(details.firstElementChild, head, wide);
  };
  show();
};

const tables = new WeakMap(); // of a picture's box: {details, content}

// Put (or renew) the table behind a picture. numbers(row, column): the text of a cell, where the
// picture's colours stand for something else than the number itself. table(figure): the whole
// content {rows, columns, value(row, column), corner}, for a picture that is neither one matrix
// nor series; false for one that has its numbers beside it already.
/** @type {(box: any, figure: any, after: Element, own?: {numbers?: any, table?: any}) => void} */
export const attachTable = (box, figure, after, { numbers, table } = {}) => {
  const content =
    table === undefined ? figureTable(box._fullData, figure, numbers) : table && table(figure);
  if (!content) {
    detachTable(box);
    return;
  }
  if (!tables.has(box)) {
    const details = el("details", "as-table");
    details.append(el("summary", "", say("Numbers as a table")));
    details.addEventListener("toggle", () => {
      if (details.open) fill(details, tables.get(box).content);
    });
    after.after(details);
    tables.set(box, { details });
  }
  const { details } = tables.get(box);
  tables.set(box, { details, content });
  if (details.open) fill(details, content);
};

export const hideTable = (box, hidden) => {
  const details = tables.get(box)?.details;
  if (details) details.hidden = hidden;
};
export const detachTable = (box) => {
  tables.get(box)?.details.remove();
  tables.delete(box);
};
