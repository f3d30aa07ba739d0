// What a feed-forward does at one token, and its neurons there, as analysis/feed_forward.py.

import { along, directionOf } from "../contributions.js";
import { neuronsOf as neuronsIn } from "../feed_forward.js";
import { largest } from "../sampling.js";
import { changedLogits, textTo, writtenAfter } from "./journey.js";
import { likeliestOf, placeOf } from "./places.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {import("../types.d.ts").Intervention} Intervention
 */

const [N_NEURONS, N_WITHOUT, N_WRITTEN, MAX_SKIPPED] = [5, 5, 3, 100];

// Labels of the tokens whose logits a vector in the stream raises most, of those that people can read.
/** @type {(item: Item, vector: Float32Array) => string[]} */
const writtenBy = ({ model: { network, tokenizer } }, vector) => {
  const { norm } = network.last;
  const mean = network.isRms ? 0 : vector.reduce((sum, x) => sum + x, 0) / vector.length;
  const rest = norm ? vector.map((x, i) => (x - mean) * norm.gain[i]) : vector;
  const logits = network.predict(rest, 1, null);
  const bias = network.head.bias && network.kernel.floats(network.head.bias, logits.length);
  if (bias) logits.forEach((x, i) => (logits[i] = x - network.config.logit_scale * bias[i]));
  return largest(logits, N_WRITTEN + MAX_SKIPPED)
    .filter((id) => !tokenizer.special.has(id))
    .map((id) => tokenizer.label(id))
    .filter((label) => !label.includes("‹"))
    .slice(0, N_WRITTEN);
};

// Whether something changes what this feed-forward adds.
/** @type {(change: Intervention, stack: string, layer: number) => boolean} */
const changes = (change, stack, layer) => {
  if (change.type === "break") return change.what === "no-feed-forward";
  if (change.type === "mask" || change.stack !== stack || change.layer !== layer) return false;
  return change.part === "mlp_out" || change.part === "layer";
};

// asked: a neuron that is to be among them.
/** @type {(item: Item, layer: number, row: number, target: number, asked?: number | null) => import("../../views/journey/types").Neuron[]} */
const neuronsOf = (item, layer, row, target, asked) => {
  const { text, model } = item;
  const { network } = model;
  const { d_ff: wide, d_model: width, residual_scale: scale } = network.config;
  const { contract } = network.last.layers[layer];
  const nRead = item.facts.stack === "encoder" ? text.ids.length : row + 1;
  const rows = neuronsIn(text, layer, nRead);
  const here = rows.subarray(row * wide, (row + 1) * wide);
  const line = text.contributions(row, target) && directionOf(text, row, target);
  const adds = line && along(network, contract, line.direction.map((x) => x * scale)); // prettier-ignore
  const weights = network.kernel.numbers(contract.weight, 0, width * wide);
  const vectorOf = (/** @type {number} */ index) =>
    Float32Array.from({ length: width }, (_, at) => here[index] * weights[at * wide + index]);
  const strength = Float32Array.from(here, (activation, index) =>
    adds ? Math.abs(activation * adds[index]) : Math.hypot(...vectorOf(index)),
  );
  const best = [...largest(strength, N_NEURONS)];
  if (asked !== undefined && asked !== null && asked < wide && !best.includes(asked))
    best.push(asked);
  return best.map((index) => ({
    ...{ index, activation: here[index], adds: adds && here[index] * adds[index] },
    activations: Float32Array.from({ length: nRead }, (_, at) => rows[at * wide + index]),
    writes: writtenBy(item, vectorOf(index)),
  }));
};

/** @type {Answerer<"feed_forward">} */
const feedForward = (item, data) => {
  const { stack, layer } = data;
  const { text, facts, model } = item;
  const { place, row } = placeOf(item, data);
  /** @type {Intervention} */
  const off = { type: "ablate", stack, layer, part: "mlp_out" };
  const isThis = (/** @type {Intervention} */ change) =>
    JSON.stringify(change) === JSON.stringify(off);
  const isOff = text.interventions.some(isThis);
  const logits = changedLogits(item, [...text.interventions, off], row);
  const others = text.interventions.filter((change) => !isThis(change));
  const isRead = facts.stack === "encoder";
  const target = data.target ?? largest(text.logitsAt(row), 1)[0];
  const isOwn = stack === model.network.last.name;
  const isAltered = text.interventions.some((change) => changes(change, stack, layer));
  return {
    ...{ logits, likeliest: likeliestOf(item, logits, N_WITHOUT) },
    labels: isRead
      ? []
      : writtenAfter(item, textTo(item, isOff ? others : [...others, off], place, row)),
    n_neurons: model.network.config.d_ff,
    neurons: isOwn && !isAltered ? neuronsOf(item, layer, row, target, data.neuron) : [],
  };
};

// The sentence in which each of some neurons is most active, as views/journey/passages.py.
/** @type {Answerer<"neuron_passages">} */
const neuronPassages = ({ model }, { stack, layer = 0, neurons = [] }) => {
  const stored = model.frames.neurons;
  const recorded = stored?.neurons[`${stack}.${layer}`];
  if (!recorded) return { passages: {}, n_sentences: 0 };
  const { sentences, n_sentences: nSentences } = stored;
  const passageOf = (/** @type {number} */ index) => {
    const [number, start] = [recorded.sentence[index], recorded.start[index]];
    if (number < 0) return null;
    const signs = [...(sentences[number].at(-1) ?? "")]; // as Python counts
    const end = start + recorded.length[index];
    const [before, token, after] = [[0, start], [start, end], [end]].map(([from, to]) =>
      signs.slice(from, to).join(""),
    );
    const [text] = sentences[number];
    return { text, before, token, after, activation: recorded.activation[index] };
  };
  const known = neurons.filter((/** @type {number} */ index) => index in recorded.sentence);
  return {
    passages: Object.fromEntries(known.map((/** @type {number} */ at) => [at, passageOf(at)])),
    n_sentences: nSentences,
  };
};

export const answers = { feed_forward: feedForward, neuron_passages: neuronPassages };
