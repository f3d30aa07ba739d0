// The tokens of two runs, side by side.

import { ask } from "../../ui/static/ask.js";
import { el, tokenElement } from "../../ui/static/dom.js";
import { say, sayN } from "../../ui/static/messages.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { page, setQuery } from "../../web/store.js";

const SAID = {
  equal: (count) => say("{count} in both", { count }),
  replaced: (count) => sayN("{n} replaced", "{n} replaced", count),
  "only A": (count) => say("{count} only in A", { count }),
  "only B": (count) => say("{count} only in B", { count }),
};
const LISTS = {
  source: say("Tokens of the source of both"),
  text: say("Tokens of the text of both"),
};
const HEADS = {
  source: (counts) => say("Source: {counts}.", { counts }),
  text: (counts) => say("Text: {counts}.", { counts }),
};
const sideOf = (name, label) => {
  const made = el("span", `side side-${name.toLowerCase()}`);
  made.append(el("i", "", name), tokenElement(label));
  return made;
};
const pairOf = ({ name, a, b }, [inA, inB, how]) => {
  const chooses = name === "text" && inA !== null;
  const made = el(chooses ? "button" : "span", `pair ${how.replace(" ", "-").toLowerCase()}`);
  if (how === "equal") made.append(tokenElement(a[inA]));
  else
    made.append(
      ...(inA === null ? [] : [sideOf("A", a[inA])]),
      ...(inB === null ? [] : [sideOf("B", b[inB])]),
    );
  if (chooses) {
    made.addEventListener("click", () => setQuery({ stack: page.run.stack, index: inA }));
  }
  const item = el("li");
  item.append(made);
  return item;
};
const listOf = (text, many) => {
  const box = el("div", "compare-text");
  const counts = Object.entries(SAID)
    .filter(([how]) => text.counts[how])
    .map(([how, said]) => said(text.counts[how]))
    .join(", ");
  const list = el("ul", "pairs");
  list.setAttribute("aria-label", many ? LISTS[text.name] : say("Tokens of both"));
  list.append(...text.pairs.map((one) => pairOf(text, one)));
  box.append(
    el("p", "hint", many ? HEADS[text.name](counts) : say("{sentence}.", { sentence: counts })),
    list,
  );
  return box;
};

// pair(): {run, other}, A and B. whenPair(draw): draws only while there are two.
export const mountTexts = (find, server, { pair, whenPair }) => {
  const draw = whenPair(async (current) => {
    const wanted = pair();
    const { texts } = await ask(server.compare, wanted);
    if (!current()) return;
    find(".compare-lists").replaceChildren(...texts.map((text) => listOf(text, texts.length > 1)));
    Object.assign(find(".compare-texts").dataset, wanted);
  });
  redrawWhen(find(".compare-texts"), ["pair"], draw);
};
