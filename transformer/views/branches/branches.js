// Another token: what a step could have taken, and the branches that were tried, as a tree.

import { RUN_GONE, ask } from "../../ui/static/ask.js";
import { el, finder, tokenElement } from "../../ui/static/dom.js";
import { branchAt, pastRun, pastRuns, showRun } from "../../ui/static/history.js";
import { generates } from "../../ui/static/interventions.js";
import { numeral, say, sayWith } from "../../ui/static/messages.js";
import { runTree } from "./run_tree.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { emit, on, page, requestsFor, setQuery, showProblem } from "../../web/store.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".branches");
  const list = find(".branch-choices");
  const tree = find(".branch-tree");
  /** @type {Record<string, any>} */
  const state = { step: 0, gone: new Set() };
  const steps = () => page.run?.probabilities.length ?? 0;
  const percent = (p) =>
    p > 0 && p < 0.001 ? `<${numeral("0.1")} %` : `${numeral((100 * p).toFixed(1))} %`;

  // ---- the tokens of one step ----

  const choiceOf = (answer, place, step) => {
    const [id, label, p] = [answer.ids[place], answer.labels[place], answer.probabilities[place]];
    const [taken, probability] = [id === answer.taken, numeral(p.toFixed(4))];
    const button = el("button", "choice");
    button.disabled = taken;
    button.style.setProperty("--p", p.toFixed(4));
    button.setAttribute(
      "aria-label",
      taken
        ? say("{token}, probability {probability}, taken", { token: label, probability })
        : say("{token}, probability {probability}: branch here", { token: label, probability }),
    );
    button.append(tokenElement(label), el("span", "value", `${percent(p)}${taken ? " ✓" : ""}`));
    button.addEventListener("click", () => branchAt(step, id));
    button.dataset.id = id;
    const item = el("li");
    item.append(button);
    return item;
  };

  const drawStep = async (current) => {
    if (!page.run) return;
    const none = steps() === 0;
    state.step = Math.max(0, Math.min(state.step, steps() - 1));
    const { step } = state;
    find(".previous").disabled = none || step === 0;
    find(".next").disabled = none || step >= steps() - 1;
    if (none) {
      find(".branch-title").textContent = say(
        "Nothing was generated, so there is no token to change.",
      );
      find(".branch-note").textContent = "";
      return list.replaceChildren();
    }
    const answer = await ask(server.choices, { run: page.run.run, step });
    if (!current()) return;
    const place = page.run.n_prompt + step;
    find(".branch-title").replaceChildren(
      ...sayWith("Token {place} is “{token}”. It could have been:", {
        place,
        token: tokenElement(page.run.labels[place]),
      }),
    );
    list.replaceChildren(...answer.ids.map((_, at) => choiceOf(answer, at, step)));
    const notes = [say("These are the network's probabilities, before temperature and filters.")];
    if (answer.searched) notes.push(say("A branch of a beam search goes on greedily."));
    find(".branch-note").textContent = notes.join(" ");
    Object.assign(root.dataset, { run: page.run.run, step });
  };
  const go = (step) => setQuery({ stack: page.run.stack, index: page.run.n_prompt + step });
  find(".previous").addEventListener("click", () => go(state.step - 1));
  find(".next").addEventListener("click", () => go(state.step + 1));

  // ---- the tree ----

  const entries = () =>
    pastRuns.filter(({ facts }) => facts.model === page.run.model && facts.text === page.run.text);

  const settingsOf = ({ facts }) =>
    [facts.how, ...facts.interventions.map(({ says }) => says)].join("; ");
  const wordsOf = ({ entry, leaves, parent }) => {
    const own = entry.facts.labels.slice(leaves);
    const where = parent ? say("at {place}", { place: leaves }) : "";
    const settings = settingsOf(entry);
    const told = parent && settingsOf(parent.entry) === settings ? "" : settings;
    return { own, where, told };
  };
  // Running text: spaces as spaces.
  const plain = (labels) => labels.join("").replaceAll("␣", " ");
  const lineOf = (node) => {
    const { entry, leaves, parent } = node;
    const { own, where, told } = wordsOf(node);
    const line = el("div", "branch-line");
    const text = el("span", "branch-text");
    text.append(el("bdi", "", plain(own)));
    if (!own.length)
      text.append(
        el(
          "em",
          "",
          parent && leaves < parent.entry.facts.ids.length
            ? say("(ends here)")
            : say("(the same text)"),
        ),
      );
    const gone = state.gone.has(entry.facts.run);
    line.append(el("b", "", `${entry.number}`), el("small", "", where && `${where} `), text);
    if (told) line.append(el("small", "branch-how", told));
    if (gone) line.append(el("small", "branch-how", say("no longer kept by the server")));
    else if (entry.facts.run !== page.run.run) line.append(compareButton(entry));
    return line;
  };
  const compareButton = (entry) => {
    const button = el("button", "branch-compare", say("compare"));
    button.tabIndex = -1;
    button.setAttribute(
      "aria-label",
      say("Compare text {number} with the shown one", { number: entry.number }),
    );
    button.addEventListener("click", (event) => {
      event.stopPropagation();
      emit("compare", entry.facts.run);
    });
    return button;
  };
  const itemOf = (node, level) => {
    const {
      entry: { number, facts },
      children,
    } = node;
    const { own, where, told } = wordsOf(node);
    const item = el("li", "branch");
    item.setAttribute("role", "treeitem");
    item.setAttribute("aria-level", level);
    item.setAttribute("aria-selected", facts.run === page.run.run);
    item.setAttribute(
      "aria-label",
      say("Text {number}: {text}", {
        number,
        text: [where, plain(own) || say("the same text"), told].filter(Boolean).join(", "),
      }),
    );
    if (state.gone.has(facts.run)) item.setAttribute("aria-disabled", "true");
    item.dataset.run = facts.run;
    item.append(lineOf(node));
    if (!children.length) return item;
    item.setAttribute("aria-expanded", "true");
    const group = el("ul");
    group.setAttribute("role", "group");
    group.append(...children.map((child) => itemOf(child, level + 1)));
    item.append(group);
    return item;
  };
  const items = () => [...tree.querySelectorAll("[role=treeitem]")];
  const rove = (chosen) => {
    for (const item of items()) {
      item.tabIndex = item === chosen ? 0 : -1;
      const button = item.querySelector(":scope > .branch-line > .branch-compare");
      if (button) button.tabIndex = item.tabIndex;
    }
  };
  const drawTree = async (current) => {
    if (!page.run) return;
    const runs = entries().map(({ facts }) => facts.run);
    const { kept } = await ask(server.kept, { runs });
    if (!current()) return;
    state.gone = new Set(runs.filter((run, place) => !kept[place] && !requestsFor({ run })));
    const focused = tree.contains(document.activeElement);
    tree.replaceChildren(
      ...runTree(entries())
        .filter(({ parent }) => !parent)
        .map((node) => itemOf(node, 1)),
    );
    const shown = items().find((item) => item.dataset.run === page.run.run) ?? items()[0];
    rove(shown);
    if (focused) shown?.focus();
    tree.dataset.run = page.run.run;
  };

  const show = (item) => {
    const { facts } = pastRun(item.dataset.run) ?? {};
    if (!facts || item.getAttribute("aria-disabled") === "true") {
      return showProblem(RUN_GONE);
    }
    if (facts.run !== page.run.run) showRun(facts);
  };
  const MOVES = {
    ArrowDown: (all, at) => all[at + 1],
    ArrowUp: (all, at) => all[at - 1],
    ArrowRight: (all, at) => all[at].querySelector("[role=treeitem]"),
    ArrowLeft: (all, at) => all[at].parentElement.closest("[role=treeitem]"),
    Home: (all) => all[0],
    End: (all) => all[all.length - 1],
  };
  tree.addEventListener("click", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    rove(item);
    show(item);
  });
  tree.addEventListener("keydown", (event) => {
    const item = event.target;
    if (item.getAttribute("role") !== "treeitem") return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return show(item);
    }
    const to = event.key in MOVES && MOVES[event.key](items(), items().indexOf(item));
    if (!to) return;
    event.preventDefault();
    rove(to);
    to.focus();
  });

  const stepOf = (query) =>
    page.run && query?.stack === page.run.stack ? query.index - page.run.n_prompt : -1;
  on("run", () => {
    state.step = 0;
    root.dataset.generates = generates();
  });
  root.dataset.generates = generates();
  on("query", (query) => {
    const step = stepOf(query);
    if (step < 0 || step >= steps()) return;
    state.step = step;
    refreshStep();
  });
  state.step = Math.max(0, stepOf(page.query));
  const refreshStep = redrawWhen(find(".branch-step"), ["run"], drawStep);
  redrawWhen(find(".branch-box"), ["run"], drawTree);
}
