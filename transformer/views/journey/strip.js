// A thin copy of the journey above every other tab: each part links to its tab, and the current tab's part is
// marked. A view declares the part of its tab, see declaration.py.

import { openTab } from "../../ui/static/gradio.js";
import { declared, views } from "../../web/link_text.js";
import { percentText, say } from "../../web/messages.js";
import { mounted, usePart } from "../../web/part.js";
import { html, useLayoutEffect, useRef } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { useJourney } from "./queries.js";
import { amountOf } from "./geometry.js";
import { largest } from "./journey.js";
import { share } from "./layers.js";

const BARS = 3;
const SHOWN = 6; // features of the embedding

const { tab: declaredTabs } = declared.page;
const tabs = Object.entries(declaredTabs?.options ?? {}); // [name, title]
const tabOf = (part) => {
  const { tab } = views.find((view) => view.part === part) ?? {};
  return part ? tabs.find(([, title]) => title === tab) : tabs[0];
};

// Every head of every layer as a cell, coloured by its contribution; the chosen one is marked.
const Heads = ({ answer }) => {
  const { kinds, n_heads: nHeads } = page.run;
  const most = largest(answer);
  const chosen = (head) =>
    ["stack", "kind", "layer", "head"].every((one) => page.head?.[one] === head[one]);
  const cell = (head) => {
    const amount = head.stack === page.run.stack ? amountOf(answer, head, nHeads) : 0;
    const { class: look, style } = share(amount, most);
    return html`<i class=${chosen(head) ? `${look} chosen` : look} style=${style} />`;
  };
  const column = (kind, layer) =>
    html`<span class="heads">${Array.from({ length: nHeads }, (_, head) =>
      cell({ stack: kind.stack, kind: kind.kind, layer, head }),
    )}</span>`;
  return kinds.map(
    (kind) =>
      html`<span class="stack">${Array.from({ length: kind.n_layers }, (_, layer) =>
        column(kind, layer),
      )}</span>`,
  );
};

const Embedding = ({ answer: { vector } }) => {
  const values = Array.from(vector ?? []).slice(0, SHOWN);
  const most = Math.max(...values.map(Math.abs));
  return html`<span class="embedding">${values.map((value) => html`<i ...${share(value, most)} />`)}</span>`;
};

const Next = ({ answer: { likeliest } }) => html`<span class="next-bars">${likeliest
  .slice(0, BARS)
  .map(
    ({ probability }) => html`<i style=${{ width: `${Math.max(4, 100 * probability)}%` }} />`,
  )}</span>
  <strong><${Token} label=${likeliest[0].label} /></strong> <small>${percentText(likeliest[0].probability)}</small>`;

// [part, its content, its text for screen readers, whether an arrow leads to the next one].
const partsOf = (answer) => {
  const { run } = page;
  const read = run.labels[answer.position] ?? "";
  const changed = run.interventions.length;
  const start = run.adds_positions ? say("token + position") : say("token");
  return [
    ["", html`<${Token} label=${read} />`, read, true],
    [
      "embedding",
      html`<${Embedding} answer=${answer} /><span class="words">${start}</span>`,
      start,
      true,
    ],
    ["heads", html`<${Heads} answer=${answer} />`, say("heads"), false],
    [
      "mask",
      html`<span class="mask-corner" /><span class="words">${say("mask")}</span>`,
      say("mask"),
      false,
    ],
    ["network", say("MLP"), say("feed-forward"), true],
    ["next", html`<${Next} answer=${answer} />`, answer.likeliest[0].label, false],
    [
      "altered",
      html`${say("What if?")}${changed > 0 && html` <b>${changed}</b>`}`,
      changed ? String(changed) : "",
      false,
    ],
    ["learned", say("Learn"), "", false],
  ];
};

const Part = ({ of: part, shown, words, flows, here }) => {
  const [name, title] = tabOf(part) ?? ["", ""];
  const isHere = name === here;
  const button = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    const { parentElement: item } = button.current;
    const { parentElement: list } = item;
    if (isHere) list.scrollLeft = item.offsetLeft - (list.clientWidth - item.clientWidth) / 2;
  }, []);
  const label = words ? `${say(title)}: ${words}` : say(title);
  const open = () => openTab(name)?.focus({ preventScroll: true });
  return html`<li class=${flows ? "flows" : undefined}><button type="button" ref=${button} data-part=${part || "text"}
    aria-current=${isHere ? "location" : undefined} aria-label=${label} title=${label} onClick=${open}>${shown}</button></li>`;
};

const Strip = ({ props: { tab: here } }) => {
  const part = usePart();
  const { answer, asked } = useJourney(part);
  const made = answer && !part.isHidden ? partsOf(answer) : [];
  return html`<nav class="strip" aria-label=${say("Where this is in the journey")}
    ...${part.attributes(answer ? { run: asked.run, place: answer.position } : {})}><ol>${made.map(
      ([name, shown, words, flows]) =>
        html`<${Part} key=${name} of=${name} ...${{ shown, words, flows, here }} />`,
    )}</ol></nav>`;
};
export const mount = mounted(Strip);
