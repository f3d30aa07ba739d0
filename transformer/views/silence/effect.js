// Before and after: what comes next by the intact and the altered network, and their two texts.

import { ask } from "../../ui/static/ask.js";
import { finder, tokenElement } from "../../ui/static/dom.js";
import { generates, interventions } from "../../ui/static/interventions.js";
import { chosenPlace } from "../../ui/static/looked_at.js";
import { numeral, say, sayN, sayWith } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { page } from "../../web/store.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".effect");
  const box = find("[data-picture=foreseen]");

  const narrow = ({ layout }) => {
    const { t, b } = layout.margin;
    layout.height -= t - 40 + b - 50;
    layout.margin = { ...layout.margin, t: 40, b: 50 };
    layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
  };
  const percent = (probability) =>
    `${numeral((100 * probability).toFixed(probability < 0.1 ? 2 : 1))} %`;

  const drawForeseen = async (current, run, place) => {
    const answer = await ask(server.next_token, { run, place, dark: page.dark });
    if (!current()) return;
    find(".effect-title").replaceChildren(
      ...sayWith("Token {place}, “{token}”: what the two networks expect there", {
        place,
        token: tokenElement(answer.label),
      }),
    );
    const [intact, altered] = [answer.intact[answer.here], answer.altered[answer.here]];
    find(".effect-says").textContent = say(
      "After the same tokens, the intact network gives it {intact}, the altered " +
        "one {altered}. Choose a token in the text to look at another place.",
      { intact: percent(intact), altered: percent(altered) },
    );
    await drawFigure(box, answer.figure, { change: narrow });
    Object.assign(root.dataset, { place, intact, altered });
  };

  const words = (of, labels, from, same) => {
    const side = find(`[data-of=${of}]`);
    const shown = labels.map((label, index) => {
      const token = tokenElement(label);
      if (from + index >= same) token.className = "differs";
      return token;
    });
    side.replaceChildren(...(shown.length ? shown : [say("(nothing)")]));
  };
  const drawTexts = async (current, run) => {
    const answer = await ask(server.intact_text, { run });
    if (!current()) return null;
    const { labels, n_prompt: from, same, equal } = answer;
    const written = page.run.labels.slice(from);
    words("intact", labels.slice(from), from, same);
    words("altered", written, from, same);
    const parted =
      same > from
        ? sayN(
            "Both write {n} token alike, then differ from token {place} on.",
            "Both write {n} tokens alike, then differ from token {place} on.",
            same - from,
            { place: same },
          )
        : say("They differ from the first token that they write.");
    find(".effect-parted").textContent = equal
      ? sayN("Both write the same token.", "Both write the same {n} tokens.", written.length)
      : parted;
    Object.assign(root.dataset, { same, equal });
    return same;
  };

  const draw = async (current) => {
    if (!page.run) return;
    const altered = interventions().length > 0;
    root.dataset.generates = generates();
    find(".effect-none").hidden = altered;
    find(".effect-body").hidden = !altered;
    const { run } = page.run;
    if (altered) {
      const same = await drawTexts(current, run);
      if (!current()) return;
      // Unless a token is chosen: where the texts part.
      const last = page.run.labels.length - 1;
      await drawForeseen(current, run, chosenPlace() ?? Math.min(same, last));
      if (!current()) return;
    }
    Object.assign(root.dataset, { run });
  };
  redrawWhen(root, ["run", "query"], draw);
}
