// The attention pictures that the server made, kept in the page, and what they are called.

import { ask } from "../../ui/static/ask.js";
import { decodeBytes, decodeFloats } from "../../ui/static/bytes.js";
import { say } from "../../ui/static/messages.js";
import { attentionOf } from "../../ui/static/site_words.js";
import { siteName } from "../../ui/static/sites.js";
import { page } from "../../web/store.js";
import { headName } from "./grid.js";
import { STAGE_NAMES, headNumbers } from "./values.js";

const KEPT = 64; // figures, and numbers
const CELLS_KEPT = 8_000_000; // of numbers: 9 bytes each
const MANY = ["mean", "rollout", "joint"]; // pictures of many heads put together

export const pictureNotes = {
  mean: say("The average of the heads. No single head need look like it."),
  rollout: say(
    "The mean of the heads, mixed half and half with the residual, multiplied " +
      "through the layers. Values and feed-forward layers are left out, so this is " +
      "not what a prediction was made from.",
  ),
  joint: say(
    "The mean of the heads, multiplied through the layers as if there were no " +
      "residual. Values and feed-forward layers are left out too, so this is not " +
      "what a prediction was made from.",
  ),
  lines: say(
    "Faint lines show all queries until you choose a token, in the text or here at the left.",
  ),
};

// The heading of the picture that `state` asks for, of a kind {stack, kind, n_layers}.
export const pictureTitle = (state, { stack, kind, n_layers: count }) => {
  const { layer, head, stage, depth, picture, over_heads: over } = state;
  const name = headName(layer, head);
  const attention = attentionOf({ stack, kind });
  const last = depth === "all" ? count - 1 : layer;
  const layers = last === 0 ? say("layer 0") : say("layers 0 to {last}", { last });
  const whose = {
    head: say("layer {layer}, head {head}", { layer, head }),
    layer: say("layer {layer}, mean of its heads", { layer }),
    all: say("mean of all heads"),
  };
  return {
    heatmap: say("{name}: {attention}, {stage}", { name, attention, stage: STAGE_NAMES[stage] }),
    lines: say("{name}: {attention}, lines", { name, attention }),
    alignment: say("Most-read source token: {whose}", { whose: whose[over] }),
    mean: say("Mean of the heads, {layer}: {attention}", {
      layer: depth === "all" ? say("all layers") : say("layer {layer}", { layer }),
      attention,
    }),
    rollout: say("Attention rollout, {layers}: {attention}", { layers, attention }),
    joint: say("Joint attention, {layers}: {attention}", { layers, attention }),
  }[picture];
};

// Returns get(state, kind), which gives {numbers, figure} (fetched once), foresee() and forget().
// numbers: {scores, weights, allowed, labels: {query, key}}; scores are null for many heads.
export const pictureStore = (server) => {
  let figures = new Map();
  let numbersOf = new Map();
  const underWay = new Map(); // what is asked for now
  const keep = (table, key, value) => {
    if (table.size >= KEPT) table.delete(table.keys().next().value);
    table.set(key, value);
  };

  const keepNumbers = (name, numbers) => {
    const cells = [...numbersOf.values(), numbers].map(({ weights }) => weights.length);
    for (let all = cells.reduce((a, b) => a + b), at = 0; all > CELLS_KEPT; at += 1) {
      if (at === cells.length - 1) break;
      numbersOf.delete(numbersOf.keys().next().value);
      all -= cells[at];
    }
    keep(numbersOf, name, numbers);
  };

  // What to ask: the place whose numbers are shown, the look that its figure has, and of whom.
  const questionOf = (state, { stack, kind }) => {
    const { picture, layer, head, depth, stage, scale, range } = state;
    const look = { scale, range, dark: page.dark };
    const run = page.run.run;
    if (MANY.includes(picture)) {
      const place = { run, which: picture, stack, kind, layer: depth === "all" ? null : layer };
      return { question: server.flow, place, look };
    }
    const place = { run, site: siteName({ stack, layer, kind }), head };
    return { question: server.heatmap, place, look: { ...look, stage } };
  };

  const fetchOnce = async ({ question, place, look }, name, key) => {
    const wanted = { numbers: !numbersOf.has(name), cells: false };
    const answer = await ask(question, { ...place, ...look, ...wanted });
    keep(figures, key, answer.figure);
    const labels = { query: answer.query_labels, key: answer.key_labels };
    const of = { floor: answer.floor, labels };
    if (answer.scores || answer.queries) {
      keepNumbers(name, Object.assign(headNumbers(answer), of));
    } else if (answer.weights) {
      const [weights, allowed] = [decodeFloats(answer.weights), decodeBytes(answer.allowed)];
      keepNumbers(name, { scores: null, weights, allowed, ...of });
    }
  };

  const get = async (state, kind) => {
    const asked = questionOf(state, kind);
    const [name, key] = [asked.place, [asked.place, asked.look]].map((one) => JSON.stringify(one));
    if (!numbersOf.has(name) || !figures.has(key)) {
      const fetching = underWay.get(key) ?? fetchOnce(asked, name, key);
      underWay.set(key, fetching);
      await fetching.finally(() => underWay.delete(key));
    }
    return { numbers: numbersOf.get(name), figure: figures.get(key) };
  };
  // As a finger goes down on a head, a tenth of a second before it is lifted.
  const foresee = (state, kind, layer, head) =>
    get({ ...state, layer, head }, kind).catch(() => {});
  const forget = () => {
    figures = new Map();
    numbersOf = new Map();
  };
  return { get, foresee, forget };
};
