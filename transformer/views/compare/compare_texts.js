// The tokens of two runs, side by side.

import { ask } from "../../ui/static/ask.js";
import { el, tokenElement } from "../../ui/static/dom.js";
import { say } from "../../ui/static/messages.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { page, setQuery } from "../../ui/static/state.js";

const SAID = {
  equal: say("in both"),
  replaced: say("replaced"),
  "only A": say("only in A"),
  "only B": say("only in B"),
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
    .map(([how, said]) => `${text.counts[how]} ${said}`);
  const list = el("ul", "pairs");
  list.setAttribute(
    "aria-label",
    many ? say("Tokens of the {name} of both", { name: text.name }) : say("Tokens of both"),
  );
  list.append(...text.pairs.map((one) => pairOf(text, one)));
  box.append(
    el(
      "p",
      "hint",
      `${many ? `${text.name[0].toUpperCase()}${text.name.slice(1)}: ` : ""}${counts.join(", ")}.`,
    ),
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
