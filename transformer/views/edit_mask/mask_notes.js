// What a reader of an edited mask has to know, and what a cell of it says.

import { say } from "../../ui/static/messages.js";

const NOTES = {
  causal: say(
    "Without the causal mask a token reads what comes after it, so the rows of earlier " +
      "tokens change as the text grows. The pictures are of the finished text; each step " +
      "saw a shorter one.",
  ),
  padding: say(
    "Without the padding mask, padding is read like text. A single text has no padding, so " +
      "nothing changes here; for several texts read together, see the Masks tab.",
  ),
  row: say("A row with nothing allowed reads all keys equally."),
  slid: say(
    "The text is longer than what the network reads at once: the rows and columns are " +
      "those of the last window.",
  ),
};

// holds: {name of a note: whether it applies}.
export const maskNotes = (holds) =>
  ["slid", "causal", "padding", "row"]
    .filter((name) => holds[name])
    .map((name) => NOTES[name])
    .join(" ");

// What stands at a cell, or at a label: query or key -1. sides: their tokens' texts; lineEdit, edit,
// planned: see maskedit.js.
export const cellWords = ({ query, key }, { sides, lineEdit, edit, planned }) => {
  const lines = { forbid: say("forbidden by you"), allow: say("all allowed by you") };
  const token = (list, place) => `${place} ${list[place]}`;
  const ofLine = (line) => lines[lineEdit(line)] ?? say("not edited as a whole");
  if (key < 0)
    return say("Row of query {query}: {how}", {
      query: token(sides.queries, query),
      how: ofLine(`${query},*`),
    });
  if (query < 0)
    return say("Column of key {key}: {how}", {
      key: token(sides.keys, key),
      how: ofLine(`*,${key}`),
    });
  const mine = edit(query, key);
  const how = planned(query, key)
    ? mine
      ? say("allowed by you")
      : say("allowed")
    : mine
      ? say("forbidden by you")
      : say("hidden by the causal mask");
  return say("Query {query}, key {key}: {how}", {
    query: token(sides.queries, query),
    key: token(sides.keys, key),
    how,
  });
};
