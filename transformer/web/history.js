// Every finished run that this page has shown, oldest first; to show one again, and to branch from one.

import { alter, interventions } from "./interventions.js";
import { shownFields } from "./fields.js";
import { linkOf } from "./link_text.js";
import { say } from "./messages.js";
import { useAnswer } from "./part.js";
import { shell, on, page, reactive, requestsFor, setQuery } from "./store.js";

const MOST = 64; // runs; the server keeps fewer
const NAME = 34; // characters of a text in a run's name
let count = 0;
/** @type {any} */
let branched = null;

// {number, facts}: runs are counted from 1 as they come.
export const pastRuns = [];
export const pastRun = (run) => pastRuns.find(({ facts }) => facts.run === run);
on("run", (facts) => {
  if (!facts?.run || pastRun(facts.run)) return;
  count += 1;
  pastRuns.push({ number: count, facts });
  pastRuns.splice(0, pastRuns.length - MOST);
});

// Those of these runs that are lost: the server no longer keeps them, and they cannot be asked for again.
export const useGone = (part, runs) => {
  const { answer, asked } = useAnswer(part, "kept", runs && { runs });
  const isGone = (run, place) => !answer.kept[place] && !requestsFor({ run });
  return (asked?.runs ?? []).filter(isGone);
};

// The run that the shown one is compared with, by its id; null for the one that `compared` finds.
export const compared = reactive({ run: /** @type {string | null} */ (null) });

// As much of a text as fits, from the word before that in which it parts from those of other runs.
const excerpt = (text) => {
  const parts = pastRuns
    .filter(({ facts }) => facts.text !== text)
    .map(({ facts }) => [...text].findIndex((sign, at) => sign !== facts.text[at]));
  const words = text.slice(0, Math.max(0, ...parts)).split(/(?<= )/);
  const from = text.length > NAME ? words.slice(0, -2).join("").length : 0;
  const shown = text.slice(from, from + NAME);
  return `${from ? "…" : ""}${shown}${from + NAME < text.length ? "…" : ""}`;
};
// What tells a run from others, in a line of plain text.
export const runName = ({ number, facts }) => {
  const { text, model, how, interventions: altered, forced_tokens: forced } = facts;
  const parts = [model, how];
  if (forced.length)
    parts.push(
      say("branched at token {n_prompt}", { n_prompt: facts.n_prompt + forced.length - 1 }),
    );
  parts.push(...altered.map(({ says }) => says));
  return `${number}: “${excerpt(text).replace(/\s+/g, " ")}” (${parts.join("; ")})`;
};

// Show a run again, as the shown one is; the network does not run while the server has it.
export const showRun = (facts) => {
  const views = shownFields();
  delete views.read; // a place in the run that was shown
  delete views.cell;
  return shell.apply({ ...views, ...linkOf(facts) }, facts);
};

// The shown text up to a step, then the given token ids, then what the network writes.
/** @type {(forced: number[]) => void} */
export const continueFrom = (forced) => alter(interventions(), forced, page.run.text); // whatever was typed since
// Another token at a step of the shown run: the text goes on from there.
export const branchAt = (step, id) => {
  const { ids, n_prompt: start } = page.run;
  branched = step + 1;
  continueFrom([...ids.slice(start, start + step), id]);
};
on("run", (facts) => {
  const index = facts?.n_prompt + branched - 2; // the last that was read before it
  const here = branched !== null && facts.forced_tokens.length === branched;
  branched = null;
  if (here) queueMicrotask(() => setQuery({ stack: facts.stack, index })); // once all have heard
});
