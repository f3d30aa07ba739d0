// The positional matrix, token + position, and the map to a later position.

import { fields, followLinks } from "../../web/fields.js";
import { fieldsOf, wholeNumber } from "../../web/declared.js";
import { numeral, percentText, say, sayWith, tinyNumber } from "../../web/messages.js";
import { KindButtons, Select } from "../../web/controls.js";
import { stackOf } from "../../web/sites.js";
import { Figure } from "../../web/figure.js";
import { Section, mounted, useAnswer, useEvent, usePart, trying } from "../../web/part.js";
import { html, useMemo } from "../../web/preact.js";
import { chosenRow, page } from "../../web/store.js";
import { Token } from "../../web/text.js";

/** @import { Figure as PlotlyFigure, PlotlyObject } from "../../web/types" */
/** @import { StackAsked } from "./types" */

const MOST_PX = { table: 300, shift: 460 }; // of a trained matrix one sees the pattern, not the numbers

/** @type {(figure: PlotlyFigure) => void} */
const nearlySquare = ({ layout }) =>
  (layout.height = Math.min(MOST_PX.shift, Math.round(layout.width * 0.95)));
/** @type {(figure: PlotlyFigure) => void} */
const small = ({ layout }) =>
  (layout.height = Math.min(MOST_PX.table, Math.round(layout.width * 0.95)));

// Token + position = input.

const NARROW_PX = 640;

