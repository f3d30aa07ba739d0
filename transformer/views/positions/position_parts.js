// Parts next to the positional matrix: token + position, and the map to a later position.

import { percentText, say, numeral, tinyNumber, sayWith } from "../../web/messages.js";
import { Figure } from "../../web/figure.js";
import { useAnswer, usePart, useEvent } from "../../web/part.js";
import { html, useRef } from "../../web/preact.js";
import { chosenRow, page, showProblem } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { fieldsOf } from "../../web/link_text.js";
import { Select } from "../../web/controls.js";

// Shared adjustments of the figures; their titles are in the page.

const MOST_PX = 460;

export const nearlySquare = ({ layout }) =>
  (layout.height = Math.min(MOST_PX, Math.round(layout.width * 0.95)));

// Token + position = input.

const NARROW_PX = 640;

// Titles are in the page; on a phone the three strips are stacked.
const stackOnPhones = ({ layout, data }) => {
  if (page.projector)
    for (const heading of layout.annotations) heading.text = heading.text.split(",")[0];
  if (layout.width >= NARROW_PX) return;
  const strip = layout.height - layout.margin.t - layout.margin.b;
  const step = strip + layout.margin.b + layout.margin.t;
  layout.height = 3 * step;
  layout.margin = { ...layout.margin, l: 90, r: 8 };
  const inner = 2 * step + strip;
  layout.annotations.forEach((heading, place) => {
    const top = 1 - (place * step) / inner;
    const suffix = place ? String(place + 1) : "";
    Object.assign(heading, { x: 0, y: top, text: layout.meta.headings[place] });
    layout[`xaxis${suffix}`].domain = [0, 1];
    layout[`xaxis${suffix}`].anchor = `y${suffix}`;
    layout[`yaxis${suffix}`] = {
      ...layout.yaxis,
      anchor: `x${suffix}`,
      domain: [Math.max(0, top - strip / inner), top],
    };
    Object.assign(data[place], { yaxis: `y${suffix}`, showscale: false });
  });
};

const sumInWords = ({ lengths: { token, position, sum }, normalised, difference }) => {
  const added = say(
    "Mean lengths of the vectors: tokens {token}, positions {position}, their sums {sum}. " +
      "All three share one colour scale; 0.5 % of the numbers lie beyond its ends.",
    {
      token: numeral(token.toFixed(2)),
      position: numeral(position.toFixed(2)),
      sum: numeral(sum.toFixed(2)),
    },
  );
  const read = normalised
    ? say(
        "This model normalises each sum before its first layer reads it; the sums are shown " +
          "as they are before that.",
      )
    : say(
        "The sum is what the first layer reads (largest difference from the recorded " +
          "input: {difference}).",
        { difference: tinyNumber(difference) },
      );
  return `${added} ${read}`;
};
// In the table, each cell has the sum's two parts.
const sums = (_row, _column, values) => {
  const [token, position, sum] = values.map((value) => numeral(value.toFixed(4)));
  return `${token} + ${position} = ${sum}`;
};

// common: what every question to the server holds, null while there is none.
export const Inputs = ({ common }) => {
  const part = usePart();
  const wanted = common && { ...common, position: chosenRow(common.stack) };
  const { answer, asked } = useAnswer(part, "inputs", wanted);
  const title =
    answer &&
    sayWith("One of them: token {place} {token} (choose another in the text)", {
      place: answer.position,
      token: html`<${Token} label=${answer.label} />`,
    });
  const facts = answer && { run: asked.run, stack: asked.stack, place: answer.position };
  return html`<div class="position-inputs" ...${part.attributes(facts)}>
    <p class="input-lengths">${answer && sumInWords(answer)}</p>
    <${Figure} part=${part} name="strips" figure=${answer?.strips} change=${stackOnPhones} numbers=${sums} />
    <h4 class="input-title">${title}</h4>
    <${Figure} part=${part} name="token" figure=${answer?.token} />
  </div>`;
};

// PE(pos + k) from PE(pos).

const shiftSays = ({
  figure,
  fitted,
  k,
  n_pairs: pairs,
  largest_miss: miss,
  relative_miss: relative,
  chance,
}) => {
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
      "Yes: it rotates each pair of dimensions, a sine and a cosine, by an angle of " +
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
    { pairs, relative: percentText(relative, 1), chance: percentText(chance, 1) },
  );
  return `${asks} ${best}`;
};

const options = Object.entries(fieldsOf("positions").shown?.options ?? {}).map(([value, text]) => [
  value,
  say(text),
]);

// common: what every question to the server holds, null while there is none. state: steps, k; and
// shown, how many dimensions are drawn, "" for all.
export const Shift = ({ common, state }) => {
  const part = usePart();
  const wanted = common && { ...common, k: state.steps, shown: Number(state.shown) || null };
  const { answer, asked } = useAnswer(part, "shift", wanted);
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
        say("{name} must be a whole number from {lowest} to {highest}; got {got}", {
          name: "k",
          lowest: 1,
          highest: most,
          got,
        }),
      );
    }
  };
  const facts = answer && { k: asked.k, miss: answer.largest_miss, relative: answer.relative_miss };
  return html`<div class="position-shift" ...${part.attributes(facts)}>
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
