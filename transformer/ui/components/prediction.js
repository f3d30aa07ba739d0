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
  const cut = answer.n_vocabulary - answer.n_kept;
  find(".step-window").textContent =
    `It saw tokens ${start} to ${stop - 1} (${stop - start} of them).${slid} ` +
    `${answer.n_kept.toLocaleString("en")} of ${answer.n_vocabulary.toLocaleString("en")} tokens ` +
    `could be drawn, ${cut.toLocaleString("en")} were cut off.`;
  const seen = answer.seen.slice(-60).map(viz.token);
  if (answer.seen.length > 60) seen.unshift("… ");
  find(".step-text").replaceChildren(...seen, viz.el("span", "caret", "▸"), viz.token(answer.chosen));
};

const go = (step) => {
  if (step < 0 || step >= steps()) return;
  viz.setQuery(viz.run.n_prompt + step);
};
find(".previous").addEventListener("click", () => go(state.step - 1));
find(".next").addEventListener("click", () => go(state.step + 1));
viz.on("query", (index) => {
  if (index === null || !viz.run || index < viz.run.n_prompt) return;
  state.step = index - viz.run.n_prompt;
  refresh();
});
viz.on("run", () => (state.step = 0));

if (viz.query !== null && viz.run && viz.query >= viz.run.n_prompt) {
  state.step = viz.query - viz.run.n_prompt;
}
const refresh = viz.keepDrawn(root, ["run"], draw);
