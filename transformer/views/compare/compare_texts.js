// The tokens of two runs, side by side.

import { say, sayN } from "../../web/messages.js";
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

const LOOKS = { A: "side-a", B: "side-b" };
// One run's tokens of a text; what the other does not have stands out. A's choose their token.
const Side = ({ text: { name, a, b, pairs }, side, label }) => {
  const [labels, at] = side === "A" ? [a, 0] : [b, 1];
  const token = (pair) => {
    const look = `pair ${pair[2].replace(" ", "-").toLowerCase()}`;
    const words = html`<${Token} label=${labels[pair[at]]} />`;
    const choose = () => setQuery({ stack: page.run.stack, index: pair[0] });
    return name === "text" && side === "A"
      ? html`<li><button type="button" class=${look} onClick=${choose}>${words}</button></li>`
      : html`<li><span class=${look}>${words}</span></li>`;
  };
  return html`<div class=${LOOKS[side]}>
    <h5>${side}</h5>
    <ul class="pairs" aria-label=${`${label}, ${side}`}>${pairs.filter((pair) => pair[at] !== null).map(token)}</ul>
  </div>`;
};

const List = ({ text, many }) => {
  const counts = Object.entries(SAID)
    .filter(([how]) => text.counts[how])
    .map(([how, said]) => said(text.counts[how]))
    .join(", ");
  const label = many ? LISTS[text.name] : say("Tokens of both");
  return html`<div class="compare-text">
    <p class="hint">${many ? HEADS[text.name](counts) : say("{sentence}.", { sentence: counts })}</p>
    <div class="two">${["A", "B"].map((side) => html`<${Side} ...${{ text, side, label }} />`)}</div>
  </div>`;
};

// pair: {run, other}, the ids of A and B.
export const Texts = ({ pair }) => {
  const part = usePart();
  const { answer, asked } = useAnswer(part, "compare", pair);
  const texts = answer?.texts ?? [];
  const many = texts.length > 1;
  return html`<section class="compare-texts" ...${part.shows(asked)}>
    <h4>${say("Tokens")}</h4>
    <div class="compare-lists">${texts.map((text) => html`<${List} ...${{ text, many }} />`)}</div>
  </section>`;
};
