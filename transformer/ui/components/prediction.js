// The candidates of one generated token, before and after temperature and filters.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".prediction");
const state = { step: 0 };
const steps = () => viz.run?.probabilities.length ?? 0;

const draw = async (current) => {
  if (!viz.run) return;
  const none = steps() === 0;
  find(".previous").disabled = none || state.step === 0;
  find(".next").disabled = none || state.step >= steps() - 1;
  if (none) {
    find(".step-title").textContent = "Nothing was generated, so there is no step to show.";
    return;
  }
  const { run } = viz.run;
  const { step } = state;
  const answer = await viz.ask(server.candidates, { run, step, dark: viz.dark });
  if (!current()) return;
  words(answer, step);
  await viz.draw(find("[data-picture=candidates]"), answer.figure, { change: narrow });
  Object.assign(root.dataset, { run, step });
};

const narrow = ({ layout }) => {
  layout.height -= layout.margin.t - 40;
  layout.margin = { ...layout.margin, t: 40 };
  layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
};

const words = (answer, step) => {
  const chosen = viz.token(answer.chosen);
  const share = `” with probability ${answer.probability.toFixed(3)}`;
  find(".step-title").replaceChildren(`Step ${step + 1} of ${steps()}: chose “`, chosen, share);
  const [start, stop] = answer.window;
  const slid = answer.slid ? " The window has slid: earlier tokens were out of sight." : "";
  const source = viz.run.source_labels.length ? ", and the whole source" : "";
  const how = `${answer.how[0].toUpperCase()}${answer.how.slice(1)}.`;
  find(".step-window").textContent =
    `It saw tokens ${start} to ${stop - 1} (${stop - start} of them)${source}.${slid} ${how}`;
  const seen = answer.seen.slice(-60).map(viz.token);
  if (answer.seen.length > 60) seen.unshift("… ");
  find(".step-text").replaceChildren(...seen, viz.el("span", "caret", "▸"), viz.token(answer.chosen));
};

const go = (step) => {
  if (step < 0 || step >= steps()) return;
  viz.setQuery({ stack: viz.run.stack, index: viz.run.n_prompt + step });
};
find(".previous").addEventListener("click", () => go(state.step - 1));
find(".next").addEventListener("click", () => go(state.step + 1));
const stepOf = (query) =>
  viz.run && query?.stack === viz.run.stack ? query.index - viz.run.n_prompt : -1;
viz.on("query", (query) => {
  if (stepOf(query) < 0) return;
  state.step = stepOf(query);
  refresh();
});
viz.on("run", () => (state.step = 0));

// ---- the tree of a beam search ----

const tree = find(".tree");
const drawTree = async (current) => {
  const searched = (viz.run?.hypotheses.length ?? 0) > 0;
  find(".searched").hidden = !searched;
  if (!searched) return;
  const answer = await viz.ask(server.tree, { run: viz.run.run, dark: viz.dark });
  if (!current()) return;
  const width = JSON.parse(answer.figure).layout.width;
  const wide = ({ layout }) => {
    layout.width = Math.max(width, find(".tree-box").clientWidth);
    layout.height -= layout.margin.t - 40;
    layout.margin = { ...layout.margin, t: 40 };
  };
  await viz.draw(tree, answer.figure, { change: wide });
  tree.dataset.run = viz.run.run;
};

state.step = Math.max(0, stepOf(viz.query));
const refresh = viz.keepDrawn(root, ["run"], draw);
viz.keepDrawn(find(".tree-box"), ["run"], drawTree);
