// PE(pos + k) from PE(pos): how a position moves.

import { numeral, say, tinyNumber } from "../../web/messages.js";
import { fieldsOf } from "../../web/link_text.js";
import { Select } from "../../web/controls.js";
import { Figure } from "../../web/figure.js";
import { useAnswer, useEvent, usePart } from "../../web/part.js";
import { html, useRef } from "../../web/preact.js";
import { showProblem } from "../../web/store.js";
import { nearlySquare } from "./position_pictures.js";

const shiftSays = ({
  figure,
  fitted,
  k,
  n_pairs: pairs,
  largest_miss: miss,
  relative_miss: relative,
  chance,
}) => {
  const percent = (share) => `${numeral((100 * share).toFixed(1))} %`;
  const asks = say(
    "Is there one matrix that takes the vector of any position to that of the position " +
      "{k} further on?",
    { k: k ?? "k" },
  );
  if (figure === null) {
    const none = say(
      "These positions are learned, and there are no more of them than dimensions: " +
        "a matrix that moves each by k would fit anything, so none is shown.",
    );
    return `${asks} ${none}`;
  }
  if (!fitted) {
    const exact = say(
      "Yes: it turns each pair of dimensions, a sine and a cosine, by an angle of " +
        "its own. Tried on all {pairs} pairs of positions of this model's matrix, it " +
        "misses by at most {miss}.",
      { pairs, miss: tinyNumber(miss) },
    );
    return `${asks} ${exact}`;
  }
  const best = say(
    "Learned positions promise none. The best one (least squares over {pairs} " +
      "pairs of positions) misses by {relative} of the vectors' size; fitted to random " +
      "numbers it would miss by about {chance}.",
    { pairs, relative: percent(relative), chance: percent(chance) },
  );
  return `${asks} ${best}`;
};

const options = Object.entries(fieldsOf("positions").shown?.options ?? {}).map(([value, text]) => [
  value,
  say(text),
]);

// common: what every question to the server holds, null while there is none. state: steps, k; and
// shown, how many dimensions are drawn, "" for all.
export const Shift = ({ server, common, state }) => {
  const part = usePart();
  const wanted = common && { ...common, k: state.steps, shown: Number(state.shown) || null };
  const { answer, asked } = useAnswer(part, server.shift, wanted);
  const model = useRef("");
  useEvent("run", (run) => {
    const next = `${run.d_model} ${run.stacks}`;
    if (next !== model.current) state.steps = 1; // another model may know fewer positions
    model.current = next;
  });
  const most = answer?.largest;
  const step = ({ target: { value } }) => {
    const k = Number(value);
    if (Number.isInteger(k) && k >= 1 && k <= most) state.steps = k;
    else {
      const got = value || say("nothing");
      showProblem(
        say("k must be a whole number from 1 to {most}; got {value}", { most, value: got }),
      );
    }
  };
  const facts = answer && {
    k: asked.k,
    miss: answer.largest_miss,
    relative: answer.relative_miss,
  };
  return html`<div class="position-shift" ...${part.shows(facts)}>
    <div class="positions-head">
      <label>${say("Steps k")} <input class="steps-k" type="number" min="1" max=${most} step="1"
        value=${state.steps} disabled=${most < 1} onChange=${step} /></label>
      <label>${say("Shown")} <${Select} class="steps-shown" options=${options} value=${state.shown}
        set=${(shown) => (state.shown = shown)} /></label>
    </div>
    <div class="two">
      <div><${Figure} part=${part} name="shift" figure=${answer?.figure} change=${nearlySquare}
        hidden=${answer?.figure === null} /></div>
      <p class="shift-says" role="status">${answer && shiftSays(answer)}</p>
    </div>
  </div>`;
};
