// The picture of one worked row: its look on this page, and its numbers as a table.

import { fontPx, shortenLabels } from "../../web/labels.js";
import { numeral, say } from "../../web/messages.js";

const NARROW_PX = 640;

// What the picture shows, as one table: q, each key with its score and weight, and the output.
// row: the server's answer; sums: see workOutRow.
export const tableOfRow = ({ row, sums }) => {
  const size = row.q.length;
  const ofKey = (label, key) => ({
    name: say("key {key} {label}", { key, label }),
    first: [
      numeral(sums.scores[key].toFixed(4)),
      row.allowed[key]
        ? numeral(sums.weights[key].toFixed(4))
        : say("{weight}, hidden", { weight: numeral(sums.weights[key].toFixed(4)) }),
    ],
    vector: row.keys.subarray(key * size, (key + 1) * size),
  });
  const lines = [
    {
      name: say("q, query {query} {label}", { query: row.query, label: row.query_label }),
      first: ["", ""],
      vector: row.q,
    },
    ...row.key_labels.map(ofKey),
    { name: say("output"), first: ["", ""], vector: sums.output },
  ];
  const valueOf = ({ first, vector }, column) =>
    first[column] ?? numeral(vector[column - first.length].toFixed(4));
  return {
    rows: lines.map(({ name }) => name),
    columns: [
      say("score"),
      say("weight"),
      ...Array.from(row.q, (_, dimension) => say("dimension {dimension}", { dimension })),
    ],
    value: (at, column) => valueOf(lines[at], column),
    corner: say("vector"),
  };
};

// Titles are the page's own; on a phone the scores are left to the table.
export const fitToWidth =
  (width) =>
  ({ layout, data }) => {
    layout.height -= layout.margin.t - 8;
    layout.margin.t = 8;
    for (const name of ["xaxis3", "xaxis4", "xaxis5"]) layout[name].title.font = { size: fontPx() };
    if (width >= NARROW_PX) return;
    layout.margin.l = 50; // and what the labels need
    for (const name of ["yaxis", "yaxis2", "yaxis5"]) shortenLabels(layout[name]);
    layout.xaxis.title.text = say("dimension");
    data[2].visible = false;
    layout.xaxis3.visible = false;
    layout.annotations = layout.annotations.filter(({ text: says }) => !says.startsWith("q·k"));
    layout.annotations.find(({ text: says }) => says === "softmax").x = 0.76;
    for (const name of ["xaxis", "xaxis2", "xaxis5"]) layout[name].domain = [0, 0.66];
    Object.assign(layout.xaxis4, { domain: [0.76, 1], nticks: 2, tickangle: 0 });
  };
