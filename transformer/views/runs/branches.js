// Another token: the candidates of a step, and the tree of branches that were tried.

import {
  experiment,
  compared,
  branchAt,
  pastRun,
  pastRuns,
  showRun,
  useGone,
} from "../../web/runs.js";
import { before, predictedPosition, tokenAt } from "../../web/selection.js";
import { numeral, percentText, say, sayList, sayWith } from "../../web/messages.js";
import { mounted, openSection, useAnswer, usePart } from "../../web/part.js";
import { html, useRef, useState } from "../../web/preact.js";
import { page, setQuery, showProblem } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { RUN_GONE } from "../../web/ask.js";

// The length of the common prefix of two lists.
/** @type {(a: number[], b: number[]) => number} */
const sharedLength = (a, b) => {
  const at = a.findIndex((one, place) => one !== b[place]);
  return at < 0 ? a.length : at;
};
// Runs of one prompt, each below the earlier one with which it shares most tokens; leaves: the place of
// the first token that it does not share.
/** @type {(entries: import("../../web/types").PastRun[]) => import("./types").Node[]} */
const runTree = (entries) => {
  /** @type {import("./types").Node[]} */
  const nodes = [];
  for (const entry of entries) {
    const shares = nodes.map((node) => sharedLength(node.entry.facts.ids, entry.facts.ids));
    const best = shares.indexOf(Math.max(...shares));
    /** @type {import("./types").Node} */
    const node = {
      entry,
      leaves: nodes.length ? shares[best] : entry.facts.n_prompt,
      children: [],
      parent: nodes[best] ?? null,
    };
    node.parent?.children.push(node);
    nodes.push(node);
  }
  return nodes;
};

// ---- the runs of one prompt as a tree: where each leaves the text of an earlier one ----

/** @type {(entry: import("../../web/types").PastRun) => string} */
const settingsOf = ({ facts }) =>
  sayList([facts.how, ...facts.interventions.map(({ says }) => says)], ";");
// Running text: spaces as spaces.
/** @type {(labels: string[]) => string} */
const plain = (labels) => labels.join("").replaceAll("␣", " ");
/** @type {(node: import("./types").Node) => { own: string, where: string, how: string }} */
const wordsOf = ({ entry, leaves, parent }) => {
  const settings = settingsOf(entry);
  return {
    own: plain(entry.facts.labels.slice(leaves)),
    where: parent ? say("at {place}", { place: leaves }) : "",
    how: parent && settingsOf(parent.entry) === settings ? "" : settings,
  };
};

/** @type {(run: string) => void} */
const compare = (run) => {
  compared.run = run;
  openSection("compare");
};
/** @param {{ entry: import("../../web/types").PastRun, tabindex: number }} props */
const Compare = ({ entry, tabindex }) => {
  const press = (/** @type {Event} */ event) => {
    event.stopPropagation();
    compare(entry.facts.run);
  };
  return html`<button type="button" class="branch-compare" tabindex=${tabindex} onClick=${press}
    aria-label=${say("Compare text {number} with the shown one", { number: entry.number })}>${say("compare")}</button>`;
};
/** @param {{ node: import("./types").Node, isGone: boolean, tabindex: number, show: (node: import("./types").Node) => void }} props */
const Line = ({ node, isGone, tabindex, show }) => {
  const { entry, leaves, parent } = node;
  const { own, where, how } = wordsOf(node);
  const ends = parent && leaves < parent.entry.facts.ids.length;
  const none = () => html`<em>${ends ? say("ended here") : say("the same text")}</em>`;
  return html`<div class="branch-line" onClick=${() => show(node)}>
    <b>${entry.number}</b><small>${where && `${where} `}</small>
    <span class="branch-text"><bdi>${own}</bdi>${!own && none()}</span>
    ${how && html`<small class="branch-how">${how}</small>`}
    ${
      isGone
        ? html`<small class="branch-how">${say("no longer kept by the server")}</small>`
        : entry.facts.run !== page.run.run &&
          html`<${Compare} entry=${entry} tabindex=${tabindex} />`
    }
  </div>`;
};

