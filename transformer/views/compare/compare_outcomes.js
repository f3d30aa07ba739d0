// How likely each token of two runs was, and what each run weighed at the chosen one.

import { ask } from "../../ui/static/ask.js";
import { tokenElement } from "../../ui/static/dom.js";
import { fontPx } from "../../ui/static/labels.js";
import { numeral, say, sayWith } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { page, setQuery } from "../../web/store.js";
import { hideTable } from "../../ui/static/tables.js";

const BAR_EM = 1.57; // the least that a token's label needs

const numbersOf = ({ data: [bars], layout }) => ({
  rows: layout.meta.labels.map((label, place) => `${layout.meta.pairs[place][0]} ${label}`),
  columns: [say("in A"), say("in B"), "B − A"],
  value: (row, column) => {
    const [a, b] = bars.customdata[row];
    return numeral([a, b, b - a][column].toFixed(4));
  },
  corner: say("token"),
});

// pair(): {run, other}, A and B. whenPair(draw): draws only while there are two.
export const mountOutcomes = (find, server, { pair, whenPair }) => {
  const outcomes = find("[data-picture=outcomes]");
  const draw = whenPair(async (current) => {
    const wanted = pair();
    const answer = await ask(server.outcomes, { ...wanted, dark: page.dark });
    if (!current()) return;
    const box = find(".compare-outcomes");
    find(".compare-drawn").hidden = Boolean(answer.none);
    find(".compare-says").textContent = answer.none
      ? say("There is nothing to draw: {reason}.", { reason: answer.none })
      : "";
    if (!answer.none) {
      const change = ({ layout }) => {
        layout.width = Math.max(
          find(".compare-drawn").clientWidth,
          80 + BAR_EM * fontPx() * layout.meta.labels.length,
        );
        layout.height -= layout.margin.t - 16;
        layout.margin = { ...layout.margin, t: 16 };
        layout.dragmode = false;
      };
      const listeners = {
        plotly_click: ({ points }) =>
          setQuery({
            stack: page.run.stack,
            index: outcomes.layout.meta.pairs[Math.round(points[0].x)][0],
          }),
      };
      await drawFigure(outcomes, answer.figure, { change, on: listeners, table: numbersOf });
    }
    Object.assign(box.dataset, wanted);
  });
  redrawWhen(find(".compare-outcomes"), ["pair"], draw);
};

// The chosen token if A generated it, else the first one that A generated.
const placeOfA = () => {
  const at = page.query?.stack === page.run.stack ? page.query.index : -1;
  return at >= page.run.n_prompt ? at : page.run.n_prompt;
};
const slim = ({ layout }) => {
  layout.height -= layout.margin.t - 40;
  layout.margin = { ...layout.margin, t: 40 };
  layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
  if (layout.width < 480) layout.xaxis.nticks = 3;
};
const bothOf = ({ data, layout: { meta } }) => ({
  rows: meta.labels,
  columns: ["A", "B"],
  value: (row, column) => data[column].customdata[row],
  corner: say("next token"),
});

export const mountWeighed = (find, server, { pair, whenPair }) => {
  const draw = whenPair(async (current) => {
    const wanted = { ...pair(), place: placeOfA() };
    const answer = await ask(server.weighed, { ...wanted, dark: page.dark });
    if (!current()) return;
    const [title, box] = [find(".weighed-title"), find("[data-picture=weighed]")];
    box.hidden = Boolean(answer.none);
    hideTable(box, box.hidden);
    if (answer.none)
      title.textContent = say("Candidates for token {place} of A: {reason}.", {
        place: wanted.place,
        reason: answer.none,
      });
    else {
      const [a, b] = answer.labels;
      const [inA, inB] = answer.places;
      title.replaceChildren(
        ...sayWith(
          "Candidates for token {place_a} of A, which became “{token_a}”, and for token {place_b} " +
            "of B, which became “{token_b}”",
          { place_a: inA, token_a: tokenElement(a), place_b: inB, token_b: tokenElement(b) },
        ),
      );
      await drawFigure(box, answer.figure, { change: slim, table: bothOf });
    }
    Object.assign(find(".compare-weighed").dataset, wanted);
  });
  redrawWhen(find(".compare-weighed"), ["pair", "query"], draw);
};
