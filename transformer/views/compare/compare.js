// Two runs side by side: A is the shown one, B another of this visit.

import { ask } from "../../ui/static/ask.js";
import { el, finder } from "../../ui/static/dom.js";
import { pastRun, pastRuns, runName } from "../../ui/static/history.js";
import { say } from "../../ui/static/messages.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { emit, on, page, requestsFor } from "../../web/store.js";
import { mountDifference } from "./compare_attention.js";
import { mountOutcomes, mountWeighed } from "./compare_outcomes.js";
import { mountTexts } from "./compare_texts.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".compare");
  // b: the run that is B, once the visitor has chosen one; gone: runs that the server no longer keeps.
  /** @type {Record<string, any>} */
  const state = { b: null, gone: new Set() };
  const other = () => pastRun(state.b)?.facts ?? null;
  const pair = () => ({ run: page.run.run, other: state.b });

  // ---- which two ----

  const drawChoice = async (current) => {
    if (!page.run) return;
    const runs = pastRuns.map(({ facts }) => facts.run);
    const { kept } = await ask(server.kept, { runs });
    if (!current()) return;
    state.gone = new Set(runs.filter((run, place) => !kept[place] && !requestsFor({ run })));
    const others = pastRuns.filter(({ facts }) => facts.run !== page.run.run).reverse();
    const there = others.filter(({ facts }) => !state.gone.has(facts.run));
    if (!there.some(({ facts }) => facts.run === state.b)) state.b = null;
    const shown = pastRun(page.run.run);
    find(".compare-a").replaceChildren(el("bdi", "", shown ? runName(shown) : ""));
    const none = el("option", "", say("choose a run"));
    none.value = "";
    find(".compare-b").replaceChildren(
      ...(state.b ? [] : [none]),
      ...others.map((entry) => {
        const gone = state.gone.has(entry.facts.run);
        const option = el(
          "option",
          "",
          gone ? say("{run} – no longer kept", { run: runName(entry) }) : runName(entry),
        );
        Object.assign(option, {
          value: entry.facts.run,
          disabled: gone,
          selected: entry.facts.run === state.b,
        });
        return option;
      }),
    );
    find(".compare-head").hidden = !others.length;
    find(".compare-body").hidden = !state.b;
    find(".compare-none").hidden = others.length > 0;
    Object.assign(root.dataset, { run: page.run.run, other: state.b ?? "" });
    if (!state.b) return;
    takeHead(page.head);
    emit("pair");
  };
  const choose = (run) => {
    state.b = run;
    refresh();
  };
  find(".compare-b").addEventListener("change", (event) => choose(event.target.value));
  on("compare", (run) => {
    choose(run);
    root.scrollIntoView({ block: "start" });
  });
  const whenPair = (draw) => async (current) =>
    page.run && state.b && state.b !== page.run.run ? draw(current) : undefined;

  const refresh = redrawWhen(root, ["run"], drawChoice);
  const two = { pair, other, whenPair };
  mountTexts(find, server, two);
  mountOutcomes(find, server, two);
  mountWeighed(find, server, two);
  const takeHead = mountDifference(find, server, two);
}
