// The positional matrix, what it is added to, the formula beside it, and how a position moves.

import { ask } from "../../ui/static/ask.js";
import { el, finder } from "../../ui/static/dom.js";
import { ownFields } from "../../ui/static/fields.js";
import { oneOf, wholeNumber } from "../../ui/static/link_text.js";
import { say } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { stackOf } from "../../ui/static/site_words.js";
import { on, page, showProblem } from "../../web/store.js";
import { parseDimensions } from "./position_dimensions.js";
import { mountFormula } from "./position_formula.js";
import { mountInputs } from "./position_inputs.js";
import { fitMargins, heightOf } from "./position_pictures.js";
import { mountShift } from "./position_shift.js";

const AT_FIRST = [0, 1, 8, 32]; // of a small network those that it has

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".positions");
  const input = find(".dimensions");
  const steps = find(".steps-k");
  /** @type {Record<string, any>} */
  const state = { stack: 0, dimensions: AT_FIRST, steps: 1 };
  const lab = find(".positions-lab");
  const show = () => (lab.hidden = !!page.run?.turns); // nothing is added: see rotary.js
  on("run", show);
  show();
  const box = (name) => find(`[data-picture=${name}]`);

  const chosenStack = () => {
    const { stacks } = page.run;
    state.stack = Math.min(state.stack, stacks.length - 1);
    return stacks[state.stack];
  };
  const common = () => ({ run: page.run.run, stack: chosenStack(), dark: page.dark });

  const draw = async (current) => {
    if (!page.run || page.run.turns) return;
    const { run, d_model: size } = page.run;
    state.dimensions = state.dimensions.filter((dimension) => dimension < size);
    if (!state.dimensions.length) state.dimensions = [0];
    if (document.activeElement !== input) input.value = state.dimensions.join(", ");
    const { stack } = common();
    find(".dimensions-note").textContent = say("0 to {last}, at most 12 of them", {
      last: size - 1,
    });
    drawStacks();
    for (const which of ["matrix", "similarity", "curves"]) {
      const answer = await ask(server.positions, {
        ...common(),
        which,
        dimensions: which === "curves" ? state.dimensions : null,
      });
      if (!current()) return;
      const figure = await drawFigure(box(which), answer.figure, {
        height: heightOf(which, box(which)),
        change: fitMargins,
      });
      if (!current()) return;
      find(".used").textContent = `${figure.layout.meta.used}`;
    }
    Object.assign(root.dataset, { run, stack, dimensions: state.dimensions.join(",") });
  };

  // ---- choices ----

  const drawStacks = () => {
    const stacks = page.run.stacks;
    const group = find(".stacks");
    group.hidden = stacks.length < 2;
    group.replaceChildren(
      ...stacks.map((stack, index) => {
        const button = el("button", "kind", stackOf(stack));
        button.setAttribute("role", "radio");
        button.setAttribute("aria-checked", String(index === state.stack));
        button.addEventListener("click", () => {
          state.stack = index;
          for (const again of refreshAll) again();
        });
        return button;
      }),
    );
  };

  input.addEventListener("change", () => {
    try {
      state.dimensions = parseDimensions(input.value, page.run.d_model);
      refresh();
    } catch (error) {
      showProblem(error.message);
    }
  });

  const refresh = redrawWhen(root, ["run"], draw);
  const parts = [mountInputs(find, server, common), mountFormula(find, server, common)];
  const refreshAll = [refresh, ...parts, mountShift(find, server, common, state)];

  ownFields(
    {
      stack: "0",
      dimensions: AT_FIRST.join(),
      steps: "1",
      shown: find(".steps-shown").value,
    },
    () => ({
      stack: state.stack,
      dimensions: state.dimensions.join(),
      steps: state.steps,
      shown: find(".steps-shown").value,
    }),
    ({ stack, dimensions, steps: k, shown }) => {
      if (!page.run) return;
      state.stack = wholeNumber("stack", stack, 0, page.run.stacks.length - 1);
      const asked = dimensions !== AT_FIRST.join();
      state.dimensions = asked ? parseDimensions(dimensions, page.run.d_model) : AT_FIRST;
      state.steps = steps.value = wholeNumber("steps", k, 1, 4096);
      find(".steps-shown").value = oneOf(
        "shown",
        shown,
        [...find(".steps-shown").options].map((one) => one.value),
      );
      for (const again of refreshAll) again();
    },
  );
}
