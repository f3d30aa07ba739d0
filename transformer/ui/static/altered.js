// What is altered in the network, and what that changes in the text, at the window's lower edge: each
// change can be taken back, and one click takes back all.

import { ask } from "./ask.js";
import { el, finder, nextPaint, tokenElement } from "./dom.js";
import { openTab } from "./gradio.js";
import { alter, interventions, setRequest } from "./interventions.js";
import { say } from "./messages.js";
import { isOwn, on, page, showProblem } from "../../web/store.js";

const NARROW_PX = 700;
// Tokens that are shown of what both texts begin with, and from the first that differs.
const shared = () => (window.innerWidth < NARROW_PX ? 2 : 6);
const SHOWN = 24;

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props, trigger, server }) {
  const find = finder(element);
  const root = find(".altered");

  setRequest((wanted, forced) => {
    props.value = { interventions: wanted, forced_tokens: forced };
    trigger("submit");
  });

  // ---- what is altered ----

  const row = (says, others) => {
    const item = el("li");
    const undo = el("button", "", "×");
    undo.setAttribute("aria-label", say("Take back: {change}", { change: says }));
    undo.addEventListener("click", () => alter(others));
    item.append(el("bdi", "", says), undo);
    return item;
  };
  const rows = () => {
    const { interventions: all, forced_tokens: forced, n_prompt: start, labels } = page.run;
    const plain = interventions();
    const made = all.map(({ says }, place) =>
      row(
        says,
        plain.filter((_, at) => at !== place),
      ),
    );
    const at = start + forced.length - 1;
    if (forced.length) {
      made.push(row(say("token {place} is “{token}”", { place: at, token: labels[at] }), plain));
    }
    return made;
  };

  // ---- before and after ----

  const line = (name, labels, same, from) => {
    const start = Math.max(from, same - shared());
    const tokens = labels.slice(start, same + SHOWN).map((label, place) => {
      const token = tokenElement(label);
      if (start + place >= same) token.className = "differs";
      return token;
    });
    const cut = start > from ? ["… "] : [];
    find(`[data-text=${name}]`).replaceChildren(
      ...cut,
      ...(tokens.length ? tokens : [say("(nothing)")]),
    );
  };
  // A network that has learned an exercise is asked all of it again.
  const examine = async (model) => {
    const { run } = page.run;
    const { asked, intact, altered } = await ask(server.examined, {
      model,
      interventions: interventions(),
    });
    if (page.run.run !== run) return;
    find(".altered-says").append(
      " ",
      say("Held-out questions answered right: {intact} of {asked} before, {altered} after.", {
        intact,
        asked,
        altered,
      }),
    );
    Object.assign(root.dataset, { right: altered, rightBefore: intact });
  };
  const compare = async () => {
    const { run, labels, model } = page.run;
    root.ariaBusy = "true";
    try {
      const before = await ask(server.intact_text, { run, forced: false });
      if (page.run.run !== run) return;
      const { same, equal, n_prompt: from } = before;
      find(".altered-says").textContent = equal
        ? say("It changes no token of this text.")
        : say("Token {place} is the first that differs.", { place: same });
      line("before", before.labels, same, from);
      line("after", labels, same, from);
      if (isOwn(model)) await examine(model);
      Object.assign(root.dataset, { run, same, equal });
    } catch (error) {
      if (page.run.run === run) showProblem(error.message);
    }
    root.ariaBusy = null;
  };

  const draw = () => {
    // The tokens of a branch belong to one run; what is altered stays for the next text.
    props.value = { interventions: interventions(), forced_tokens: [] };
    if (!page.run) return;
    const made = rows();
    root.hidden = made.length === 0;
    find(".more").hidden = interventions().length === 0;
    find("ul").replaceChildren(...made);
    root.dataset.run = "";
    for (const part of [".altered-says", "[data-text=before]", "[data-text=after]"]) {
      find(part).replaceChildren();
    }
    if (made.length) compare();
  };
  find(".intact").addEventListener("click", () => alter([]));
  find(".more").addEventListener("click", () => {
    openTab("what-if");
    nextPaint().then(() => document.querySelector(".effect")?.scrollIntoView({ block: "start" }));
  });
  on("run", draw);
  draw();
}
