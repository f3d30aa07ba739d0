// Which token is looked at: the chosen one, and with none chosen the same one everywhere.

import { chosenRow, on, page, setQuery, tracedFrom } from "../../web/store.js";

const END = /^<\|endoftext\|>$/;

// The place of the chosen token in the run's text; null without one, or for a token of a source or
// the first of all (which nothing foresaw).
export const chosenPlace = () => {
  const { query, run } = page;
  return query?.stack === run.stack && query.index > 0 ? query.index : null;
};
// The same; else the place of the last token that is no end of the text.
export const placeOrLast = () => {
  const { labels } = page.run;
  const last = labels.length - 1;
  return chosenPlace() ?? (last > 1 && END.test(labels[last]) ? last - 1 : last);
};

// The row of a stack's trace that is looked at; null where its stack is not the text's own and no
// token of it is chosen.
export const rowLookedAt = (stack) =>
  chosenRow(stack) ?? (stack === page.run.stack ? placeOrLast() - tracedFrom(stack) : null);

// The same text, continued or altered: the token that was looked at stays so.
/** @type {any} */
let before = null;
on("run", (run) => {
  const { chosen, text, model } = before ?? /** @type {any} */ ({});
  const again = chosen && text === run.text && model === run.model;
  before = { text: run.text, model: run.model, chosen: null };
  const labels = chosen?.stack === run.stack ? run.labels : run.source_labels;
  if (!again || chosen.index >= labels.length) return;
  queueMicrotask(() => page.query ?? setQuery(chosen)); // once all have heard of the run
});
on("query", (query) => {
  if (before) before.chosen = query;
});
