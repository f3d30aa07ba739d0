// Every finished run that this page has shown, oldest first; to show one again, and to branch from one.
(() => {
  "use strict";
  const viz = window.viz;
  const MOST = 64; // runs; the server keeps fewer
  const NAME = 34; // characters of a text in a run's name
  let count = 0;
  let branched = null;

  // {number, facts}: runs are counted from 1 as they come.
  viz.history = [];
  viz.entry = (run) => viz.history.find(({ facts }) => facts.run === run);
  viz.on("run", (facts) => {
    if (!facts?.run || viz.entry(facts.run)) return;
    count += 1;
    viz.history.push({ number: count, facts });
    viz.history.splice(0, viz.history.length - MOST);
  });

  // What tells a run from others, in a line of plain text.
  viz.runName = ({ number, facts }) => {
    const { text, model, how, interventions, taken } = facts;
    const shown = text.length > NAME ? `${text.slice(0, NAME - 1)}…` : text;
    const parts = [model, how];
    if (taken.length) parts.push(`branched at token ${facts.n_prompt + taken.length - 1}`);
    parts.push(...interventions.map(({ says }) => says));
    return `${number}: “${shown.replace(/\s+/g, " ")}” (${parts.join("; ")})`;
  };

  // Type into the page's text box what the next run is to read.
  viz.useText = async (text) => {
    const box = document.querySelector("#text textarea");
    if (!box || box.value === text) return;
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(box, text);
    box.dispatchEvent(new Event("input", { bubbles: true }));
    await viz.painted();
  };

  // Show a run of the chosen model again; the network does not run.
  viz.show = async (facts) => {
    await viz.useText(facts.text);
    viz.emit("show", facts);
  };

  // Another token at a step of the shown run: the text goes on from there.
  viz.branchAt = (step, id) => {
    const { ids, n_prompt: start } = viz.run;
    branched = step + 1;
    viz.branch([...ids.slice(start, start + step), id]);
  };
  viz.on("run", (facts) => {
    const index = facts?.n_prompt + branched - 1;
    const here = branched !== null && facts.taken.length === branched;
    branched = null;
    if (here) queueMicrotask(() => viz.setQuery({ stack: facts.stack, index })); // once all have heard
  });
})();
