// What is said of how much each head matters for one token.

import { tokenElement } from "../../ui/static/dom.js";
import { numeral, say, sayWith } from "../../ui/static/messages.js";
import { attentionOf } from "../../ui/static/site_words.js";
import { page } from "../../web/store.js";

const percent = (probability) => `${numeral((100 * probability).toPrecision(3))} %`;

const headName = ({ stack, kind, layer, head }) =>
  page.run.kinds.length > 1
    ? say("Head {layer}·{head} ({attention})", {
        attention: attentionOf({ stack, kind }),
        layer,
        head,
      })
    : say("Head {layer}·{head}", { layer, head });

// The head that matters most, for the token with this label: what replaceChildren takes.
export const mostInWords = (most, label) => {
  const { before, after } = most;
  const told = {
    head: headName(most),
    token: tokenElement(label),
    before: percent(before),
    after: percent(after),
  };
  return after < before
    ? sayWith("{head} matters most: without it, “{token}” falls from {before} to {after}.", told)
    : sayWith("{head} matters most: without it, “{token}” rises from {before} to {after}.", told);
};

// What the map's colours mean. by: "zero" or "mean".
export const mapInWords = ({ log_probability: intact, limit }, by) =>
  [
    say("With all heads the intact network gives it p = {probability}.", {
      probability: numeral(Math.exp(intact).toFixed(4)),
    }),
    by === "mean"
      ? say("One head at a time is replaced by its mean.")
      : say("One head at a time is set to zero."),
    say("Blue: the token becomes less likely, so the head helped it. Orange: likelier."),
    say("The colours go from {least} to {most}. Click a cell to choose its head.", {
      least: numeral((-limit).toPrecision(3)),
      most: numeral(limit.toPrecision(3)),
    }),
  ].join(" ");
