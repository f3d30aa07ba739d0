// How surprised the network was by each token.

import { ask } from "../../ui/static/ask.js";
import { asSentence } from "../../ui/static/messages.js";
import { fontPx } from "../../ui/static/labels.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { page } from "../../web/store.js";
import { tokenColumns, withoutZoom } from "./token_columns.js";

const BAR_EM = 1.57; // the least that a token's label needs

export const mountSurprise = (find, server) => {
  const surprised = tokenColumns(find("[data-picture=surprise]"), () => page.run.trace_start);
  const draw = async (current) => {
    if (!page.run) return;
    const { run } = page.run;
    const answer = await ask(server.surprise, { run, dark: page.dark });
    if (!current()) return;
    const says = answer.none ?? answer.says;
    find(".surprise-says").textContent = asSentence(says);
    find(".surprise-body").hidden = Boolean(answer.none);
    find(".surprise-box").dataset.run = run;
    if (answer.none) return;
    const change = ({ layout }) => {
      const count = layout.meta.labels.length;
      layout.width = Math.max(surprised.wide.clientWidth, 80 + BAR_EM * fontPx() * count);
      layout.height -= layout.margin.t - 24;
      layout.margin = { ...layout.margin, t: 24 };
      layout.xaxis.title.text = "";
      layout.margin.b -= 20;
      withoutZoom(layout);
    };
    await surprised.draw(answer.figure, { change });
  };
  redrawWhen(find(".surprise-box"), ["run"], draw);
};
