// Another token: what a step could have taken, and the branches that were tried, as a tree.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".branches");
const list = find(".branch-choices");
const tree = find(".branch-tree");
const state = { step: 0, gone: new Set() };
const steps = () => viz.run?.probabilities.length ?? 0;
const percent = (p) => (p > 0 && p < 0.001 ? "<0.1 %" : `${(100 * p).toFixed(1)} %`);

// ---- the tokens of one step ----

const choiceOf = (answer, place, step) => {
  const [id, label, p] = [answer.ids[place], answer.labels[place], answer.probabilities[place]];
  const taken = id === answer.taken;
  const button = viz.el("button", "choice");
  button.disabled = taken;
  button.style.setProperty("--p", p.toFixed(4));
  button.setAttribute("aria-label", `${label}, probability ${p.toFixed(4)}${taken ? ", taken" : ": branch here"}`);
  button.append(viz.token(label), viz.el("span", "value", `${percent(p)}${taken ? " ✓" : ""}`));
  button.addEventListener("click", () => viz.branchAt(step, id));
  button.dataset.id = id;
  const item = viz.el("li");
  item.append(button);
  return item;
};

const drawStep = async (current) => {
  if (!viz.run) return;
  const none = steps() === 0;
  state.step = Math.max(0, Math.min(state.step, steps() - 1));
  const { step } = state;
  find(".previous").disabled = none || step === 0;
  find(".next").disabled = none || step >= steps() - 1;
  if (none) {
    find(".branch-title").textContent = "Nothing was generated, so there is no token to change.";
    find(".branch-note").textContent = "";
    return list.replaceChildren();
  }
  const answer = await viz.ask(server.choices, { run: viz.run.run, step });
  if (!current()) return;
  const place = viz.run.n_prompt + step;
  find(".branch-title").replaceChildren(`Token ${place} is “`, viz.token(viz.run.labels[place]), "”. It could have been:");
  list.replaceChildren(...answer.ids.map((_, at) => choiceOf(answer, at, step)));
  find(".branch-note").textContent =
    `Probabilities by the network, before temperature and filters.${answer.searched ? " A branch of a beam search goes on greedily." : ""}`;
  Object.assign(root.dataset, { run: viz.run.run, step });
};
const go = (step) => viz.setQuery({ stack: viz.run.stack, index: viz.run.n_prompt + step });
find(".previous").addEventListener("click", () => go(state.step - 1));
find(".next").addEventListener("click", () => go(state.step + 1));

// ---- the tree ----

const common = (a, b) => {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at += 1;
  return at;
};
// Runs of this prompt as {entry, leaves, children}: each below the earlier one with which it shares
// most tokens; leaves: the place of the first token that it does not share.
const nodesOf = (entries) => {
  const nodes = [];
  for (const entry of entries) {
    const shares = nodes.map((node) => common(node.entry.facts.ids, entry.facts.ids));
    const best = shares.indexOf(Math.max(...shares));
    const node = { entry, leaves: nodes.length ? shares[best] : entry.facts.n_prompt, children: [] };
    node.parent = nodes[best] ?? null;
    node.parent?.children.push(node);
    nodes.push(node);
  }
  return nodes;
};
const entries = () => viz.history.filter(({ facts }) => facts.model === viz.run.model && facts.text === viz.run.text);

const settingsOf = ({ facts }) => [facts.how, ...facts.interventions.map(({ says }) => says)].join("; ");
const wordsOf = ({ entry, leaves, parent }) => {
  const own = entry.facts.labels.slice(leaves);
  const where = parent ? `at ${leaves} ` : "";
  const settings = settingsOf(entry);
  const told = parent && settingsOf(parent.entry) === settings ? "" : settings;
  return { own, where, told };
};
// Running text: spaces as spaces.
const plain = (labels) => labels.join("").replaceAll("␣", " ");
const lineOf = (node) => {
  const { entry, leaves, parent } = node;
  const { own, where, told } = wordsOf(node);
  const line = viz.el("div", "branch-line");
  const text = viz.el("span", "branch-text");
  text.append(viz.el("bdi", "", plain(own)));
  if (!own.length) text.append(viz.el("em", "", parent && leaves < parent.entry.facts.ids.length ? "(ends here)" : "(the same text)"));
  const gone = state.gone.has(entry.facts.run);
  line.append(viz.el("b", "", `${entry.number}`), viz.el("small", "", where), text);
  if (told) line.append(viz.el("small", "branch-how", told));
  if (gone) line.append(viz.el("small", "branch-how", "no longer kept by the server"));
  else if (entry.facts.run !== viz.run.run) line.append(compareButton(entry));
  return line;
};
const compareButton = (entry) => {
  const button = viz.el("button", "branch-compare", "compare");
  button.tabIndex = -1;
  button.setAttribute("aria-label", `Compare text ${entry.number} with the shown one`);
  button.addEventListener("click", (event) => {
    event.stopPropagation();
    viz.emit("compare", entry.facts.run);
  });
  return button;
};
const itemOf = (node, level) => {
  const { entry: { number, facts }, children } = node;
  const { own, where, told } = wordsOf(node);
  const item = viz.el("li", "branch");
  item.setAttribute("role", "treeitem");
  item.setAttribute("aria-level", level);
  item.setAttribute("aria-selected", facts.run === viz.run.run);
  item.setAttribute("aria-label", `Text ${number}, ${where}${plain(own) || "the same text"}${told ? `, ${told}` : ""}`);
  if (state.gone.has(facts.run)) item.setAttribute("aria-disabled", "true");
  item.dataset.run = facts.run;
  item.append(lineOf(node));
  if (!children.length) return item;
  item.setAttribute("aria-expanded", "true");
  const group = viz.el("ul");
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
  if (!viz.run) return;
  const runs = entries().map(({ facts }) => facts.run);
  const { kept } = await viz.ask(server.kept, { runs });
  if (!current()) return;
  state.gone = new Set(runs.filter((_, place) => !kept[place]));
  const focused = tree.contains(document.activeElement);
  tree.replaceChildren(...nodesOf(entries()).filter(({ parent }) => !parent).map((node) => itemOf(node, 1)));
  const shown = items().find((item) => item.dataset.run === viz.run.run) ?? items()[0];
  rove(shown);
  if (focused) shown?.focus();
  tree.dataset.run = viz.run.run;
};

const show = (item) => {
  const { facts } = viz.entry(item.dataset.run) ?? {};
  if (!facts || item.getAttribute("aria-disabled") === "true") {
    return viz.say(viz.gone);
  }
  if (facts.run !== viz.run.run) viz.show(facts);
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

const stepOf = (query) => (viz.run && query?.stack === viz.run.stack ? query.index - viz.run.n_prompt : -1);
viz.on("run", () => {
  state.step = 0;
  root.dataset.generates = viz.generates();
});
root.dataset.generates = viz.generates();
viz.on("query", (query) => {
  const step = stepOf(query);
  if (step < 0 || step >= steps()) return;
  state.step = step;
  refreshStep();
});
state.step = Math.max(0, stepOf(viz.query));
const refreshStep = viz.keepDrawn(find(".branch-step"), ["run"], drawStep);
viz.keepDrawn(find(".branch-box"), ["run"], drawTree);
