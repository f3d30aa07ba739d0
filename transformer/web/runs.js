// What is altered in the network of the shown run, as plain values; asking for a run with other alterations; and the
// runs of this visit.

import { say, sayList } from "./messages.js";
import { html } from "./preact.js";
import { headName, kindOf as kindWords } from "./sites.js";
import { controls, shell, page, on, reactive, requestsFor, setQuery } from "./store.js";
import { shownFields } from "./fields.js";
import { linkOf } from "./link_text.js";
import { useAnswer } from "./part.js";

/** @import { ComponentChild, FunctionComponent } from "preact" */
/**
 * @typedef {import("./types").Change} Plain an intervention as plain values
 * @typedef {import("./store.js").Head} Head
 * @typedef {import("./store.js").Site} Site
 */

/** @type {() => Plain[]} */
export const interventions = () => (page.run?.interventions ?? []).map(({ is }) => is);

// A new run with these, of the text in the box or of `text`.
/** @type {(changed: Plain[], forced?: number[], text?: string) => void} */
export const alter = (changed, forced_tokens = [], text = undefined) =>
  shell.generate({ interventions: changed, forced_tokens }, text);

// Whether the shown model writes text: nothing is altered in one that only reads.
export const generates = () => page.run?.stack === "decoder";
// An experiment and what its heading says, if anything, for `mounted`: neither is shown of a network that
// only reads.
/** @type {<Props>(Component: FunctionComponent<Props>, finding?: () => ComponentChild) => [FunctionComponent<Props>, () => ComponentChild]} */
export const experiment = (Component, finding = () => null) => [
  (props) => generates() && html`<${Component} ...${props} />`,
  () => generates() && (finding() || null),
];

// ---- ablated heads ----

/** @type {(change: Plain) => string} */
const kindOf = ({ kind }) => kind ?? "self"; // plain values leave out what is the default
// Whether it switches heads off, in every token: a program may ablate other parts.
/** @type {(change: Plain) => boolean} */
export const ablatesHeads = ({ type, heads, positions }) =>
  type === "ablate" && Boolean(heads) && !positions;

/** @type {(head: Head) => (change: Plain) => boolean} */
const isOf = (head) => (change) =>
  ablatesHeads(change) &&
  change.stack === head.stack &&
  kindOf(change) === head.kind &&
  change.layer === head.layer;

// The plain value of an Ablate, at its shortest.
/** @type {(site: Site, heads: number[], by?: string) => Plain} */
export const ablationOf = ({ stack, kind, layer }, heads, by = "zero") => ({
  type: "ablate",
  stack,
  layer,
  heads,
  ...(kind === "self" ? {} : { kind }),
  ...(by === "zero" ? {} : { by }),
});

/** @type {(head: Head) => (index: number) => boolean} */
const isOther = (head) => (index) => index !== head.head;

// Whether interventions ablate a head {stack, kind, layer, head}.
/** @type {(head: Head, all?: Plain[]) => boolean} */
export const isAblated = (head, all = interventions()) =>
  all.filter(isOf(head)).some(({ heads }) => heads?.includes(head.head));

// Interventions with this head ablated, or intact again if it is ablated.
/** @type {(head: Head, all?: Plain[], by?: string) => Plain[]} */
export const withAblation = (head, all = interventions(), by = "zero") => {
  const same = isOf(head);
  if (isAblated(head, all)) {
    return all
      .map((each) => (same(each) ? { ...each, heads: each.heads?.filter(isOther(head)) } : each))
      .filter((each) => !ablatesHeads(each) || each.heads?.length);
  }
  const at = all.findIndex((each) => same(each) && (each.by ?? "zero") === by);
  if (at < 0) return [...all, ablationOf(head, [head.head], by)];
  const heads = [...(all[at].heads ?? []), head.head].sort((a, b) => a - b);
  return all.map((each, place) => (place === at ? { ...each, heads } : each));
};

// "layer 5, head 0", with its kind where the network has several.
/** @type {(head: Head) => string} */
export const headWords = (head) => {
  const words = headName(head);
  return page.run.kinds.length > 1 ? `${words} (${kindWords(head)})` : words;
};
// Beside the large picture of a head: switches that head off, or on again. Projected, its name is in one line.
/** @param {{ of: Head }} props */
export const SwitchOff = ({ of }) => {
  if (!generates()) return false;
  const head = page.projector ? headName(of) : headWords(of);
  return html`<button type="button" class="switch-off" onClick=${() => alter(withAblation(of))}>${
    isAblated(of) ? say("Switch {head} on again", { head }) : say("Switch off {head}", { head })
  }</button>`;
};

// ---- a feed-forward that is switched off, in every token ----

/** @typedef {{ stack: string, layer: number }} Forward */

