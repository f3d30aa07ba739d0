// The numbers of a picture as a table behind it, a page of rows and columns at a time.

import { html, render, useLayoutEffect, useState } from "../../web/preact.js";
import { el } from "./dom.js";
import { say } from "./messages.js";

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

const Pager = ({ what, at, size, total, go }) => {
  const button = (sign, name, to) =>
    html`<button
      type="button"
      aria-label=${name}
      disabled=${to < 0 || to >= total}
      onClick=${() => go(to)}
    >
      ${sign}
    </button>`;
  const last = Math.min(at + size, total) - 1;
  return html`<span class="pager"
    >${
      total > size &&
      html`${button("‹", what.previous, at - size)} ${what.range({ first: at, last, total })}
      ${button("›", what.next, at + size)}`
    }</span
  >`;
};

const Page = ({ content: { rows, columns, value, corner }, top, left }) =>
  html`<table>
    <thead>
      <tr>
        <th scope="col">${corner}</th>
        ${columns.slice(left, left + COLUMNS).map((name) => html`<th scope="col">${name}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.slice(top, top + ROWS).map(
        (name, row) =>
          html`<tr>
            <th scope="row">${name}</th>
            ${columns
              .slice(left, left + COLUMNS)
              .map((_, column) => html`<td>${value(top + row, left + column)}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`;

// content: {rows, columns, value(row, column), corner}, or null for a picture without a table.
export const NumberTable = ({ content, hidden = false }) => {
  const [open, setOpen] = useState(false);
  const [[top, left], go] = useState([0, 0]);
  useLayoutEffect(() => go([0, 0]), [content]);
  if (!content) return null;
  const { rows, columns } = content;
  return html`<details
    class="as-table"
    hidden=${hidden}
    onToggle=${(event) => setOpen(event.target.open)}
  >
    <summary>${say("Numbers as a table")}</summary>
    ${
      open &&
      html`<div class="table-head">
          <${Pager}
            what=${PAGES.rows}
            at=${top}
            size=${ROWS}
            total=${rows.length}
            go=${(to) => go([to, left])}
          />
          <${Pager}
            what=${PAGES.columns}
            at=${left}
            size=${COLUMNS}
            total=${columns.length}
            go=${(to) => go([top, to])}
          />
        </div>
        <div class="wide" tabindex="0" role="region" aria-label=${say("Numbers of the picture")}>
          <${Page} ...${{ content, top, left }} />
        </div>`
    }
  </details>`;
};

const hosts = new WeakMap(); // of a picture's box that no component draws: {host, content}

// Put (or renew) the table of a picture after an element.
/** @type {(box: any, content: any, after: Element) => void} */
export const attachTable = (box, content, after) => {
  if (!hosts.has(box)) {
    const host = el("div");
    after.after(host);
    hosts.set(box, { host });
  }
  Object.assign(hosts.get(box), { content });
  hideTable(box, false);
};
export const hideTable = (box, hidden) => {
  const { host, content } = hosts.get(box) ?? {};
  if (host) render(html`<${NumberTable} ...${{ content, hidden }} />`, host);
};
export const detachTable = (box) => {
  hosts.get(box)?.host.remove();
  hosts.delete(box);
};
