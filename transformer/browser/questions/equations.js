// A formula of the network, its code, and this run's numbers, as views/model/equations.py: Python wrote all but the numbers
// (views/model/topic.py) into frames.equations.

import { capital, numeral, say, sayN, wholeText } from "../../web/messages.js";
import { filtered, largest, softmax } from "../sampling.js";
import { FIRST, attention, feedForward, mask, norm, positions } from "./equation_rows.js";
import { labelsAt, siteOf } from "./places.js";
import { logitsBefore } from "./prediction.js";

/** @import { Answerer, TopicOutline } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {import("./equation_rows.js").Row} Row
 * @typedef {import("./equation_rows.js").Filling} Filling
 * @typedef {import("./equation_rows.js").Chosen} Chosen
 */

const N_CANDIDATES = 20; // of a step
/** @type {(label: string) => string} */
const quoted = (label) => `\u2068${label}\u2069`;
// ---- sampling ----

/** @type {(chosen: Chosen) => Filling} */
const sampling = ({ item, position }) => {
  const { facts, model } = item;
  const { tokenizer, network } = model;
  const { probabilities: steps, n_prompt: nPrompt, forced_tokens: forced, request } = facts;
  const none = { formula: [], code: [], tensors: [] };
  if (!steps.length) {
    const said = say("This text was only read: nothing was generated, so nothing was sampled.");
    return { outline: none, then: [said] };
  }
  if (facts.hypotheses.length) {
    const said = say(
      "This text was found by a beam search with {n} beams, which draws nothing: it " +
        "keeps the likeliest beginnings, and ranks the texts that it ends with.",
      { n: request.beams },
    );
    return { outline: none, then: [said] };
  }
  const at = (position ?? facts.ids.length) - nPrompt;
  const step = Math.min(Math.max(at, 0), steps.length - 1);
  const place = nPrompt + step;
  const token = facts.ids[place];
  const logits = logitsBefore(item, place);
  const isForced = step < forced.length;
  const isDrawn = facts.seed !== null;
  const { temperature = 1, top_k: topK = 0, top_p: topP = 1 } = isDrawn ? request : {};
  const settings = { temperature, top_k: topK || null, top_p: topP === 1 ? null : topP };
  const drawn = isDrawn ? filtered(logits, settings, network.never) : null;
  const taken = sayN(
    "Step {step}: the network read {n} token, and {token} was taken.",
    "Step {step}: the network read {n} tokens, and {token} was taken.",
    Math.min(place, network.last.maxLen),
    { step, token: quoted(tokenizer.label(token)) },
  );
  const how = () => {
    if (isForced) return say("This token was not sampled: it was put there.");
    if (!drawn)
      return say("This run takes the likeliest token each time (greedy): nothing is drawn.");
    return sayN(
      "Only {n} of {all} tokens could be drawn.",
      "{n} of {all} tokens could be drawn.",
      drawn.reduce((count, share) => count + Number(share > 0), 0),
      { all: wholeText(logits.length) },
    );
  };
  const limits = { top_k: topK || null, top_p: topP === 1 ? null : topP };
  const active = Object.entries(limits).filter(([, limit]) => limit !== null);
  const way = isForced
    ? "forced"
    : drawn
      ? ["sample", ...active.map(([name]) => name)].join(" ")
      : "greedy";
  const outline = model.frames.equations.sampling[way];
  const formula = outline.formula.map((/** @type {string} */ line) =>
    active.reduce(
      (text, [name, limit]) => text.replaceAll(`{${name}}`, numeral(String(limit))),
      line,
    ),
  );
  const ids = largest(logits, N_CANDIDATES).slice(0, FIRST);
  const given = softmax(logits);
  const shareOf = (/** @type {number} */ id) => (drawn ? drawn[id] : Number(id === token));
  /** @type {(of: (id: number) => number) => Row} */
  const row = (of) => ids.map((id) => [id, of(id)]);
  return {
    outline: { ...outline, formula },
    then: [taken, how()],
    numbers: {
      ...{ logits: row((id) => logits[id]), temperature, given: row((id) => given[id]) },
      ...{ scaled: row((id) => logits[id] / temperature), probabilities: row(shareOf) },
      drawn: [[token, shareOf(token)]],
    },
  };
};

