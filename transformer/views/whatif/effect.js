// Before and after: the predictions of the intact and the altered network, and their two texts.

import { experiment, interventions } from "../../ui/static/interventions.js";
import { Figure } from "../../web/figure.js";
import { PredictedToken, predictedIfChosen, tokenAt } from "../../web/selection.js";
import { numeral, say, sayN, sayWith } from "../../web/messages.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { Token } from "../../web/text.js";

const percent = (probability) =>
  `${numeral((100 * probability).toFixed(probability < 0.1 ? 2 : 1))} %`;

const Foreseen = ({ part, answer, position }) => {
  const { label, intact, altered, here, figure } = answer ?? {};
  const title =
    answer &&
    sayWith(
      "Token {place}, “{token}”: what the two networks expect there",
      tokenAt(position, label),
    );
  const says =
    answer &&
    say(
      "After the same tokens, the intact network gives it {intact}, the altered " +
        "one {altered}. Choose another token in the text to see what follows that.",
      { intact: percent(intact[here]), altered: percent(altered[here]) },
    );
  return html`<section>
    <h4 class="effect-title">${title ?? say("What the two expect")}</h4>
    <p class="effect-says">${says}</p>
    <${Figure} part=${part} name="predicted" figure=${figure} />
  </section>`;
};

const inCommon = ({ n_prompt: from, same, equal }, written) => {
  if (equal) return sayN("Both write the same token.", "Both write the same {n} tokens.", written);
  return same > from
    ? sayN(
        "Both write {n} token alike, then differ from token {place} on.",
        "Both write {n} tokens alike, then differ from token {place} on.",
        same - from,
        { place: same },
      )
    : say("They differ from the first token that they write.");
};
// labels: of the whole text; of: what its data-of is called.
const Written = ({ of, labels, answer: { n_prompt: from, same } }) => {
  const words = labels
    .slice(from)
    .map((label, at) => html`<${Token} label=${label} class=${from + at >= same && "differs"} />`);
  return html`<dd class="effect-text" data-of=${of}>${words.length ? words : say("(nothing)")}</dd>`;
};
const Texts = ({ answer, labels }) => html`<section>
  <h4>${say("The same request, intact and altered")}</h4>
  <p class="effect-parted" role="status">${answer && inCommon(answer, labels.length - answer.n_prompt)}</p>
  ${
    answer &&
    html`<dl class="effect-texts">
      <dt>${say("intact")}</dt><${Written} of="intact" labels=${answer.labels} answer=${answer} />
      <dt>${say("altered")}</dt><${Written} of="altered" labels=${labels} answer=${answer} />
    </dl>`
  }
  <p class="hint">${say("Underlined: everything from the first token that differs. All settings are the same, the seed too; a beam search becomes greedy in both.")}</p>
</section>`;

const Effect = () => {
  const part = usePart();
  const isAltered = interventions().length > 0;
  const { run, labels } = page.run ?? {};
  const texts = useAnswer(part, "intact_text", isAltered && { run });
  const both = texts.asked?.run === run ? texts.answer : null;
  // Unless a token is chosen: where the texts diverge.
  const position = both && (predictedIfChosen() ?? Math.min(both.same, labels.length - 1));
  const wanted = isAltered && both && { run, position };
  const { answer, asked } = useAnswer(part, "next_token", wanted);
  const facts = isAltered && {
    place: asked?.position,
    intact: answer?.intact[answer.here],
    altered: answer?.altered[answer.here],
    same: both?.same,
    equal: both?.equal,
  };
  return html`<section class="effect whatif" ...${part.attributes({ run, ...facts })}>
    <p class="effect-none" hidden=${isAltered}>${say("Nothing is altered now.")}</p>
    ${isAltered && predictedIfChosen() !== null && html`<${PredictedToken} />`}
    <div class="two effect-body" hidden=${!isAltered}>
      <${Foreseen} part=${part} answer=${answer} position=${asked?.position} />
      <${Texts} answer=${both} labels=${labels} />
    </div>
  </section>`;
};
const finding = () => {
  const changes = interventions().length;
  return changes
    ? sayN("{n} thing is altered.", "{n} things are altered.", changes)
    : say("Nothing is altered now.");
};
export const mount = mounted(...experiment(Effect, finding));
