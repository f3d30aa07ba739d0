// The positional matrix, token + position, and the map to a later position.

import { declaredFields } from "../../web/fields.js";
import { wholeNumber, fieldsOf } from "../../web/link_text.js";
import { say, sayWith } from "../../web/messages.js";
import { KindButtons } from "../../web/controls.js";
import { stackOf } from "../../web/sites.js";
import { Figure, useMeta } from "../../web/figure.js";
import { mounted, useAnswer, usePart, Section } from "../../web/part.js";
import { html, useMemo } from "../../web/preact.js";
import { page, showProblem } from "../../web/store.js";
import { Inputs, nearlySquare, Shift } from "./position_parts.js";

const MOST = 12; // dimensions of which a visitor sees curves

// "0, 1, 8" as [0, 1, 8]; size: how many dimensions there are. Throws an Error with a sentence.
/** @type {(text: string, size: number) => number[]} */
export const parseDimensions = (text, size) => {
  const numbers = text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(Number);
  /** @type {(n: number) => boolean} */
  const fits = (n) => Number.isInteger(n) && n >= 0 && n < size;
  const different = new Set(numbers).size === numbers.length;
  if (numbers.length >= 1 && numbers.length <= MOST && different && numbers.every(fits)) {
    return numbers;
  }
  const got = text.trim().slice(0, 40) || say("nothing");
  throw new Error(
    say("dimensions must be 1 to {most} different whole numbers from 0 to {last}; got {got}", {
      most: MOST,
      last: size - 1,
      got,
    }),
  );
};

const MOST_STEPS = 4096;
const AT_FIRST = String(fieldsOf("positions").dimensions?.default);

// The fields of a link: stack, by its place among the network's; dimensions, of those that there are at first
// what a small network has; steps and shown, see position_parts.js.
const ownFields = () =>
  declaredFields("positions", (_, { stack, dimensions, steps }) => {
    if (!page.run) return;
    const { stacks, d_model: size } = page.run;
    wholeNumber("stack", stack, 0, stacks.length - 1);
    wholeNumber("steps", steps, 1, MOST_STEPS);
    if (dimensions !== AT_FIRST) parseDimensions(dimensions, size);
  });

// common: what every question to the server holds, null while there is none.
const Matrix = ({ common, state, place }) => {
  const part = usePart();
  const { stacks = [] } = page.run ?? {};
  const ask = (which) => useAnswer(part, "positions", common && { ...common, which });
  const [matrix, similarity] = [ask("matrix"), ask("similarity")];
  const { used } = useMeta(matrix.answer?.figure);
  const facts = { run: matrix.asked?.run, stack: matrix.asked?.stack };
  const picture = (name, { answer }, change) =>
    html`<${Figure} part=${part} name=${name} figure=${answer?.figure} change=${change} />`;
  return html`<div class="positions" ...${part.attributes(facts)}>
    <p>${sayWith("By itself, attention weighs tokens by what they are, not by where they stand; a causal mask gives away something of their order. So each position has a vector of its own, one row of this matrix, which is added to the token's vector before the first layer. This run used the first {used} rows; they are marked in each picture.", { used: html`<b class="used">${used}</b>` })}</p>
    <div class="positions-head">
      <${KindButtons} name=${say("Stack")} kinds=${stacks} wordsOf=${stackOf} chosen=${place}
        choose=${(index) => (state.stack = index)} />
    </div>
    <div class="two">
      <section>
        <h3>${say("The matrix: position by dimension")}</h3>
        ${picture("matrix", matrix, nearlySquare)}
      </section>
      <section>
        <h3>${say("Similarity of every two positions (cosine)")}</h3>
        ${picture("similarity", similarity, nearlySquare)}
      </section>
    </div>
  </div>`;
};

const Curves = ({ common, state }) => {
  const part = usePart();
  const { d_model: size = 0 } = page.run ?? {};
  const known = state.dimensions.filter((one) => one < size);
  const dimensions = known.length ? known : [0];
  const wanted = common && { ...common, which: "curves", dimensions };
  const { answer, asked } = useAnswer(part, "positions", wanted);
  const choose = ({ target }) => {
    try {
      state.dimensions = parseDimensions(target.value, size);
    } catch (error) {
      showProblem(error.message);
    }
  };
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
  const state = useMemo(ownFields, []);
  const { run } = page;
  const turns = Boolean(run?.turns); // nothing is added: see rotary.js
  const place = run ? Math.min(state.stack, run.stacks.length - 1) : 0;
  const common = run && !turns ? { run: run.run, stack: run.stacks[place] } : null;
  const parts = { common, state, place };
  return html`<div class="positions-lab" hidden=${turns}>
    <${Matrix} ...${parts} />
    <${Section} name="inputs" title=${say("What is added to which token")}
      finding=${say("token + position = what the first layer reads")}><${Inputs} ...${parts} /><//>
    <${Section} name="curves" title=${say("Single dimensions as curves over the positions")}
      finding=${say("each dimension rises and falls at a pace of its own")}><${Curves} ...${parts} /><//>
    <${Section} name="shift" title=${say("From one position to another")}
      finding=${say("is there one matrix that moves every position by k?")}><${Shift} ...${parts} /><//>
  </div>`;
};
export const mount = mounted(Positions);
