// Two runs side by side: A is the shown one, B another of this visit.

import { beside, pastRun, pastRuns, runName, useGone } from "../../ui/static/history.js";
import { say, sayN } from "../../web/messages.js";
import { mounted, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { Difference } from "./compare_attention.js";
import { Outcomes, Weighed } from "./compare_outcomes.js";
import { Texts } from "./compare_texts.js";

const NONE = say("There is no second run yet: generate one, or branch above.");

const Choice = ({ others, gone, b, choose }) => {
  const option = (entry) => {
    const { run } = entry.facts;
    const lost = gone.includes(run);
    const name = lost ? say("{run} – no longer kept", { run: runName(entry) }) : runName(entry);
    return html`<option key=${run} value=${run} disabled=${lost} selected=${run === b}>${name}</option>`;
  };
  const shown = page.run && pastRun(page.run.run);
  return html`<div class="whatif-head compare-head" hidden=${!others.length}>
    <label>A: <span class="compare-a"><bdi>${shown && runName(shown)}</bdi></span></label>
    <label>B: <select class="compare-b" onChange=${({ target }) => choose(target.value)}>
      ${others.map(option)}
    </select></label>
  </div>
  <p class="compare-none" hidden=${others.length > 0}>${NONE}</p>`;
};

// B unless another was chosen: the intact run of an altered text, else the newest other one.
const usual = (others) => {
  const { text, model } = page.run ?? {};
  const isIntact = ({ facts }) =>
    facts.text === text && facts.model === model && !facts.interventions.length;
  return (page.run?.interventions.length && others.find(isIntact)) || others[0];
};

const Compare = () => {
  const part = usePart();
  const run = page.run?.run;
  const runs = pastRuns.map(({ facts }) => facts.run);
  const gone = useGone(part, run && runs);
  const others = pastRuns.filter(({ facts }) => facts.run !== run).reverse();
  const kept = others.filter(({ facts }) => !gone.includes(facts.run));
  const found = kept.find(({ facts }) => facts.run === beside.run) ?? usual(kept);
  const other = found?.facts.run ?? "";
  const two = found && { pair: { run, other }, a: page.run, b: found.facts };
  const body =
    two && [Texts, Outcomes, Weighed, Difference].map((Part) => html`<${Part} ...${two} />`);
  return html`<section class="compare whatif" ...${part.shows({})} data-run=${run}
    data-other=${other}>
    <p>${say("A is the run that is shown. B is any other run of this visit: another branch, setting, prompt, alteration or model. To compare with another model, choose it above, generate, and come back here.")}</p>
    <${Choice} b=${other} ...${{ others, gone, choose: (b) => (beside.run = b) }} />
    <div class="compare-body" hidden=${!two}>${body}</div>
  </section>`;
};
const finding = () => {
  const runs = page.run ? pastRuns.length : 0;
  return sayN("{n} run of this visit", "{n} runs of this visit", runs);
};
export const mount = mounted(Compare, finding);
