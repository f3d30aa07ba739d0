// Another token: what a step could have taken, and the branches that were tried, as a tree.

import { experiment } from "../../ui/static/interventions.js";
import { beside, branchAt, pastRun, pastRuns, showRun, useGone } from "../../ui/static/history.js";
import { before, placeAsked, tokenAt } from "../../web/looked_at.js";
import { numeral, percentText, say, sayN, sayWith } from "../../web/messages.js";
import { mounted, openSection, useAnswer, usePart } from "../../web/part.js";
import { html, useRef } from "../../web/preact.js";
import { page, setQuery } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { Tree } from "./run_tree.js";

// ---- the tokens of one step ----

// The step that is looked at: of what follows the chosen token, while it is one; else the one before,
// first 0.
const useStep = (steps) => {
  const { run, query } = page;
  const last = useRef({ run, step: 0 });
  if (last.current.run !== run) last.current = { run, step: 0 };
  const chosen = run && query?.stack === run.stack ? placeAsked() - run.n_prompt : -1;
  if (chosen >= 0 && chosen < steps) last.current.step = chosen;
  return last.current.step;
};

const Choice = ({ answer, at, branch }) => {
  const [id, token, p] = [answer.ids[at], answer.labels[at], answer.probabilities[at]];
  const [taken, probability] = [id === answer.taken, numeral(p.toFixed(4))];
  const label = taken
    ? say("{token}, probability {probability}, taken", { token, probability })
    : say("{token}, probability {probability}: branch here", { token, probability });
  return html`<li><button type="button" class="choice" disabled=${taken} aria-label=${label}
    style=${{ "--p": p.toFixed(4) }} data-id=${id} onClick=${() => branch(id)}>
    <${Token} label=${token} /><span class="value">${`${percentText(p, 1)}${taken ? " ✓" : ""}`}</span>
  </button></li>`;
};

const Step = ({ step, steps, answer, asked }) => {
  const go = (to) => setQuery(before(page.run.n_prompt + to));
  const { n_prompt: start } = pastRun(asked?.run)?.facts ?? page.run ?? {};
  const title = () => {
    const taken = answer.labels[answer.ids.indexOf(answer.taken)];
    return sayWith(
      "Token {place} is “{token}”. It could have been:",
      tokenAt(start + asked.step, taken),
    );
  };
  const none = page.run && say("Nothing was generated, so there is no token to change.");
  const branch = (id) => asked.run === page.run.run && branchAt(asked.step, id);
  const notes = answer && [
    say("These are the network's probabilities, before temperature and filters."),
    answer.searched && say("A branch of a beam search goes on greedily."),
  ];
  return html`<div class="branch-step">
    <div class="step-head">
      <button type="button" class="previous" aria-label=${say("Previous token")}
        disabled=${step === 0} onClick=${() => go(step - 1)}>‹</button>
      <h4 class="branch-title">${
        answer ? title() : steps ? say("What it could have been") : none
      }</h4>
      <button type="button" class="next" aria-label=${say("Next token")}
        disabled=${step >= steps - 1} onClick=${() => go(step + 1)}>›</button>
    </div>
    <ul class="branch-choices" aria-label=${say("Candidates for this token")}>
      ${answer?.ids.map((id, at) => html`<${Choice} key=${id} ...${{ answer, at, branch }} />`)}
    </ul>
    <p class="branch-note hint">${notes && notes.filter(Boolean).join(" ")}</p>
  </div>`;
};

const compare = (run) => {
  beside.run = run;
  openSection("compare");
};
const isOfPrompt = ({ model, text }) => model === page.run?.model && text === page.run.text;

const Branches = () => {
  const part = usePart();
  const { run } = page;
  const steps = run?.probabilities.length ?? 0;
  const step = useStep(steps);
  const { answer, asked } = useAnswer(part, "choices", steps > 0 && { run: run.run, step });
  const entries = pastRuns.filter(({ facts }) => isOfPrompt(facts));
  const runs = entries.map(({ facts }) => facts.run);
  const gone = useGone(part, run && runs);
  const shown = steps > 0 ? { answer, asked } : { answer: null, asked: { run: run?.run } };
  return html`<section class="branches whatif" ...${part.shows({ run: shown.asked?.run, step: shown.asked?.step })}>
    <p>${say("What if another token had been taken? Choose one of the candidates: the text branches there and goes on with the settings at the left. A sampled text uses the random numbers that it would have had anyway, so only the token makes the difference.")}</p>
    <${Step} ...${{ step, steps, ...shown }} />
    <div class="branch-box">
      <h4>${say("The texts of this prompt so far")}</h4>
      ${entries.length > 0 && html`<${Tree} ...${{ entries, gone, showRun, compare }} />`}
      <p class="hint">${say("Each text stands under the one whose beginning it shares, from the token where they part. Click one to see all of it again; the network does not run for that. Arrow keys move, Enter shows the text.")}</p>
    </div>
  </section>`;
};
const finding = () => {
  const texts = pastRuns.filter(({ facts }) => isOfPrompt(facts)).length;
  return sayN("{n} text of this prompt so far", "{n} texts of this prompt so far", texts);
};
export const mount = mounted(...experiment(Branches, finding));
