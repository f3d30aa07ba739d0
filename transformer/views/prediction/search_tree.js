// The tree of a beam search.

import { ask } from "../../ui/static/ask.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { on, page } from "../../web/store.js";

export const mountSearchTree = (find, server) => {
  const tree = find(".tree");
  const searched = () => (page.run?.hypotheses.length ?? 0) > 0;
  const show = () => (find(".searched").hidden = !searched());
  const draw = async (current) => {
    show();
    if (!searched()) return;
    const answer = await ask(server.beams, { run: page.run.run, dark: page.dark });
    if (!current()) return;
    const width = JSON.parse(answer.figure).layout.width;
    const wide = ({ layout }) => {
      layout.width = Math.max(width, find(".tree-box").clientWidth);
      layout.height -= layout.margin.t - 40;
      layout.margin = { ...layout.margin, t: 40 };
    };
    await drawFigure(tree, answer.figure, { change: wide });
    tree.dataset.run = page.run.run;
  };
  on("run", show);
  redrawWhen(find(".tree-box"), ["run"], draw);
};