/** @type {(of: Forward) => (change: Plain) => boolean} */
const isForward = (of) => (change) =>
  change.type === "ablate" &&
  change.part === "mlp_out" &&
  !change.by &&
  !change.positions &&
  change.stack === of.stack &&
  change.layer === of.layer;
/** @type {(of: Forward) => boolean} */
export const isForwardOff = (of) => interventions().some(isForward(of));
// Switch it off, or on again.
/** @type {(of: Forward) => void} */
export const switchForward = (of) => {
  const others = interventions().filter((change) => !isForward(of)(change));
  const { stack, layer } = of;
  alter(isForwardOff(of) ? others : [...others, { type: "ablate", stack, layer, part: "mlp_out" }]);
};

// ---- every finished run that this page has shown, oldest first; to show one again, and to branch from one ----

const MAX_RUNS = 64; // runs; the server keeps fewer
const NAME_CHARACTERS = 34; // characters of a text in a run's name

// {number, facts}: runs are counted from 1 as they come.
/** @type {import("./types").PastRun[]} */
export const pastRuns = [];
/** @type {(run: string) => import("./types").PastRun | undefined} */
export const pastRun = (run) => pastRuns.find(({ facts }) => facts.run === run);
on("run", (facts) => {
  if (!facts.run || pastRun(facts.run)) return;
  pastRuns.push({ number: (pastRuns.at(-1)?.number ?? 0) + 1, facts });
  pastRuns.splice(0, pastRuns.length - MAX_RUNS);
});

// Those of these runs that are lost: the server no longer keeps them, and they cannot be asked for again.
/** @type {(part: import("./part.js").Part, runs: string[] | null) => string[]} */
export const useGone = (part, runs) => {
  const { answer, asked } = useAnswer(part, "kept", runs && { runs });
  /** @type {(run: string, place: number) => boolean} */
  const isGone = (run, place) => !answer?.kept[place] && !requestsFor({ run });
  return (asked?.runs ?? []).filter(isGone);
};

// The run that the shown one is compared with, by its id; null for the one that `compared` finds.
export const compared = reactive({ run: /** @type {string | null} */ (null) });

// As much of a text as fits, from the word before that in which it parts from those of other runs.
/** @type {(text: string) => string} */
const excerpt = (text) => {
  const parts = pastRuns
    .filter(({ facts }) => facts.text !== text)
    .map(({ facts }) => [...text].findIndex((sign, at) => sign !== facts.text[at]));
  const words = text.slice(0, Math.max(0, ...parts)).split(/(?<= )/);
  const from = text.length > NAME_CHARACTERS ? words.slice(0, -2).join("").length : 0;
  const shown = text.slice(from, from + NAME_CHARACTERS);
  return `${from ? "…" : ""}${shown}${from + NAME_CHARACTERS < text.length ? "…" : ""}`;
};
// What tells a run from others, in a line of plain text.
/** @type {(run: import("./types").PastRun) => string} */
export const runName = ({ number, facts }) => {
  const { text, model, how, interventions: altered, forced_tokens: forced } = facts;
  const parts = [model, how];
  if (forced.length)
    parts.push(
      say("branched at token {n_prompt}", { n_prompt: facts.n_prompt + forced.length - 1 }),
    );
  parts.push(...altered.map(({ says }) => says));
  const begins = excerpt(text).replace(/\s+/g, " ");
  return say("{number}: “{text}” ({facts})", { number, text: begins, facts: sayList(parts, ";") });
};

// Show a run again, as the shown one is; the network does not run while the server has it.
/** @type {(facts: import("./types").Run) => void} */
export const showRun = (facts) => {
  const views = shownFields();
  delete views.read; // a place in the run that was shown
  delete views.key;
  delete views.cell;
  shell.apply({ ...views, ...linkOf(facts) }, facts);
};

// The shown text, whatever was typed since, up to a step; then the given token ids, of which the last may be one
// more than the new tokens that are set; then what the network writes.
/** @type {(forced: number[]) => void} */
export const continueFrom = (forced_tokens) => {
  const most = Math.max(controls.max_new_tokens, forced_tokens.length);
  const changes = { interventions: interventions(), forced_tokens, max_new_tokens: most };
  shell.generate(changes, page.run.text);
};
// Another token at a step of the shown run: the text goes on from there.
/** @type {(step: number, id: number) => void} */
export const branchAt = (step, id) => {
  const { ids, n_prompt: start } = page.run;
  page.branchedAt = step + 1;
  continueFrom([...ids.slice(start, start + step), id]);
};
on("run", ({ stack, n_prompt: start, forced_tokens: forced }) => {
  const { branchedAt } = page;
  page.branchedAt = null;
  if (branchedAt === null || forced.length !== branchedAt) return;
  const index = start + branchedAt - 2; // the last that was read before it
  queueMicrotask(() => setQuery({ stack, index })); // after all listeners have run
});
