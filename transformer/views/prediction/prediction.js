// One generated token's candidates; every token's surprise; what each layer would have said; and the
// tree of a beam search.

import { ask } from "../../ui/static/ask.js";
import { el, finder, tokenElement } from "../../ui/static/dom.js";
import { branchAt } from "../../ui/static/history.js";
import { placeOrLast } from "../../ui/static/looked_at.js";
import { asSentence, numeral, say, sayN, sayWith } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { on, page, setQuery } from "../../web/store.js";
import { mountLens } from "./lens.js";
import { mountSearchTree } from "./search_tree.js";
import { mountSurprise } from "./surprise.js";

const NARROW_PX = 480;

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".prediction");
  /** @type {Record<string, any>} */
  const state = { step: 0 };
  const steps = () => page.run?.probabilities.length ?? 0;

  const draw = async (current) => {
    if (!page.run) return;
    const none = steps() === 0;
    find(".step-body").hidden = none;
    find(".previous").disabled = none || state.step === 0;
    find(".next").disabled = none || state.step >= steps() - 1;
    if (none) {
      find(".step-title").textContent = say("Nothing was generated, so there is no step to show.");
      return;
    }
    const { run } = page.run;
    const { step } = state;
    const answer = await ask(server.candidates, { run, step, dark: page.dark });
    if (!current()) return;
    words(answer, step);
    await drawFigure(find("[data-picture=candidates]"), answer.figure, {
      change: narrow,
      on: BRANCH,
    });
    Object.assign(root.dataset, { run, step });
  };

  const BRANCH = {
    plotly_click: ({ points }) => {
      const { ids, chosen, step } = find("[data-picture=candidates]").layout.meta;
      const id = ids[Math.round(points[0].y)];
      if (id !== chosen) branchAt(step, id);
    },
  };

  const narrow = ({ layout }) => {
    layout.height -= layout.margin.t - 40;
    layout.margin = { ...layout.margin, t: 40 };
    layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
    if (layout.width >= NARROW_PX) return;
    layout.xaxis.range[1] *= 1.25; // the longest bar's number has its width all the same
    layout.xaxis.nticks = 3;
  };

  // What the step had before it.
  const read = ({ window: [first, stop], slid }) => {
    if (slid) {
      return say("It read tokens {first} to {last}; earlier ones no longer fit into the window.", {
        first,
        last: stop - 1,
      });
    }
    return page.run.source_labels.length
      ? sayN(
          "It read the whole source and {n} token of the translation.",
          "It read the whole source and {n} tokens of the translation.",
          stop - first,
        )
      : sayN("It read {n} token.", "It read all {n} tokens before it.", stop - first);
  };
  const words = (answer, step) => {
    find(".step-title").replaceChildren(
      ...sayWith("Step {step} of {steps}: chose “{token}” with probability {probability}", {
        step: step + 1,
        steps: steps(),
        token: tokenElement(answer.chosen),
        probability: numeral(answer.probability.toFixed(3)),
      }),
    );
    find(".step-window").textContent = `${read(answer)} ${asSentence(answer.how)}`;
    const seen = answer.seen.slice(-60).map(tokenElement);
    if (answer.seen.length > 60) seen.unshift("… ");
    find(".step-text").replaceChildren(
      ...seen,
      el("span", "caret", "▸"),
      tokenElement(answer.chosen),
    );
  };

  const go = (step) => {
    if (step < 0 || step >= steps()) return;
    setQuery({ stack: page.run.stack, index: page.run.n_prompt + step });
  };
  find(".previous").addEventListener("click", () => go(state.step - 1));
  find(".next").addEventListener("click", () => go(state.step + 1));
  const lastStep = () => Math.max(0, placeOrLast() - page.run.n_prompt);
  const stepOf = (query) =>
    page.run && query?.stack === page.run.stack ? query.index - page.run.n_prompt : -1;
  on("query", (query) => {
    if (stepOf(query) < 0) return;
    state.step = stepOf(query);
    refresh();
  });
  on("run", () => (state.step = lastStep()));

  if (page.run) state.step = stepOf(page.query) < 0 ? lastStep() : stepOf(page.query);
  const refresh = redrawWhen(root, ["run"], draw);
  mountSurprise(find, server);
  mountLens(find, server);
  mountSearchTree(find, server);
}