// ---- the answer ----

/** @type {Record<string, (chosen: Chosen, outline: TopicOutline) => Filling>} */
const TOPICS = { attention, mask, positions, norm, "feed-forward": feedForward, sampling };

// A tensor's shape and some of its numbers, as views/model/topic.py.
/** @type {(chosen: Chosen, tensor: import("./types").TensorOutline, filling: Filling) => import("../../views/model/types").FormulaTensor} */
const tensorOf = ({ item, site }, { part, name, axes }, { numbers = {}, shown = {} }) => {
  const { network, tokenizer } = item.model;
  const { queries, keys } = labelsAt(item, site);
  const value = numbers[part];
  const flat = typeof value === "number" || typeof value === "string" ? [value] : value;
  const isOfPlaces = Array.isArray(flat) && Array.isArray(flat[0]);
  const row = /** @type {Row} */ (
    isOfPlaces ? flat : Array.from(/** @type {number[]} */ (flat), (one, at) => [at, one])
  );
  const letters = axes.split(" × ");
  /** @type {Record<string, number>} */
  const known = {
    ...{ B: 1, 1: 1, H: network.config.n_heads, T: queries.length, Tq: queries.length },
    ...{ Tk: keys.length, V: network.vocabularyOf(network.last.name) },
  };
  const sizes = letters.map((/** @type {string} */ letter) => known[letter] ?? row.length);
  const last = letters[letters.length - 1];
  /** @type {Record<string, (index: number) => string>} */
  const tokens = {
    Tk: (index) => keys[index],
    V: (index) => tokenizer.label(index),
    B: (index) => tokenizer.label(index),
  };
  const byPlace = new Map(row);
  const cells = (shown[last] ?? row.slice(0, FIRST).map(([index]) => index)).map((index) => {
    const number = /** @type {number | string} */ (byPlace.get(index));
    return {
      label: axes ? String(index) : "",
      value: number === -Infinity ? "−∞" : number,
      ...(tokens[last] && { token: tokens[last](index) }),
    };
  });
  const shape = axes ? `${axes} = ${sizes.join(" × ")}` : "";
  return { part, name, shape, cells, more: sizes[sizes.length - 1] - cells.length };
};

/** @type {Answerer<"equations">} */
const equations = (item, { topic = "attention", site, head, query = null, position = null }) => {
  const { topics, at } = item.model.frames.equations;
  const { queries } = labelsAt(item, site);
  const row = Math.min(query ?? Infinity, queries.length - 1);
  const chosen = { item, site, head, query: row, position };
  const usual = topics[at[site]][topic] ?? { says: [], is_placed: false };
  const filling = TOPICS[topic](chosen, usual);
  const {
    says = [],
    is_placed: isPlaced,
    formula,
    code,
    tensors,
  } = { ...usual, ...filling.outline };
  const { layer } = siteOf(site);
  const token = quoted(queries[row]);
  const place = say("layer {layer}, head {head}, query {query} {token}", {
    ...{ layer, head, query: row, token },
  });
  const warning = say(
    "This run was made with something altered here (see What if?), so that not every number " +
      "follows from the one before it.",
  );
  const { then = [], agrees = true } = filling;
  return {
    ...{ topic, site, head, query: row, formula, code },
    says: [
      ...(isPlaced ? [`${capital(place)}.`] : []),
      ...[...says, ...then, ...(agrees ? [] : [warning])],
    ],
    tensors: tensors.map((tensor) => tensorOf(chosen, tensor, filling)),
  };
};

export const answers = { equations };
