// Attention as lines between two columns of tokens: of one head's queries, or an alignment.

import { ask } from "../../ui/static/ask.js";
import { numeral, say } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { page } from "../../web/store.js";

const WIDEST = 640; // px: longer lines say no more
const NARROW = 480;
const KEPT = 32;
const MOST_ROWS = 240; // of the table: lines of all queries can be thousands, the strongest come first
const named = (labels, at) => `${at} ${labels[at]}`;

// The numbers behind the lines, a row a line; null without one.
const tableOf = (names, from, to, links) => {
  const words = links.map(([a, b, weight]) => [
    named(from, a),
    named(to, b),
    numeral(weight.toFixed(4)),
  ]);
  return words.length === 0
    ? null
    : {
        rows: words.map((_, place) => String(place)),
        columns: [...names, say("weight")],
        value: (row, column) => words[row][column],
        corner: say("line"),
      };
};
const spoken = (from, to, links) =>
  links
    .slice(0, 12)
    .map(([a, b, weight]) =>
      say("{from} reads {to}, {weight}", {
        from: from[a],
        to: to[b],
        weight: numeral(weight.toFixed(2)),
      }),
    )
    .join("; ");

// Titles are the page's own headings, so the room above the picture goes.
const slim =
  (width) =>
  ({ layout }) => {
    layout.width = Math.min(layout.width, width);
    layout.height -= layout.margin.t - 12;
    const { l, r } = layout.margin;
    const some = layout.width < NARROW ? 0.9 : 1; // the guessed widths of labels are generous
    layout.margin = { ...layout.margin, t: 12, l: some * l, r: some * r };
  };

// frame: the box that scrolls; box: the picture in it; pick(place): a query was clicked.
// Both pictures take current(), false once another is wanted, and what to ask the server.
export const linePictures = (frame, box, server, pick) => {
  let kept = new Map();
  const get = async (question, data) => {
    const key = JSON.stringify([question === server.lines, data]);
    if (!kept.has(key)) {
      if (kept.size >= KEPT) kept.delete(kept.keys().next().value);
      kept.set(key, await ask(question, data));
    }
    return kept.get(key);
  };
  const tell = (name, facts, speech) => {
    box.setAttribute("aria-label", `${name}. ${speech || say("No line.")}`);
    for (const key of Object.keys(box.dataset)) delete box.dataset[key];
    Object.assign(box.dataset, facts);
  };

  const on = {
    plotly_click: ({ points }) => {
      if (box.dataset.site && points[0].x === 0) pick(points[0].y);
    },
  };

  const lines = async (current, facts) => {
    const answer = await get(server.lines, { ...facts, dark: page.dark });
    if (!current()) return;
    const table = ({ layout: { meta } }) =>
      tableOf(
        [say("query"), say("key")],
        meta.query_labels,
        meta.key_labels,
        meta.links.slice(0, MOST_ROWS),
      );
    const figure = await drawFigure(box, answer.figure, { on, table, change: slim(WIDEST) });
    const { query_labels: from, key_labels: to, links } = figure.layout.meta;
    tell(
      say("Lines from queries to keys"),
      { ...facts, query: facts.query ?? "" },
      spoken(from, to, links),
    );
    if (facts.query === null || frame.scrollHeight <= frame.clientHeight) return;
    const { yaxis } = box._fullLayout;
    frame.scrollTop = yaxis._offset + yaxis.l2p(facts.query) - frame.clientHeight / 2;
  };

  const alignment = async (current, facts) => {
    const answer = await get(server.alignment, { ...facts, dark: page.dark });
    if (!current()) return;
    const table = ({ layout: { meta } }) =>
      tableOf([say("target"), say("source")], meta.target_labels, meta.source_labels, meta.links);
    const figure = await drawFigure(box, answer.figure, { on, table, change: slim(WIDEST) });
    const { target_labels: from, source_labels: to, links } = figure.layout.meta;
    tell(say("Most-read source tokens"), facts, spoken(from, to, links));
  };
  return { lines, alignment, forget: () => (kept = new Map()) };
};
