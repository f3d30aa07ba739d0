// The tree of a beam search, as views/prediction/beams.py.

import { say } from "../../web/messages.js";
import { fitted, frameOf, hover } from "../frames.js";
import { requestOf } from "../requests.js";
import { fixed } from "./places.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {import("../../web/types").PlotlyObject} PlotlyObject
 */

const [STEP_PX, RANK_PX, LEAST_TREE_PX] = [84, 40, 480];
const STATES = ["alive", "ended", "cut"];

// The search of a run; one that was made elsewhere is searched again.
/** @type {(item: Item) => Promise<import("../types.d.ts").Search>} */
const searchOf = async (item) => {
  item.search ??= (await item.model.generate(requestOf(item.facts.request).request)).search;
  return /** @type {import("../types.d.ts").Search} */ (item.search);
};
/** @type {Answerer<"beams">} */
const beams = async (item) => {
  const { tokenizer } = item.model;
  const { hypotheses, steps } = await searchOf(item);
  const [best] = hypotheses;
  /** @type {number[]} the best hypothesis' place in each step */
  const path = [];
  best.ids.forEach((id, step) =>
    path.push(
      steps[step].findIndex(
        ({ parent, token }) => parent === (path[step - 1] ?? -1) && token === id,
      ),
    ),
  );
  const nodes = steps.flatMap((extensions, step) =>
    extensions.map(({ token, parent, score, state }, rank) => ({
      ...{ step, rank, label: tokenizer.label(token), parent, score, state },
      best: path[step] === rank,
    })),
  );
  const figure = frameOf(item, "beams");
  const { layout, data: [toCut, toKept, toBest, root, ...marks] } = figure; // prettier-ignore
  /** @typedef {typeof nodes[number]} Node */
  /** @type {(trace: PlotlyObject, those: Node[]) => PlotlyObject} */
  const lines = (trace, those) => ({
    ...trace,
    x: those.flatMap(({ step }) => [step - 1, step, null]),
    y: those.flatMap(({ parent, rank }) => [Math.max(parent, 0), rank, null]),
  });
  const isLast = (/** @type {Node} */ { state, step }) =>
    state === "alive" && step === steps.length - 1;
  /** @type {(node: Node, word: string) => string} */
  const hoverOf = (node, word) => {
    const { step, rank, score, label: named } = node;
    const words = isLast(node) ? say("not ended when the search stopped") : word;
    const said = [
      hover(named),
      say("step {step}, rank {rank}: {words}", { step, rank, words }),
      say("sum of log-probabilities {score}", { score: fixed(score, 4) }),
    ];
    if (node.best && step === best.ids.length - 1)
      said.push(
        say("the best hypothesis: {normalised} per length", {
          normalised: fixed(best.normalised, 4),
        }),
      );
    return said.join("<br>");
  };
  const ofStates = STATES.flatMap((state, at) => {
    const those = nodes.filter((node) => node.state === state);
    if (!those.length) return [];
    const { marker, ...mark } = marks[at];
    const texts = those.map((node) => [fitted(node.label, STEP_PX - 6)[0], node.best]);
    return {
      ...{ ...mark, x: those.map(({ step }) => step), y: those.map(({ rank }) => rank) },
      text: texts.map(([text, isBest]) => (isBest ? `<b>${text}</b>` : text)),
      marker: { ...marker, size: those.map((node) => (node.best ? 14 : 10)) },
      customdata: those.map((node) => hoverOf(node, mark.name)),
    };
  });
  figure.data = [
    lines(toCut, nodes.filter((node) => node.state === "cut" && !node.best)),
    lines(toKept, nodes.filter((node) => node.state !== "cut" && !node.best)),
    lines(toBest, nodes.filter((node) => node.best)),
    { ...root, x: [-1], y: [0], text: ["start"] },
    ...ofStates,
  ]; // prettier-ignore
  const [nSteps, nRanks] = [steps.length, 1 + Math.max(0, ...nodes.map(({ rank }) => rank))];
  const { l, r, t, b } = layout.margin;
  const places = (/** @type {number} */ n) => Array.from({ length: n }, (_, at) => at);
  layout.width = Math.max(LEAST_TREE_PX, l + STEP_PX * (nSteps + 1) + r);
  layout.height = t + RANK_PX * (nRanks + 1) + b;
  Object.assign(layout.xaxis, { range: [-1.5, nSteps - 0.5], tickvals: places(nSteps) });
  Object.assign(layout.yaxis, { range: [nRanks - 0.2, -0.8], tickvals: places(nRanks) });
  layout.meta.nodes = nodes;
  return { figure };
};

export const answers = { beams };
