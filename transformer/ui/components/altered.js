// What is altered in the network, above everything that is drawn: each change can be taken back, and
// one click brings the intact model. `viz.alter` and `viz.branch` ask for a new run with it.
const viz = window.viz;
const root = element.querySelector(".altered");
const list = root.querySelector("ul");

const ask = (interventions, taken = []) => {
  props.value = { interventions, taken };
  trigger("submit");
};
viz.alter = (interventions) => ask(interventions);
viz.branch = async (taken) => {
  await viz.useText(viz.run.text); // whatever was typed since: the tokens are of this text
  ask(viz.interventions(), taken);
};
viz.interventions = () => (viz.run?.interventions ?? []).map((one) => one.is);

const row = ({ says }, place, all) => {
  const item = viz.el("li");
  const undo = viz.el("button", "", "×");
  undo.setAttribute("aria-label", `Take back: ${says}`);
  undo.addEventListener("click", () => viz.alter(all.filter((_, at) => at !== place).map((one) => one.is)));
  item.append(viz.el("bdi", "", says), undo);
  return item;
};

const draw = () => {
  const altered = viz.run?.interventions ?? [];
  root.hidden = altered.length === 0;
  list.replaceChildren(...altered.map(row));
  root.dataset.run = viz.run?.run ?? "";
  // The tokens of a branch belong to one run; what is altered stays for the next text.
  props.value = { interventions: viz.interventions(), taken: [] };
};
root.querySelector(".intact").addEventListener("click", () => viz.alter([]));
viz.on("run", draw);
draw();
