// Beside the grid of heads: what the clearest head of all does, and a sign for each head with a label.

import { el, tokenElement } from "../../ui/static/dom.js";
import { numeral, say, sayWith } from "../../ui/static/messages.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { on, page, setHead, setQuery, tracedFrom } from "../../web/store.js";
import { kindShown, metricsOf } from "./known.js";

const NOTHING = say("No head stands out on this text.");

// The finding as a sentence; its head's name chooses the head, and the token where it shows best.
const sentence = ({ stack, kind }, found) => {
  const { layer, head, clear, did, short, number, value, even, n_rows: rows, weight } = found;
  const next = kind === "cross" ? found.next_label : null;
  const at = { layer, head };
  const name = clear ? say("Head {layer}·{head}", at) : say("head {layer}·{head}", at);
  const pick = el("button", "pick", name);
  pick.setAttribute("aria-label", say("Show head {layer}·{head}", { layer, head }));
  pick.addEventListener("click", () => {
    setHead({ stack, kind, layer, head });
    setQuery({ stack, index: found.query + tracedFrom(stack) });
  });
  const times = numeral((value / even).toFixed(value / even < 10 ? 1 : 0));
  const values = {
    number,
    rows,
    times,
    value: numeral(value.toFixed(2)),
    weight: numeral(weight.toFixed(2)),
    query: tokenElement(found.query_label),
    key: tokenElement(found.key_label),
    next: tokenElement(next ?? ""),
  };
  return [
    ...(clear
      ? sayWith("{head} {does}.", { head: pick, does: did })
      : sayWith("No head does just one thing on this text. The nearest is {head}, “{short}”.", {
          head: pick,
          short,
        })),
    " ",
    // What reads a source is about to write its next token: the alignment is one place on.
    ...(next
      ? sayWith(
          "{number} {value} on average over {rows} tokens, {times} times that of an " +
            "even head. Clearest at “{query}”: about to write “{next}”, it reads “{key}” " +
            "({weight}).",
          values,
        )
      : sayWith(
          "{number} {value} on average over {rows} tokens, {times} times that of an " +
            "even head. Clearest at “{query}”: it reads “{key}” ({weight}).",
          values,
        )),
  ];
};

// Each sign that stands in the grid, with its words.
const legend = (heads) => {
  const signs = new Map(heads.filter(({ sign }) => sign).map(({ sign, short }) => [sign, short]));
  return [...signs].map(([sign, short]) => {
    const item = el("span", "sign-words");
    item.append(el("span", "sign", sign), short);
    return item;
  });
};

// box: where it is to stand. label(of, heads): puts the signs on the heads of the grid.
export const connectFinding = (box, server, label) => {
  const [says, signs] = [el("p", "finding"), el("p", "signs")];
  box.append(says, signs);
  const draw = async (current) => {
    if (!page.run) return;
    const asked = kindShown();
    const found = await metricsOf(server, asked);
    if (!current()) return;
    says.replaceChildren(...(found.finding ? sentence(asked, found.finding) : [NOTHING]));
    signs.replaceChildren(...legend(found.heads));
    label(asked, found.heads);
    Object.assign(box.dataset, asked);
  };
  const refresh = redrawWhen(box, ["run"], draw);
  on("head", () => {
    const { stack, kind } = kindShown();
    if (stack !== box.dataset.stack || kind !== box.dataset.kind) refresh();
  });
};
