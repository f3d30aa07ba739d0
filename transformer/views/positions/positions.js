// The positional matrix, what it is added to, the formula beside it, and how a position moves.

import { ownFields } from "../../ui/static/fields.js";
import { oneOf, wholeNumber } from "../../ui/static/link_text.js";
import { say, sayWith } from "../../ui/static/messages.js";
import { stackOf } from "../../ui/static/site_words.js";
import { Figure, useMeta } from "../../web/figure.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html, useMemo } from "../../web/preact.js";
import { page, reactive, showProblem } from "../../web/store.js";
import { parseDimensions } from "./position_dimensions.js";
import { Formula } from "./position_formula.js";
import { Inputs } from "./position_inputs.js";
import { low, nearlySquare } from "./position_pictures.js";
import { Shift, SHOWN } from "./position_shift.js";

const AT_FIRST = [0, 1, 8, 32]; // of a small network those that it has

// The fields of a link: stack, by its place among the network's; dimensions; steps and shown, see
// position_shift.js.
const ownState = () => {
  const state = reactive({ stack: 0, dimensions: AT_FIRST, steps: 1, shown: "16" });
  ownFields(
    { stack: "0", dimensions: AT_FIRST.join(), steps: "1", shown: "16" },
    () => ({ ...state, dimensions: state.dimensions.join() }),
    ({ stack, dimensions, steps, shown }) => {
      if (!page.run) return;
      state.stack = wholeNumber("stack", stack, 0, page.run.stacks.length - 1);
      const asked = dimensions !== AT_FIRST.join();
      state.dimensions = asked ? parseDimensions(dimensions, page.run.d_model) : AT_FIRST;
      state.steps = wholeNumber("steps", steps, 1, 4096);
      const known = SHOWN.map(([value]) => value);
      state.shown = oneOf("shown", shown, known);
    },
  );
  return state;
};

const Stacks = ({ stacks, chosen, choose }) => {
  const one = (stack, index) => html`<button type="button" class="kind" role="radio"
    aria-checked=${String(index === chosen)} onClick=${() => choose(index)}>${stackOf(stack)}</button>`;
  return html`<div class="stacks" role="radiogroup" aria-label=${say("Stack")} hidden=${stacks.length < 2}>
    ${stacks.map(one)}
  </div>`;
};

// common: what every question to the server holds, null while there is none.
const Matrix = ({ server, common, state, place }) => {
  const part = usePart();
  const { d_model: size = 0, stacks = [] } = page.run ?? {};
  const known = state.dimensions.filter((one) => one < size);
  const dimensions = known.length ? known : [0];
  const ask = (which) => {
    const wanted = { ...common, which, dimensions: which === "curves" ? dimensions : null };
    return useAnswer(part, server.positions, common && wanted);
  };
  const [matrix, similarity, curves] = [ask("matrix"), ask("similarity"), ask("curves")];
  const { used } = useMeta(matrix.answer?.figure);
  const choose = ({ target }) => {
    try {
      state.dimensions = parseDimensions(target.value, size);
    } catch (error) {
      showProblem(error.message);
    }
  };
  const facts = { run: matrix.asked?.run, stack: matrix.asked?.stack, dimensions };
  const picture = (name, { answer }, change) =>
    html`<${Figure} part=${part} name=${name} figure=${answer?.figure} change=${change} />`;
  return html`<div class="positions" ...${part.shows(facts)}>
    <p>${sayWith("By itself, attention weighs tokens by what they are, not by where they stand; a causal mask gives away something of their order. So each position has a vector of its own, one row of this matrix, which is added to the token's vector before the first layer. This run used the first {used} rows; they are marked in each picture.", { used: html`<b class="used">${used}</b>` })}</p>
    <div class="positions-head">
      <${Stacks} stacks=${stacks} chosen=${place} choose=${(index) => (state.stack = index)} />
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
    <div class="positions-head">
      <h3>${say("Single dimensions as curves over the positions")}</h3>
      <label>${say("Dimensions")} <input class="dimensions" type="text" inputmode="numeric"
        spellcheck="false" value=${dimensions.join(", ")} onChange=${choose} /></label>
      <span class="dimensions-note">${say("0 to {last}, at most 12 of them", { last: size - 1 })}</span>
    </div>
    ${picture("curves", curves, low)}
  </div>`;
};

const Positions = ({ server }) => {
  const state = useMemo(ownState, []);
  const { run, dark } = page;
  const turns = Boolean(run?.turns); // nothing is added: see rotary.js
  const place = run ? Math.min(state.stack, run.stacks.length - 1) : 0;
  const common = run && !turns ? { run: run.run, stack: run.stacks[place], dark } : null;
  const parts = { server, common, state, place };
  return html`<div class="positions-lab" hidden=${turns}>
    <${Matrix} ...${parts} /><${Inputs} ...${parts} /><${Formula} ...${parts} /><${Shift} ...${parts} />
  </div>`;
};
export const mount = mounted(Positions);
