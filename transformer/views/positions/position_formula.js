// The sinusoidal formula beside the model's own positions.

import { numeral, say, tinyNumber } from "../../web/messages.js";
import { Figure } from "../../web/figure.js";
import { useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { nearlySquare } from "./position_pictures.js";

const inWords = ({ figure, positions, difference }) => {
  if (figure === null) {
    return say("It needs an even number of dimensions, and this model has an odd one.");
  }
  return positions === "sinusoidal"
    ? say("This model's matrix is the formula itself: largest difference {difference}.", {
        difference: tinyNumber(difference),
      })
    : say(
        "This model learned its positions instead; compare both matrices (largest " +
          "difference {difference}).",
        { difference: numeral(difference.toFixed(2)) },
      );
};

// common: what every question to the server holds, null while there is none.
export const Formula = ({ server, common }) => {
  const part = usePart();
  const asked = (which) => common && { ...common, which, formula: true };
  const { answer } = useAnswer(part, server.positions, asked("matrix"));
  const { answer: alike } = useAnswer(part, server.positions, asked("similarity"));
  const own = answer?.positions === "sinusoidal";
  const use = own ? say("which this model uses") : say("not used by this model");
  const facts = answer && { own, difference: answer.difference };
  return html`<div class="position-formula" ...${part.shows(facts)}>
    <p>${say("Dimension 2i is sin(pos / 10000^(2i / C)) and dimension 2i + 1 the cosine of the same: each pair is a wave of its own, slower from pair to pair.")} <span class="formula-says">${answer && inWords(answer)}</span></p>
    <div class="two compared" hidden=${answer?.figure === null}>
      <section>
        <h4>${say("The formula's matrix,")} <span class="formula-use">${answer && use}</span></h4>
        <${Figure} part=${part} name="formula-matrix" figure=${answer?.figure} change=${nearlySquare} />
      </section>
      <section>
        <h4>${say("Similarity of the formula's positions (cosine)")}</h4>
        <${Figure} part=${part} name="formula-similarity" figure=${alike?.figure} change=${nearlySquare} />
      </section>
    </div>
  </div>`;
};