/** @type {Record<string, (all: import("./types").Node[], node: import("./types").Node) => import("./types").Node | null | undefined>} */
const MOVES = {
  ArrowDown: (all, node) => all[all.indexOf(node) + 1],
  ArrowUp: (all, node) => all[all.indexOf(node) - 1],
  ArrowRight: (_, { children }) => children[0],
  ArrowLeft: (_, { parent }) => parent,
  Home: (all) => all[0],
  End: (all) => all[all.length - 1],
};
/** @type {(node: import("./types").Node) => import("./types").Node[]} */
const withBelow = (node) => [node, ...node.children.flatMap(withBelow)];
/** @type {(node: import("./types").Node) => string} */
const runOf = ({ entry }) => entry.facts.run;

// entries: of one prompt. gone: the runs that the server no longer keeps.
/** @param {{ entries: import("../../web/types").PastRun[], gone: string[] }} props */
const Tree = ({ entries, gone }) => {
  const items = useRef(/** @type {Record<string, HTMLElement | null>} */ ({}));
  const { run } = page.run;
  const [at, put] = useState({ run, stop: run }); // the item in the tab order, while this run is shown
  const roots = runTree(entries).filter(({ parent }) => !parent);
  const all = roots.flatMap(withBelow);
  const wanted = at.run === run ? at.stop : run;
  const stop = runOf(all.find((node) => runOf(node) === wanted) ?? all[0]);
  const show = (/** @type {import("./types").Node} */ node) => {
    put({ run, stop: runOf(node) });
    if (gone.includes(runOf(node))) showProblem(RUN_GONE);
    else if (runOf(node) !== run) showRun(node.entry.facts);
  };
  /** @type {(event: KeyboardEvent, node: import("./types").Node) => void} */
  const press = (event, node) => {
    if (event.target !== event.currentTarget) return; // of an item below
    const to = MOVES[event.key]?.(all, node);
    if (event.key === "Enter" || event.key === " ") show(node);
    else if (to) {
      put({ run, stop: runOf(to) });
      items.current[runOf(to)]?.focus();
    } else return;
    event.preventDefault();
  };
  /** @type {(node: import("./types").Node, level: number) => import("preact").ComponentChild} */
  const item = (node, level) => {
    const { own, where, how } = wordsOf(node);
    const name = runOf(node);
    const isGone = gone.includes(name);
    const tabindex = name === stop ? 0 : -1;
    const words = sayList([where, own || say("the same text"), how].filter(Boolean));
    const below = node.children.map((child) => item(child, level + 1));
    return html`<li key=${name} class="branch" role="treeitem" data-run=${name} tabindex=${tabindex}
      aria-level=${level} aria-selected=${String(name === run)}
      aria-label=${say("Text {number}: {text}", { number: node.entry.number, text: words })}
      aria-disabled=${isGone ? "true" : undefined} aria-expanded=${below.length ? "true" : undefined}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => press(event, node)} ref=${(/** @type {HTMLElement | null} */ made) => (items.current[name] = made)}>
      <${Line} node=${node} isGone=${isGone} tabindex=${tabindex} show=${show} />
      ${below.length > 0 && html`<ul role="group">${below}</ul>`}
    </li>`;
  };
  return html`<ul class="branch-tree" role="tree"
    aria-label=${say("The texts of this prompt so far")}>
    ${roots.map((node) => item(node, 1))}
  </ul>`;
};

// ---- the tokens of one step ----

// The selected step: that of the token after the chosen one, if there is one; else the previous selection, at
// first 0.
/** @type {(steps: number) => number} */
const useStep = (steps) => {
  const { run, query } = page;
  const last = useRef({ run, step: 0 });
  if (last.current.run !== run) last.current = { run, step: 0 };
  const chosen =
    run && query?.stack === run.stack ? predictedPosition(query.index) - run.n_prompt : -1;
  if (chosen >= 0 && chosen < steps) last.current.step = chosen;
  return last.current.step;
};

