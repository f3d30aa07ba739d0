// A token that is hidden from an encoder, and what the network says stands there.

import { ask } from "../../ui/static/ask.js";
import { el, finder } from "../../ui/static/dom.js";
import { say } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { on, page, setQuery } from "../../web/store.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".masked");
  const show = () => (root.hidden = page.run?.stack !== "encoder");
  on("run", show);
  show();

  const chosen = () => {
    return page.query?.stack === "encoder" ? page.query.index : null; // the view's own choice
  };

  const buttons = (place) => {
    find(".masked-tokens").replaceChildren(
      ...page.run.labels.map((label, index) => {
        const button = el("button", "", label);
        button.type = "button";
        button.setAttribute("aria-pressed", String(index === place));
        button.addEventListener("click", () => setQuery({ stack: "encoder", index }));
        return button;
      }),
    );
  };

  const draw = async (current) => {
    if (page.run?.stack !== "encoder") return;
    const { run } = page.run;
    const answer = await ask(server.masked, { run, place: chosen(), dark: page.dark });
    if (!current()) return;
    buttons(answer.place);
    find(".masked-tokens").hidden = find("[data-picture=masked]").hidden = !answer.figure;
    if (!answer.figure) {
      find(".masked-says").textContent = say(
        "An encoder reads the whole text at once, both ways, and writes nothing. This one's tokenizer has no token that hides another.",
      );
      return;
    }
    const change = ({ layout }) => (layout.margin.t = 12);
    await drawFigure(find("[data-picture=masked]"), answer.figure, { change });
    Object.assign(root.dataset, { run, place: answer.place });
  };
  redrawWhen(root, ["run", "query"], draw);
}
