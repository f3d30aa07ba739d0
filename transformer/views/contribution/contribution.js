// What each part of the network adds to the logit of the chosen token.

import { ask } from "../../ui/static/ask.js";
import { finder, tokenElement } from "../../ui/static/dom.js";
import { generates, interventions } from "../../ui/static/interventions.js";
import { placeOrLast } from "../../ui/static/looked_at.js";
import { numeral, say, sayWith } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { on, page } from "../../web/store.js";
import { mountParts } from "./parts.js";

const NUMBER_PX = 50; // room for a signed number in a cell of the map
const NAMES_PX = 110; // the names of the rows
const LEAST_CELL_PX = 22;
const ROW_PX = 30;

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".contribution");
  const box = find("[data-picture=contribution]");
  /** @type {{place: number | null, answer: any}} the token that the map is of, and its numbers */
  const state = { place: null, answer: null };
  const parts = mountParts(root, box, () => state.answer);

  // Cells as wide as the page allows, each with its number if there is room for it.
  const fit = ({ data, layout }) => {
    const { row_labels: rows, column_labels: columns } = layout.meta;
    const least = NAMES_PX + 70 + columns.length * LEAST_CELL_PX;
    layout.width = Math.max(layout.width, least);
    layout.height = 8 + 100 + rows.length * ROW_PX;
    Object.assign(layout.margin, { t: 8, r: 8, l: NAMES_PX, b: 100 });
    for (const axis of [layout.xaxis, layout.yaxis]) axis.title.text = "";
    layout.xaxis.tickangle = -90;
    data[0].colorbar.title = { text: "" };
    if ((layout.width - NAMES_PX - 70) / columns.length < NUMBER_PX) delete data[0].texttemplate;
  };
  const drawMap = async (current) => {
    const { place } = state;
    const asked = { run: page.run.run, place, dark: page.dark };
    const answer = await ask(server.contribution, asked);
    if (!current()) return;
    parts.clear();
    find(".contribution-found").hidden = false;
    find(".contribution-title").replaceChildren(
      ...sayWith("What each part adds to the logit of “{token}” as token {place}", {
        token: tokenElement(answer.label),
        place,
      }),
    );
    const intact = interventions().length ? [say("The map shows the intact network.")] : [];
    find(".contribution-says").textContent = [answer.sentence, ...intact].join(" ");
    find(".contribution-sum").textContent = say(
      "Orange adds, blue takes away; the colours go from {least} to {most}. All cells sum to " +
        "{total}; the network's own logit is {logit}. A norm divides by the size of the whole " +
        "stream, which is held fixed here.",
      {
        least: numeral((-answer.limit).toPrecision(3)),
        most: numeral(answer.limit.toPrecision(3)),
        total: numeral(answer.total.toFixed(4)),
        logit: numeral(answer.logit.toFixed(4)),
      },
    );
    state.answer = answer;
    await drawFigure(box, answer.figure, { change: fit, on: parts.listeners });
    box.setAttribute(
      "aria-label",
      `${find(".contribution-title").textContent}. ${answer.sentence}`,
    );
    Object.assign(root.dataset, { place, total: answer.total, logit: answer.logit });
  };
  find(".contributes").addEventListener("click", () => {
    state.place = placeOrLast();
    refresh();
  });
  const drawQuestion = () => {
    if (!page.run) return;
    const place = placeOrLast();
    find(".contributes").replaceChildren(
      ...sayWith("What does each part add to “{token}”, token {place}?", {
        token: tokenElement(page.run.labels[place]),
        place,
      }),
    );
  };
  const draw = async (current) => {
    if (!page.run) return;
    root.dataset.generates = generates();
    drawQuestion();
    find(".contribution-found").hidden = state.place === null;
    if (state.place !== null) await drawMap(current);
    if (current()) root.dataset.run = page.run.run;
  };
  on("run", () => Object.assign(state, { place: null, answer: null }));
  on("query", drawQuestion);
  const refresh = redrawWhen(root, ["run"], draw);
}
