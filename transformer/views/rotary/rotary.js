// Rotary positions: shown where the run's network turns its queries and keys.

import { ask } from "../../ui/static/ask.js";
import { finder } from "../../ui/static/dom.js";
import { ownFields } from "../../ui/static/fields.js";
import { wholeNumber } from "../../ui/static/link_text.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { siteName } from "../../ui/static/sites.js";
import { chosenRow, on, page } from "../../web/store.js";

const HEIGHT = { angles: 420, pair: 460, distance: 460 }; // px

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".rotary");
  const input = find(".rotary-pair");
  const state = { pair: 0 };
  const show = () => (root.hidden = !page.run?.turns);
  on("run", show);
  show();

  const draw = async (current) => {
    const { run, head } = page;
    if (!run?.turns) return;
    const self = head?.kind === "self";
    const stack = self ? head.stack : run.stack;
    const answer = await ask(server.rotary, {
      run: run.run,
      site: self ? siteName(head) : `${stack}.0.self`,
      head: self && typeof head.head === "number" ? head.head : 0,
      query: chosenRow(stack),
      pair: state.pair,
      dark: page.dark,
    });
    if (!current() || !answer.turns) return;
    input.max = answer.n_pairs - 1;
    for (const name of ["angles", "pair", "distance"]) {
      find(`.${name}-says`).textContent = `${answer.says[name]}.`;
      await drawFigure(find(`[data-picture=${name}]`), answer[name], { height: HEIGHT[name] });
      if (!current()) return;
    }
    Object.assign(root.dataset, { run: run.run, pair: state.pair });
  };

  const refresh = redrawWhen(root, ["run", "head", "query"], draw);
  input.addEventListener("change", () => {
    state.pair = Math.max(0, Math.min(Number(input.value) || 0, Number(input.max)));
    refresh();
  });
  ownFields(
    { "rotary.pair": "0" },
    () => ({ "rotary.pair": state.pair }),
    (fields) => {
      state.pair = wholeNumber("rotary.pair", fields["rotary.pair"], 0, 4096);
      input.value = String(state.pair);
      refresh();
    },
  );
}
