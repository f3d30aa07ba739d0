// How likely each token of two runs was, and what each run weighed at the chosen one.

import { Figure } from "../../web/figure.js";
import { Asked, before, placeAsked } from "../../web/looked_at.js";
import { numeral, say, sayWith } from "../../web/messages.js";
import { useAnswer, usePart } from "../../web/part.js";
import { fitPairs } from "../../web/plots.js";
import { html } from "../../web/preact.js";
import { page, setQuery } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { fitBars } from "../prediction/token_columns.js";

const numbersOf = ({ data: [bars], layout }) => ({
  rows: layout.meta.labels.map((label, place) => `${layout.meta.pairs[place][0]} ${label}`),
  columns: [say("in A"), say("in B"), "B − A"],
  value: (row, column) => {
    const [a, b] = bars.customdata[row];
    return numeral([a, b, b - a][column].toFixed(4));
  },
  corner: say("token"),
});
const choose = ({ points }, { layout: { meta } }) =>
  setQuery(before(meta.pairs[Math.round(points[0].x)][0]));

// pair: {run, other}, the ids of A and B.
export const Outcomes = ({ pair }) => {
  const part = usePart();
  const { answer, asked } = useAnswer(part, "outcomes", { ...pair, dark: page.dark });
  const none = answer?.none;
  return html`<section class="compare-outcomes" ...${part.shows(asked)}>
    <h4>${say("How likely each generated token was: B − A")}</h4>
    <p class="compare-says">${none && say("There is nothing to draw: {reason}.", { reason: none })}</p>
    <div class="compare-drawn" hidden=${Boolean(none)}>
      <p>${say("Up: the token was likelier in B. Down: it was likelier in A. These are the network's probabilities, before temperature and filters. Hatched: two different tokens. Click a bar to choose the token before it.")}</p>
      <${Figure} part=${part} name="outcomes" figure=${answer?.figure} table=${numbersOf}
        wide=${say("Bars, one a token that both generated")} change=${fitBars(part, 16)}
        on=${{ plotly_click: choose }} />
    </div>
  </section>`;
};

// What follows the chosen token if A generated it, else the first one that A generated.
const placeOfA = () => {
  const { n_prompt: first, labels } = page.run;
  const at = placeAsked();
  return at >= first && at < labels.length ? at : first;
};
const bothOf = ({ data, layout: { meta } }) => ({
  rows: meta.labels,
  columns: ["A", "B"],
  value: (row, column) => data[column].customdata[row],
  corner: say("next token"),
});

const title = ({ none, labels, places }, { place }) => {
  if (none) {
    return say("Candidates for token {place} of A: {reason}.", { place, reason: none });
  }
  const [a, b] = labels.map((label) => html`<${Token} label=${label} />`);
  return sayWith(
    "Candidates for token {place_a} of A, which became “{token_a}”, and for token {place_b} " +
      "of B, which became “{token_b}”",
    { place_a: places[0], token_a: a, place_b: places[1], token_b: b },
  );
};
export const Weighed = ({ pair }) => {
  const part = usePart();
  const wanted = { ...pair, place: placeOfA(), dark: page.dark };
  const { answer, asked } = useAnswer(part, "weighed", wanted);
  return html`<section class="compare-weighed" ...${part.shows(asked)}>
    <${Asked} of=${before(wanted.place).index} />
    <h4 class="weighed-title">${answer ? title(answer, asked) : say("Candidates of both")}</h4>
    <${Figure} part=${part} name="weighed" figure=${answer?.figure} hidden=${Boolean(answer?.none)}
      change=${fitPairs} table=${bothOf} />
  </section>`;
};
