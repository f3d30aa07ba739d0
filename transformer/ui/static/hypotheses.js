// The n-best list of a beam search.

import { el } from "./dom.js";
import { numeral, say } from "./messages.js";
import { on, page } from "../../web/store.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element }) {
  const root = element.querySelector(".hypotheses");

  const draw = () => {
    const found = page.run?.hypotheses ?? [];
    root.hidden = found.length === 0;
    root.querySelector("tbody").replaceChildren(
      ...found.map(({ text, score, normalised, ended }) => {
        const row = el("tr");
        const words = el("td");
        words.append(
          el("bdi", "", text),
          ended ? "" : el("small", "", ` ${say("(cut at the length)")}`),
        );
        row.append(
          words,
          el("td", "value", numeral(score.toFixed(3))),
          el("td", "value", numeral(normalised.toFixed(3))),
        );
        return row;
      }),
    );
    root.dataset.run = page.run?.run ?? "";
  };
  on("run", draw);
  draw();
}
