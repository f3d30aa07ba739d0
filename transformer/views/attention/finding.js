// Next to the grid of heads: what the clearest head does, and the meaning of each sign in the grid.

import { capital, numeral, say, sayWith } from "../../web/messages.js";
import { useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { setHead, setQuery, tracedFrom } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { headMetrics, kindShown } from "./metrics_cache.js";

// The finding as a sentence; its link chooses the head and the token where it is clearest.
const sentence = ({ stack, kind }, found) => {
  const { layer, head, clear, does, title, number, value, even, n_rows: rows, weight } = found;
  const at = { layer, head };
  const choose = () => {
    setHead({ stack, kind, layer, head });
    setQuery({ stack, index: found.query + tracedFrom(stack) });
  };
  const name = say("layer {layer}, head {head}", at);
  const pick = html`<button type="button" class="pick" onClick=${choose}
    aria-label=${say("Show {head}", { head: name })}>${clear ? capital(name) : name}</button>`;
  const values = {
    number,
    rows,
    times: numeral((value / even).toFixed(value / even < 10 ? 1 : 0)),
    value: numeral(value.toFixed(2)),
    weight: numeral(weight.toFixed(2)),
    query: html`<${Token} label=${found.query_label} />`,
    key: html`<${Token} label=${found.key_label} />`,
  };
  return [
    clear
      ? sayWith("The clearest of all heads on this text: {head} {does}.", { head: pick, does })
      : sayWith("No head does only one thing on this text. The nearest is {head}, “{short}”.", {
          head: pick,
          short: title,
        }),
    " ",
    sayWith(
      "{number} {value} on average over {rows} tokens, {times} times that of a " +
        "uniform head. Clearest at “{query}”: it reads “{key}” ({weight}).",
      values,
    ),
  ];
};

// The label of each sign in the grid, once.
const signsOf = (heads) =>
  new Map(heads.filter(({ sign }) => sign).map(({ sign, label }) => [sign, label]));

export const HeadFinding = () => {
  const part = usePart();
  const { answer, asked } = useAnswer(part, headMetrics, kindShown());
  const sign = ([one, words]) =>
    html`<span class="sign-words"><span class="sign">${one}</span>${words}</span>`;
  return html`<div class="head-finding" ...${part.attributes(asked)}>
    ${
      answer &&
      html`<p class="finding">${
        answer.finding
          ? sentence(asked, answer.finding)
          : say(
              "No head stands out on this text: choose a token in it, and look at what each head reads there.",
            )
      }</p>
      <p class="signs">${[...signsOf(answer.heads)].map(sign)}</p>`
    }
  </div>`;
};
