// The runs of one prompt as a tree, as plain data.

import { RUN_GONE } from "../../web/ask.js";
import { say } from "../../web/messages.js";
import { html, useRef, useState } from "../../web/preact.js";
import { page, showProblem } from "../../web/store.js";

/** @typedef {{entry: any, leaves: number, children: Node[], parent: Node | null}} Node */

// How many items two lists begin with in common.
/** @type {<T>(a: T[], b: T[]) => number} */
const sharedLength = (a, b) => {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at += 1;
  return at;
};
// Runs of one prompt, each below the earlier one with which it shares most tokens; leaves: the place of
// the first token that it does not share.
/** @type {(entries: {facts: {ids: number[], n_prompt: number}}[]) => Node[]} */
export const runTree = (entries) => {
  /** @type {Node[]} */
  const nodes = [];
  for (const entry of entries) {
    const shares = nodes.map((node) => sharedLength(node.entry.facts.ids, entry.facts.ids));
    const best = shares.indexOf(Math.max(...shares));
    /** @type {Node} */
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

// The runs of one prompt as a tree: where each leaves the text of an earlier one.

const settingsOf = ({ facts }) =>
  [facts.how, ...facts.interventions.map(({ says }) => says)].join("; ");
// Running text: spaces as spaces.
const plain = (labels) => labels.join("").replaceAll("␣", " ");
const wordsOf = ({ entry, leaves, parent }) => {
  const settings = settingsOf(entry);
  return {
    own: plain(entry.facts.labels.slice(leaves)),
    where: parent ? say("at {place}", { place: leaves }) : "",
    told: parent && settingsOf(parent.entry) === settings ? "" : settings,
  };
};

const Compare = ({ entry, tabindex, compare }) => {
  const press = (event) => {
    event.stopPropagation();
    compare(entry.facts.run);
  };
  return html`<button type="button" class="branch-compare" tabindex=${tabindex} onClick=${press}
    aria-label=${say("Compare text {number} with the shown one", { number: entry.number })}>${say("compare")}</button>`;
};
const Line = ({ node, isGone, tabindex, show, compare }) => {
  const { entry, leaves, parent } = node;
  const { own, where, told } = wordsOf(node);
  const ends = parent && leaves < parent.entry.facts.ids.length;
  const none = () => html`<em>${ends ? say("(ends here)") : say("(the same text)")}</em>`;
  return html`<div class="branch-line" onClick=${() => show(node)}>
    <b>${entry.number}</b><small>${where && `${where} `}</small>
    <span class="branch-text"><bdi>${own}</bdi>${!own && none()}</span>
    ${told && html`<small class="branch-how">${told}</small>`}
    ${
      isGone
        ? html`<small class="branch-how">${say("no longer kept by the server")}</small>`
        : entry.facts.run !== page.run.run &&
          html`<${Compare} ...${{ entry, tabindex, compare }} />`
    }
  </div>`;
};

const MOVES = {
  ArrowDown: (all, node) => all[all.indexOf(node) + 1],
  ArrowUp: (all, node) => all[all.indexOf(node) - 1],
  ArrowRight: (_, { children }) => children[0],
  ArrowLeft: (_, { parent }) => parent,
  Home: (all) => all[0],
  End: (all) => all[all.length - 1],
};
const withBelow = (node) => [node, ...node.children.flatMap(withBelow)];
const runOf = ({ entry }) => entry.facts.run;

// entries: of one prompt. gone: the runs that the server no longer keeps. showRun(facts) shows another, compare(run) puts
// it beside the shown one.
export const Tree = ({ entries, gone, showRun, compare }) => {
  const items = useRef(/** @type {Record<string, any>} */ ({}));
  const { run } = page.run;
  const [at, put] = useState({ run, stop: run }); // the item in the tab order, while this run is shown
  const roots = runTree(entries).filter(({ parent }) => !parent);
  const all = roots.flatMap(withBelow);
  const wanted = at.run === run ? at.stop : run;
  const stop = runOf(all.find((node) => runOf(node) === wanted) ?? all[0]);
  const show = (node) => {
    put({ run, stop: runOf(node) });
    if (gone.includes(runOf(node))) showProblem(RUN_GONE);
    else if (runOf(node) !== run) showRun(node.entry.facts);
  };
  const press = (event, node) => {
    if (event.target !== event.currentTarget) return; // of an item below
    const to = MOVES[event.key]?.(all, node);
    if (event.key === "Enter" || event.key === " ") show(node);
    else if (to) {
      put({ run, stop: runOf(to) });
      items.current[runOf(to)].focus();
    } else return;
    event.preventDefault();
  };
  const item = (node, level) => {
    const { own, where, told } = wordsOf(node);
    const name = runOf(node);
    const isGone = gone.includes(name);
    const tabindex = name === stop ? 0 : -1;
    const words = [where, own || say("the same text"), told].filter(Boolean).join(", ");
    const below = node.children.map((child) => item(child, level + 1));
    return html`<li key=${name} class="branch" role="treeitem" data-run=${name} tabindex=${tabindex}
      aria-level=${level} aria-selected=${String(name === run)}
      aria-label=${say("Text {number}: {text}", { number: node.entry.number, text: words })}
      aria-disabled=${isGone ? "true" : undefined} aria-expanded=${below.length ? "true" : undefined}
      onKeyDown=${(event) => press(event, node)} ref=${(made) => (items.current[name] = made)}>
      <${Line} ...${{ node, isGone, tabindex, show, compare }} />
      ${below.length > 0 && html`<ul role="group">${below}</ul>`}
    </li>`;
  };
  return html`<ul class="branch-tree" role="tree"
    aria-label=${say("Texts of this prompt, each from where it parts from another")}>
    ${roots.map((node) => item(node, 1))}
  </ul>`;
};
