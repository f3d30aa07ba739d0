// What each head alone matters for one token: the question, the one that matters most, and a map.

import { alter, isAblated, withAblation } from "../../ui/static/interventions.js";
import { colourAt } from "../../web/colours.js";
import { Figure } from "../../web/figure.js";
import { Asked, placeAsked, tokenAt } from "../../web/looked_at.js";
import { colourEnds, numeral, say, sayWith } from "../../web/messages.js";
import { headMap } from "../../web/plots.js";
import { html } from "../../web/preact.js";
import { attentionOf } from "../../web/sites.js";
import { page } from "../../web/store.js";
import { Token } from "../../web/text.js";

const NUMBER_PX = 46; // room for a signed number in a cell of the map

const percent = (probability) => `${numeral((100 * probability).toPrecision(3))} %`;
const headName = ({ stack, kind, layer, head }) =>
  page.run.kinds.length > 1
    ? say("Layer {layer}, head {head} ({attention})", {
        attention: attentionOf({ stack, kind }),
        layer,
        head,
      })
    : say("Layer {layer}, head {head}", { layer, head });

// The head that matters most, for the token with this label.
const mostInWords = (most, label) => {
  const { before, after } = most;
  const told = {
    head: headName(most),
    token: html`<${Token} label=${label} />`,
    before: percent(before),
    after: percent(after),
  };
  return after < before
    ? sayWith("{head} matters most: without it, “{token}” falls from {before} to {after}.", told)
    : sayWith("{head} matters most: without it, “{token}” rises from {before} to {after}.", told);
};
// What the map's colours mean.
const mapInWords = ({ log_probability: intact, limit }, by) =>
  [
    say("With all heads the intact network gives it p = {probability}.", {
      probability: numeral(Math.exp(intact).toFixed(4)),
    }),
    by === "mean"
      ? say("One head at a time is replaced by its mean.")
      : say("One head at a time is set to zero."),
    say("Blue: the token becomes less likely, so the head helped it. Orange: likelier."),
    say(
      "The colours go from {least} to {most}. Click a cell to choose its head.",
      colourEnds(limit),
    ),
  ].join(" ");

const ImportanceMap = ({ part, answer, asked, toggle }) => {
  const { stack, kind, place, by } = asked;
  const title = sayWith(
    "Change of ln p of token {place}, “{token}”, when each head alone is switched off",
    tokenAt(place, answer.label),
  );
  const choose = ({ points: [{ x: head, y: layer }] }) => toggle({ stack, kind, layer, head });
  return html`<div class="matter-box">
    <h4 class="matter-title">${title}</h4>
    <p class="matter-says">${mapInWords(answer, by)}</p>
    <${Figure} part=${part} name="importance" figure=${answer.figure}
      on=${{ plotly_click: choose }} ...${headMap(answer.change.length, NUMBER_PX)} />
  </div>`;
};
// The question, and its answer; see ablation.js for what it is given.
export const Matter = ({ part, answer, asked, toggle, change }) => {
  const place = placeAsked();
  const question =
    place < page.run.labels.length
      ? sayWith("How much does each head matter for “{token}”, token {place}?", tokenAt(place))
      : say("How much does each head matter for the likeliest token?");
  const button = () =>
    html` <button type="button" class="ablation-most"
      onClick=${() => alter(withAblation(answer.most))}>${say("Switch off layer {layer}, head {head}", answer.most)}</button>`;
  return html`<div>
    <${Asked} />
    <div class="whatif-buttons">
      <button type="button" class="matter" onClick=${() => change({ place })}>${question}</button>
    </div>
    <p class="matter-most" role="status" hidden=${!answer}>
      ${answer && [mostInWords(answer.most, answer.label), !isAblated(answer.most) && button()]}
    </p>
    ${answer && html`<${ImportanceMap} ...${{ part, answer, asked, toggle }} />`}
  </div>`;
};
// The colour of each head in the map, [layer][head].
export const coloursOf = ({ figure, change, limit }) => {
  const { colorscale } = figure.data[0];
  return change.map((row) => row.map((value) => colourAt(colorscale, (value / limit + 1) / 2)));
};
