// The numbers of the chosen cell, row or column of an attention picture.

import { el, tokenElement } from "../../ui/static/dom.js";
import { numeral, say } from "../../ui/static/messages.js";

// A cell in words, for those who cannot see the picture; a whole row if its column is null.
export const cellInWords = ({ row, column }, labels, { scores, weights, allowed }) => {
  const query = labels.query[row];
  if (column === null) return say("query {row} “{query}”, the whole row", { row, query });
  const place = row * labels.key.length + column;
  const reads = say("query {row} “{query}” reads key {column} “{key}”", {
    row,
    query,
    column,
    key: labels.key[column],
  });
  const told = [say("weight {weight}", { weight: numeral(weights[place].toFixed(4)) })];
  if (scores) told.push(say("score {score}", { score: numeral(scores[place].toFixed(2)) }));
  told.push(allowed[place] ? say("allowed") : say("hidden by the mask"));
  return `${reads}: ${told.join(", ")}`;
};

// Returns show(cell, labels, numbers). cell: {row, column}, either null; labels: {query, key};
// numbers: {scores, weights, allowed}, each a flat array of query x key; scores may be null.
export const readOut = (root) => {
  const set = (field, ...content) =>
    root.querySelector(`[data-field=${field}]`).replaceChildren(...content);
  const tokenAt = (labels, place) => [
    tokenElement(labels[place]),
    el("small", "", ` ${say("at {place}", { place })}`),
  ];
  const rowOf = (row, { key }, { weights }) => [
    ...weights.subarray(row * key.length, (row + 1) * key.length),
  ];
  const columnOf = (column, { query, key }, { weights }) =>
    query.map((_, row) => weights[row * key.length + column]);

  const cellNumbers = (cell, labels, numbers) => {
    for (const field of ["query", "key", "score", "allowed", "weight", "sum"]) set(field, "–");
    if (!cell) return;
    const { row, column } = cell;
    if (row !== null) {
      set("query", ...tokenAt(labels.query, row));
      const sum = rowOf(row, labels, numbers).reduce((total, weight) => total + weight, 0);
      set("sum", numeral(sum.toFixed(4)));
    }
    if (column !== null) set("key", ...tokenAt(labels.key, column));
    if (row === null || column === null) return;
    const place = row * labels.key.length + column;
    if (numbers.scores) set("score", numeral(numbers.scores[place].toFixed(4)));
    set("allowed", numbers.allowed[place] ? say("allowed") : say("hidden"));
    set("weight", numeral(numbers.weights[place].toFixed(4)));
  };

  // The keys that the chosen query reads most, or the queries that read the chosen key most.
  const most = (cell, labels, numbers) => {
    const box = root.querySelector(".top-keys");
    if (!cell) return box.replaceChildren();
    const asks = cell.row !== null;
    const weights = asks
      ? rowOf(cell.row, labels, numbers)
      : columnOf(cell.column, labels, numbers);
    const names = asks ? labels.key : labels.query;
    const best = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 5);
    const lines = best
      .filter((at) => weights[at] > 0)
      .map((at) => {
        const line = el("div", "top-key");
        const bar = el("span", "bar");
        bar.style.width = `${(100 * weights[at]).toFixed(1)}%`;
        line.append(
          tokenElement(names[at]),
          bar,
          el("span", "value", numeral(weights[at].toFixed(3))),
        );
        return line;
      });
    const title = asks ? say("This query reads most") : say("This key is read most by");
    box.replaceChildren(el("h4", "", title), ...lines);
  };

  return (cell, labels, numbers) => {
    cellNumbers(cell, labels, numbers);
    most(cell, labels, numbers);
  };
};