/** @param {{ answer: import("./types").Candidates, at: number, branch: (id: number) => void }} props */
const Choice = ({ answer, at, branch }) => {
  const [id, token, p] = [answer.ids[at], answer.labels[at], answer.probabilities[at]];
  const [taken, probability] = [id === answer.taken, numeral(p.toFixed(4))];
  const label = taken
    ? say("{token}, {probability}: the text goes on with it", { token, probability })
    : say("{token}, {probability}: go on with it instead", { token, probability });
  return html`<li><button type="button" class="choice" disabled=${taken} aria-label=${label}
    style=${{ "--p": p.toFixed(4) }} data-id=${id} onClick=${() => branch(id)}>
    <${Token} label=${token} /><span class="value">${`${percentText(p, 1)}${taken ? " ✓" : ""}`}</span>
  </button></li>`;
};

/** @param {{ step: number, steps: number, answer: import("./types").Candidates | null, asked: { run?: string, step?: number } | null }} props */
const Step = ({ step, steps, answer, asked }) => {
  const go = (/** @type {number} */ to) => setQuery(before(page.run.n_prompt + to));
  const { n_prompt: start } = pastRun(asked?.run ?? "")?.facts ?? page.run ?? {};
  /** @param {import("./types").Candidates} of */
  const title = (of) => {
    const taken = of.labels[of.ids.indexOf(of.taken)];
    const place = start + (asked?.step ?? 0);
    return sayWith("Token {place} is “{token}”. It could have been:", tokenAt(place, taken));
  };
  const none = page.run && say("Nothing was generated, so there is no token to change.");
  const branch = (/** @type {number} */ id) =>
    asked?.run === page.run.run && branchAt(asked.step ?? 0, id);
  const notes = answer && [
    say("These are the network's probabilities, before temperature and filters."),
    answer.searched && say("A branch of a beam search continues greedily."),
  ];
  return html`<div class="branch-step">
    <div class="step-head">
      <button type="button" class="previous" aria-label=${say("One token back")}
        disabled=${step === 0} onClick=${() => go(step - 1)}>‹</button>
      <h4 class="branch-title">${
        answer ? title(answer) : steps ? say("What it could have been") : none
      }</h4>
      <button type="button" class="next" aria-label=${say("One token on")}
        disabled=${step >= steps - 1} onClick=${() => go(step + 1)}>›</button>
    </div>
    <ul class="branch-choices" aria-label=${say("What it could have been")}>
      ${answer?.ids.map((id, at) => html`<${Choice} key=${id} answer=${answer} at=${at} branch=${branch} />`)}
    </ul>
    <p class="branch-note hint">${notes && notes.filter(Boolean).join(" ")}</p>
  </div>`;
};

/** @type {(facts: import("../../web/types").Run) => boolean} */
const isOfPrompt = ({ model, text }) => model === page.run?.model && text === page.run.text;

const Branches = () => {
  const part = usePart();
  const { run } = page;
  const steps = run?.probabilities.length ?? 0;
  const step = useStep(steps);
  const { answer, asked } = useAnswer(part, "choices", steps > 0 && { run: run.run, step });
  const entries = pastRuns.filter(({ facts }) => isOfPrompt(facts));
  const runs = entries.map(({ facts }) => facts.run);
  const gone = useGone(part, run ? runs : null);
  /** @type {{ run?: string, step?: number } | null} */
  const of = steps > 0 ? asked : { run: run?.run };
  return html`<section class="branches whatif" ...${part.attributes({ run: of?.run, step: of?.step })}>
    <p>${say("Choose one of the candidates: the text branches there and goes on with the settings at the left. A sampled text uses the random numbers that it would have had anyway, so only the token makes the difference.")}</p>
    <${Step} step=${step} steps=${steps} answer=${steps > 0 ? answer : null} asked=${of} />
    <div class="branch-box">
      <h4>${say("The texts of this prompt so far")}</h4>
      ${entries.length > 0 && html`<${Tree} entries=${entries} gone=${gone} />`}
      <p class="hint">${say("Each text stands under the one whose beginning it shares, from the token where they part. Click one to see all of it again; the network does not run for that. Arrow keys move, Enter shows the text.")}</p>
    </div>
  </section>`;
};
const finding = () => {
  const texts = pastRuns.filter(({ facts }) => isOfPrompt(facts)).length;
  return texts > 1 && say("{n} texts of this prompt so far", { n: texts });
};
export const mount = mounted(...experiment(Branches, finding));