// Titles are in the page; on a phone the three strips are stacked.
/** @type {(figure: PlotlyFigure) => void} */
const stackOnPhones = ({ layout, data }) => {
  if (page.projector)
    for (const heading of layout.annotations) heading.text = heading.text.split(",")[0];
  if (layout.width >= NARROW_PX) return;
  const strip = layout.height - layout.margin.t - layout.margin.b;
  const step = strip + layout.margin.b + layout.margin.t;
  layout.height = 3 * step;
  layout.margin = { ...layout.margin, l: 90, r: 8 };
  const inner = 2 * step + strip;
  layout.annotations.forEach((/** @type {PlotlyObject} */ heading, /** @type {number} */ place) => {
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

/** @type {(answer: import("./types").Inputs) => string} */
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
/** @type {(row: number, column: number, values: number[]) => string} */
const sums = (_row, _column, values) => {
  const [token, position, sum] = values.map((value) => numeral(value.toFixed(4)));
  return `${token} + ${position} = ${sum}`;
};

/** @param {{ common: StackAsked | null }} props */
const Inputs = ({ common }) => {
  const part = usePart();
  const wanted = common && { ...common, position: chosenRow(common.stack) };
  const { answer, asked } = useAnswer(part, "inputs", wanted);
  const title =
    answer &&
    sayWith("One of them: token {place} {token} (choose another in the text)", {
      place: answer.position,
      token: html`<${Token} label=${answer.label} />`,
    });
  const facts = answer && { run: asked?.run, stack: asked?.stack, place: answer.position };
  return html`<div class="position-inputs" ...${part.attributes(facts)}>
    <p class="input-lengths">${answer && sumInWords(answer)}</p>
    <${Figure} part=${part} name="strips" figure=${answer?.strips} change=${stackOnPhones} numbers=${sums} />
    <h4 class="input-title">${title}</h4>
    <${Figure} part=${part} name="token" figure=${answer?.token} />
  </div>`;
};

// PE(pos + k) from PE(pos).

/** @type {(answer: import("./types").Shift) => string} */
const shiftSays = (answer) => {
  const asks = say(
    "Is there one matrix that takes the vector of any position to that of the position " +
      "{k} further on?",
    { k: answer.k ?? "k" },
  );
  if (answer.figure === null) {
    const none = say(
      "There are no more positions than dimensions: a matrix that moves each by k would " +
        "fit anything, so none is shown.",
    );
    return `${asks} ${none}`;
  }
  const shift = /** @type {import("./types").FittedShift} */ (answer);
  const { fitted, n_pairs: pairs, largest_miss: miss, relative_miss: relative, chance } = shift;
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
    "Nothing in how these vectors are made promises one. The best one (least squares over {pairs} " +
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

// Fields: steps, k; and shown, how many dimensions are drawn, "" for all.
/** @param {{ common: StackAsked | null }} props */
const Shift = ({ common }) => {
  const part = usePart();
  const wanted = common && { ...common, k: fields.steps, shown: Number(fields.shown) || null };
  const { answer, asked } = useAnswer(part, "shift", wanted);
  // Another network may know fewer positions.
  useEvent("run", ({ d_model: size, stacks }) => {
    const { d_model: former, stacks: others } = page.before?.run ?? {};
    if (size !== former || String(stacks) !== String(others)) fields.steps = 1;
  });
  const most = answer?.largest ?? NaN; // until it is known, no number is one of these
  const step = trying((/** @type {import("../../web/types").ChangeOf} */ { target: { value } }) => {
    const k = Number(value);
    if (!(Number.isInteger(k) && k >= 1 && k <= most)) {
      const got = value || say("(nothing)");
      throw new Error(
        say("{name} must be a whole number from {lowest} to {highest}; got {got}", {
          name: "k",
          lowest: 1,
          highest: most,
          got,
        }),
      );
    }
    fields.steps = k;
  });
  const { k: steps } = asked ?? {};
  const facts = answer && { k: steps, miss: answer.largest_miss, relative: answer.relative_miss };
  return html`<div class="position-shift" ...${part.attributes(facts)}>
    <div class="positions-head">
      <label>${say("Steps k")} <input class="steps-k" type="number" min="1" max=${answer?.largest} step="1"
        value=${fields.steps} disabled=${most < 1} onChange=${step} /></label>
      <label>${say("Shown")} <${Select} class="steps-shown" options=${options} value=${fields.shown}
        set=${(/** @type {string} */ shown) => (fields.shown = shown)} /></label>
    </div>
    <div class="two">
      <div><${Figure} part=${part} name="shift" figure=${answer?.figure} change=${nearlySquare}
        hidden=${answer?.figure === null} /></div>
      <p class="shift-says" role="status">${answer && shiftSays(answer)}</p>
    </div>
  </div>`;
};

const MAX_DIMENSIONS = 12; // dimensions of which a visitor sees curves

// "0, 1, 8" as [0, 1, 8]; size: how many dimensions there are. Throws an Error with a sentence.
/** @type {(text: string, size: number) => number[]} */
const parseDimensions = (text, size) => {
  const numbers = text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(Number);
  /** @type {(n: number) => boolean} */
  const fits = (n) => Number.isInteger(n) && n >= 0 && n < size;
  const different = new Set(numbers).size === numbers.length;
  if (numbers.length >= 1 && numbers.length <= MAX_DIMENSIONS && different && numbers.every(fits)) {
    return numbers;
  }
  const got = text.trim().slice(0, 40) || say("(nothing)");
  throw new Error(
    say("dimensions must be 1 to {most} different whole numbers from 0 to {last}; got {got}", {
      most: MAX_DIMENSIONS,
      last: size - 1,
      got,
    }),
  );
};

const MAX_STEPS = 4096;
const FIRST_DIMENSIONS = String(fieldsOf("positions").dimensions?.default);

// Of a link: stack, by its place among the network's; dimensions, of those that there are at first what a small
// network has.
const follow = () => {
  if (!page.run) return;
  const { stacks, d_model: size } = page.run;
  const dimensions = String(fields.dimensions);
  wholeNumber("stack", fields.stack, 0, stacks.length - 1);
  wholeNumber("steps", fields.steps, 1, MAX_STEPS);
  if (dimensions !== FIRST_DIMENSIONS) parseDimensions(dimensions, size);
};

// place: of the stack in the run.
/** @param {{ common: StackAsked | null, place: number }} props */
const Matrix = ({ common, place }) => {
  const part = usePart();
  const { stacks = [] } = page.run ?? {};
  const ask = (/** @type {string} */ which) =>
    useAnswer(part, "positions", common && { ...common, which });
  const [matrix, similarity] = [ask("matrix"), ask("similarity")];
  const { used } = matrix.answer?.figure?.layout.meta ?? {};
  const facts = { run: matrix.asked?.run, stack: matrix.asked?.stack };
  /** @param {string} name @param {{ answer: import("./types").MatrixPicture | null }} found @param {(figure: PlotlyFigure) => void} change */
  const picture = (name, { answer }, change) =>
    html`<${Figure} part=${part} name=${name} figure=${answer?.figure} change=${change} />`;
  return html`<div class="positions" ...${part.attributes(facts)}>
    <p>${sayWith("By itself, attention weighs tokens by what they are, not by where they stand; a causal mask reveals something about their order. So each position has a vector of its own, one row of this matrix, which is added to the token's vector before the first layer. The rows that this run used ({used}, from the first on) are marked in each picture.", { used: html`<b class="used">${used}</b>` })}</p>
    <div class="positions-head">
      <${KindButtons} name=${say("Stack")} kinds=${stacks} wordsOf=${stackOf} chosen=${place}
        choose=${(/** @type {number} */ index) => (fields.stack = index)} />
    </div>
    <div class="two">
      <section>
        <h3>${say("The matrix: position by dimension")}</h3>
        ${picture("matrix", matrix, small)}
      </section>
      <section>
        <h3>${say("Similarity of every two positions (cosine)")}</h3>
        ${picture("similarity", similarity, small)}
      </section>
    </div>
  </div>`;
};

/** @param {{ common: StackAsked | null }} props */
const Curves = ({ common }) => {
  const part = usePart();
  const { d_model: size = 0 } = page.run ?? {};
  const inSize = fields.dimensions.filter((/** @type {number} */ dimension) => dimension < size);
  const dimensions = inSize.length ? inSize : [0];
  const wanted = common && { ...common, which: "curves", dimensions };
  const { answer, asked } = useAnswer(part, "positions", wanted);
  const choose = trying((/** @type {import("../../web/types").ChangeOf} */ { target }) => {
    fields.dimensions = parseDimensions(target.value, size);
  });
  return html`<div class="position-curves" ...${part.attributes({ run: asked?.run, dimensions })}>
    <div class="positions-head">
      <label>${say("Dimensions")} <input class="dimensions" type="text" inputmode="numeric"
        spellcheck="false" value=${dimensions.join(", ")} onChange=${choose} /></label>
      <span class="dimensions-note">${say("0 to {last}, at most 12 of them", { last: size - 1 })}</span>
    </div>
    <${Figure} part=${part} name="curves" figure=${answer?.figure} />
  </div>`;
};

const Positions = () => {
  useMemo(() => followLinks("positions", follow), []);
  const { run } = page;
  const isHidden = run ? !run.adds_positions : false; // see rotary.js and bias.js
  const isTold = !isHidden || run.is_rotary || run.biases_scores;
  const place = run ? Math.min(fields.stack, run.stacks.length - 1) : 0;
  const common = run && !isHidden ? { run: run.run, stack: run.stacks[place] } : null;
  if (!isTold)
    return html`<p class="positions-lab">${say("This network is not told where a token stands: nothing is added, rotated or biased by position.")}</p>`;
  return html`<div class="positions-lab" hidden=${isHidden}>
    <${Matrix} common=${common} place=${place} />
    <${Section} name="inputs" title=${say("What is added to which token")}><${Inputs} common=${common} /><//>
    <${Section} name="curves" title=${say("Single dimensions as curves over the positions")}><${Curves} common=${common} /><//>
    <${Section} name="shift" title=${say("From one position to another")}><${Shift} common=${common} /><//>
  </div>`;
};
export const mount = mounted(Positions);
