// PE(pos + k) from PE(pos): how a position moves.

import { ask } from "../../ui/static/ask.js";
import { numeral, say } from "../../ui/static/messages.js";
import { tinyNumber } from "../../ui/static/numbers.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { on, page, showProblem } from "../../web/store.js";
import { fitMargins, heightOf } from "./position_pictures.js";

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

// common(): what every question to the server holds; state.steps: k. Returns refresh().
export const mountShift = (find, server, common, state) => {
  const root = find(".position-shift");
  const steps = find(".steps-k");
  const box = (name) => find(`[data-picture=${name}]`);
  const draw = async (current) => {
    if (!page.run || page.run.turns) return;
    const shown = Number(find(".steps-shown").value) || null;
    const answer = await ask(server.shift, { ...common(), k: state.steps, shown });
    if (!current()) return;
    box("shift").hidden = answer.figure === null;
    steps.max = answer.largest;
    steps.disabled = answer.largest < 1;
    find(".shift-says").textContent = shiftSays(answer);
    if (answer.figure) {
      await drawFigure(box("shift"), answer.figure, {
        height: heightOf("shift", box("shift")),
        change: fitMargins,
      });
    }
    Object.assign(root.dataset, {
      k: state.steps,
      miss: answer.largest_miss,
      relative: answer.relative_miss,
    });
  };
  let model = "";
  on("run", () => {
    const next = `${page.run.d_model} ${page.run.stacks}`;
    if (next !== model) state.steps = steps.value = 1; // another model may know fewer positions
    model = next;
  });
  steps.addEventListener("change", () => {
    const [k, most] = [Number(steps.value), Number(steps.max)];
    if (!Number.isInteger(k) || k < 1 || k > most) {
      showProblem(
        say("k must be a whole number from 1 to {most}; got {value}", {
          most,
          value: steps.value || say("nothing"),
        }),
      );
      return;
    }
    state.steps = k;
    refresh();
  });
  find(".steps-shown").addEventListener("change", () => refresh());
  const refresh = redrawWhen(root, ["run"], draw);
  return refresh;
};
