// Two runs side by side: A is the shown one, B another of this visit.

import { pastRun, pastRuns, runName } from "../../ui/static/history.js";
import { say } from "../../ui/static/messages.js";
import { mounted, useAnswer, useEvent, usePart } from "../../web/part.js";
import { html, useState } from "../../web/preact.js";
import { page, requestsFor } from "../../web/store.js";
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
      ${!b && html`<option value="" selected>${say("choose a run")}</option>`}
      ${others.map(option)}
    </select></label>
  </div>
  <p class="compare-none" hidden=${others.length > 0}>${NONE}</p>`;
};

const Compare = ({ server }) => {
  const part = usePart();
  const [wanted, choose] = useState(/** @type {string | null} */ (null));
  useEvent("compare", (other) => {
    choose(other);
    part.element.current.scrollIntoView({ block: "start" });
  });
  const run = page.run?.run;
  const runs = pastRuns.map(({ facts }) => facts.run);
  const { answer, asked } = useAnswer(part, server.kept, run && { runs });
  const gone = (asked?.runs ?? []).filter(
    (one, place) => !answer.kept[place] && !requestsFor({ run: one }),
  );
  const others = pastRuns.filter(({ facts }) => facts.run !== run).reverse();
  const found = others.find(({ facts }) => facts.run === wanted && !gone.includes(wanted));
  const two = found ? { pair: { run, other: wanted }, a: page.run, b: found.facts, server } : null;
  const body =
    two && [Texts, Outcomes, Weighed, Difference].map((Part) => html`<${Part} ...${two} />`);
  return html`<section class="compare whatif" ...${part.shows({})} data-run=${run}
    data-other=${two ? wanted : ""}>
    <h3>${say("Two runs side by side")}</h3>
    <p>${say("A is the run that is shown. B is any other run of this visit: another branch, setting, prompt, alteration or model. To compare with another model, choose it above, generate, and come back here.")}</p>
    <${Choice} b=${two && wanted} ...${{ others, gone, choose }} />
    <div class="compare-body" hidden=${!two}>${body}</div>
  </section>`;
};
export const mount = mounted(Compare);
