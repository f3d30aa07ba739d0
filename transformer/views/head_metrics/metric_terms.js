// What the metrics of the table of heads mean, and what they are held against.

import { el } from "../../ui/static/dom.js";
import { say } from "../../ui/static/messages.js";

// metrics: as the server describes them. times: how many shuffled copies there are of each head.
// Returns the content of a list of definitions.
export const termsOf = (metrics, times) => {
  const own = metrics.map(({ title, unit, definition }) => [
    unit ? `${title} (${unit})` : title,
    `${definition}.`,
  ]);
  const baselines = [
    [
      say("an even head"),
      say(
        "the same numbers of a head that reads all keys that its mask allows with the same weight.",
      ),
    ],
    [
      say("keys shuffled"),
      say(
        "of {times} copies of each head in which every key vector stands at another place, " +
          "before mask and softmax: their mean, and the most that any copy of any head " +
          "reaches; for numbers about a place.",
        { times },
      ),
    ],
  ];
  return [...own, ...baselines].flatMap(([term, says]) => [el("dt", "", term), el("dd", "", says)]);
};
