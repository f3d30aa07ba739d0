// The tokens of two runs, side by side.

import { say, sayN } from "../../ui/static/messages.js";
import { useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page, setQuery } from "../../web/store.js";
import { Token } from "../../web/text.js";

const SAID = {
  equal: (count) => say("{count} in both", { count }),
  replaced: (count) => sayN("{n} replaced", "{n} replaced", count),
  "only A": (count) => say("{count} only in A", { count }),
  "only B": (count) => say("{count} only in B", { count }),
};
const LISTS = {
  source: say("Tokens of the source of both"),
  text: say("Tokens of the text of both"),
};
const HEADS = {
  source: (counts) => say("Source: {counts}.", { counts }),
  text: (counts) => say("Text: {counts}.", { counts }),
};

const side = (name, label) =>
  label !== undefined &&
  html`<span class=${`side side-${name.toLowerCase()}`}><i>${name}</i><${Token} label=${label} /></span>`;

const Pair = ({ text: { name, a, b }, pair: [inA, inB, how] }) => {
  const look = `pair ${how.replace(" ", "-").toLowerCase()}`;
  const words =
    how === "equal" ? html`<${Token} label=${a[inA]} />` : [side("A", a[inA]), side("B", b[inB])];
  const choose = () => setQuery({ stack: page.run.stack, index: inA });
  return name === "text" && inA !== null
    ? html`<li><button type="button" class=${look} onClick=${choose}>${words}</button></li>`
    : html`<li><span class=${look}>${words}</span></li>`;
};

const List = ({ text, many }) => {
  const counts = Object.entries(SAID)
    .filter(([how]) => text.counts[how])
    .map(([how, said]) => said(text.counts[how]))
    .join(", ");
  const name = many ? LISTS[text.name] : say("Tokens of both");
  return html`<div class="compare-text">
    <p class="hint">${many ? HEADS[text.name](counts) : say("{sentence}.", { sentence: counts })}</p>
    <ul class="pairs" aria-label=${name}>
      ${text.pairs.map((pair) => html`<${Pair} ...${{ text, pair }} />`)}
    </ul>
  </div>`;
};

// pair: {run, other}, the ids of A and B.
export const Texts = ({ pair, server }) => {
  const part = usePart();
  const { answer, asked } = useAnswer(part, server.compare, pair);
  const texts = answer?.texts ?? [];
  const many = texts.length > 1;
  return html`<section class="compare-texts" ...${part.shows(asked)}>
    <h4>${say("Tokens")}</h4>
    <div class="compare-lists">${texts.map((text) => html`<${List} ...${{ text, many }} />`)}</div>
  </section>`;
};
