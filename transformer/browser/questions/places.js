// What the answers share: a run's places and tokens, and numbers in words.

import { partsOf as siteOf } from "../attention.js";
import { numeral, say } from "../../web/messages.js";
import { hover } from "../frames.js";
import { largest, softmax } from "../sampling.js";

/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {import("../text.js").Text} Text
 * @typedef {import("../types.d.ts").Intervention} Intervention
 * @typedef {import("../types.d.ts").StackName} StackName
 * @typedef {import("../types.d.ts").Kind} Kind
 * @typedef {{ stack: StackName, kind: Kind, layer: number }} Site
 * @typedef {import("../../views/journey/types").NextToken} NextToken
 */

const TEXT_LIMIT = 64; // tokens on a side

// ---- places ----

export { siteOf };
/** @type {(site: Site) => string} */
export const nameOf = ({ stack, layer, kind }) => `${stack}.${layer}.${kind}`;
// The heads of a site that are switched off in every token.
/** @type {(item: Item, site: string) => number[]} */
export const switchedOff = ({ text, model }, site) => {
  const { stack, layer, kind } = siteOf(site);
  return text.interventions
    .filter((change) => change.type === "ablate")
    .filter(
      (change) =>
        (change.part ?? "z") === "z" &&
        !change.positions &&
        (change.by ?? "zero") === "zero" &&
        change.stack === stack &&
        change.layer === layer &&
        (change.kind ?? "self") === kind,
    )
    .flatMap(({ heads }) => heads ?? [...Array(model.network.config.n_heads).keys()]);
};
/** @type {(item: Item, stack: StackName, kind: Kind) => string[]} */
export const sitesOf = ({ model, facts }, stack, kind) => {
  const own = facts.kinds?.find((each) => each.stack === stack && each.kind === kind);
  const length = own?.n_layers ?? model.network.config.n_layers;
  return Array.from({ length }, (_, layer) => nameOf({ stack, layer, kind }));
};
// A head's weights, (Tq, Tk): 0 of one that is switched off.
/** @type {(item: Item, site: string, head: number) => Float32Array} */
export const weightsRead = (item, site, head) => {
  const weights = item.text.weights(site, head);
  return switchedOff(item, site).includes(head) ? weights.fill(0) : weights;
};
/** @type {(item: Item, site: string) => { queries: string[], keys: string[] }} */
export const labelsAt = (item, site) => {
  const { stack, kind } = siteOf(site);
  return {
    queries: item.labelsOf(stack),
    keys: item.labelsOf(kind === "cross" ? "encoder" : stack),
  };
};

// The scores of a head, (Tq, Tk), before the mask.
/** @type {(text: unknown, site: string, head: number) => Float32Array} */
const recordedScores = (text, site, head) =>
  /** @type {Float32Array} */ (
    /** @type {import("../recorded.js").RecordedText} */ (text).scores(site, head)
  );
/** @type {(item: Item, site: string, head: number) => Float32Array} */
export const scoresOf = ({ text, model }, site, head) => {
  if ("scores" in text) return recordedScores(text, site, head);
  const { scale, cap } = text.attention(site);
  const [queries, keys] = [text.queries(site, head), text.keys(site, head)];
  const size = model.network.headSize;
  const [nQueries, nKeys] = [queries, keys].map(({ length }) => length / size);
  const scores = new Float32Array(nQueries * nKeys);
  for (let query = 0; query < nQueries; query += 1)
    for (let key = 0; key < nKeys; key += 1) {
      let score = 0;
      for (let i = 0; i < size; i += 1) score += queries[query * size + i] * keys[key * size + i];
      score *= scale;
      scores[query * nKeys + key] = cap === null ? score : cap * Math.tanh(score / cap);
    }
  return scores;
};

// ---- tokens ----

/** @type {(item: Pick<Item, "model">, id: number) => Omit<NextToken, "probability">} */
export const named = ({ model: { tokenizer } }, id) => {
  const label = tokenizer.label(id);
  return { id, label, joins: !tokenizer.special.has(id) && !/^[␣⏎⇥]/u.test(label) };
};
/** @type {(item: Pick<Item, "model">, logits: Float32Array, count: number) => NextToken[]} */
export const likeliestOf = (item, logits, count) => {
  const probabilities = softmax(logits);
  const best = largest(probabilities, count);
  return best.map((id) => ({ ...named(item, id), probability: probabilities[id] }));
};
// The place that is asked about, and its row: the first tokens of a long text are not read any more.
/** @type {(item: Item, data: import("./types").AtPosition) => { place: number, row: number }} */
export const placeOf = ({ facts, start }, { position }) => {
  const place = position ?? facts.last_read;
  return { place, row: place - start };
};

// ---- numbers ----

/** @type {<Rows extends { slice: (from: number, to: number) => Rows, length: number }>(flat: Rows, nRows: number) => Rows[]} */
export const rowsOf = (flat, nRows) =>
  Array.from({ length: nRows }, (_, row) =>
    flat.slice((row * flat.length) / nRows, ((row + 1) * flat.length) / nRows),
  );
/** @type {(values: ArrayLike<number>, least?: number) => number} */
export const boundOf = (values, least = 1) => {
  let most = 0;
  for (let at = 0; at < values.length; at += 1)
    if (Math.abs(values[at]) > most) most = Math.abs(values[at]);
  return most || least;
};
// "{query} reads {key}" of each cell, up to TEXT_LIMIT tokens.
/** @type {(queries: string[], keys: string[]) => { text?: string[][] }} */
export const readings = (queries, keys) =>
  Math.max(queries.length, keys.length) > TEXT_LIMIT
    ? {}
    : {
        text: queries.map((query) =>
          keys.map((key) => say("{query} reads {key}", { query: hover(query), key: hover(key) })),
        ),
      };

/** @type {(value: number, digits: number) => string} */
export const fixed = (value, digits) => numeral(value.toFixed(digits));
/** @type {(value: number, digits: number) => string} */
export const signed = (value, digits) => `${value < 0 ? "" : "+"}${fixed(value, digits)}`;
// As Python's format "g".
/** @type {(value: number, digits: number) => string} */
export const short = (value, digits) => {
  const [parts, power] = value.toExponential(digits - 1).split("e");
  const at = Number(power);
  if (at >= -4 && at < digits) return numeral(String(Number(value.toPrecision(digits))));
  const exponent = String(Math.abs(at)).padStart(2, "0");
  return `${numeral(String(Number(parts)))}e${at < 0 ? "-" : "+"}${exponent}`;
};
/** @type {(logits: Float32Array) => Float32Array} */
export const logsOf = (logits) => {
  const most = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const sum = Math.log(logits.reduce((all, logit) => all + Math.exp(logit - most), 0)) + most;
  return logits.map((logit) => logit - sum);
};
