// What a token reads in the shown picture; a token that asks nothing there, by the mean of all heads.

import { say } from "../../ui/static/messages.js";
import { page, tracedFrom } from "../../web/store.js";

const MEANS = { layer: "layer", all: "all" };

// The kind of attention that is shown of a stack's tokens unless another is chosen.
export const usualKind = (stack) => {
  const own = page.run.kinds.filter((one) => one.stack === stack);
  return own.find(({ kind }) => kind === "cross") ?? own[0];
};

// Whose weights are shown: what the numbers are asked for, and their name.
const source = (state) => {
  const { picture, over_heads: over, depth, layer, head } = state;
  const mean = (of) =>
    of === "all"
      ? say("The mean of all heads")
      : say("The mean of the heads of layer {layer}", { layer });
  if (picture === "alignment" && over in MEANS) {
    return { asked: { ...state, picture: "mean", depth: over }, whose: mean(over) };
  }
  if (picture === "mean") return { asked: state, whose: mean(depth) };
  if (picture === "rollout") return { asked: state, whose: say("Attention through the layers") };
  if (picture === "joint") return { asked: state, whose: say("Joint attention") };
  return {
    asked: { ...state, picture: "heatmap" },
    whose: say("Head {layer}·{head}", { layer, head }),
  };
};

// state: the attention view's; pictures: its store; kind(): the kind of attention it shows.
// Returns reading(token), see ui/static/reading.js; null for a token without recorded attention.
export const pictureReader = (state, pictures, kind) => async (token) => {
  const { run } = page.run;
  const asks = token.stack === kind().stack;
  const of = asks ? kind() : usualKind(token.stack);
  const { asked, whose } = source(
    asks ? state : { ...state, picture: "mean", depth: "all", stage: "weights" },
  );
  const written = asks && state.picture === "alignment" && state.by === "written";
  const from = written && token.index > 0 ? token.index - 1 : token.index;
  const row = from - tracedFrom(token.stack);
  if (row < 0 || !of) return null;
  const { numbers } = await pictures.get(asked, of);
  const width = numbers?.labels.key.length;
  if (page.run.run !== run || !width || row >= numbers.labels.query.length) return null;
  const stack = of.kind === "cross" ? "encoder" : of.stack;
  const weights = numbers.weights.subarray(row * width, (row + 1) * width);
  return { stack, whose, from, weights, first: tracedFrom(stack) };
};
