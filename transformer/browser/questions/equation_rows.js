// The numbers beside a formula: of a head, of its layer and of positions, at one token, as views/model/layer_topics.py and
// position_topic.py.

import { say } from "../../web/messages.js";
import { rangeOf } from "../attention.js";
import { largest } from "../sampling.js";
import { labelsAt, rowsOf, scoresOf, siteOf } from "./places.js";

/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {import("../types.d.ts").Placement} Placement
 * @typedef {import("../types.d.ts").AttentionPart} AttentionPart
 * @typedef {import("../types.d.ts").Norm} Norm
 * @typedef {import("./types").TopicOutline} TopicOutline
 * @typedef {{ stream: Float32Array, added: Float32Array, out: Float32Array, norm_of: Float32Array, normalised: Float32Array, norm: Norm | null }} SublayerRows
 * @typedef {Partial<Record<"read" | "wide" | "inner" | "made", Float32Array>> & { gate?: Float32Array | null }} Fed
 * @typedef {[number, number | string][]} Row numbers by their places
 * @typedef {Record<string, ArrayLike<number> | number | string | Row | null | undefined>} PartNumbers of each part the row that is shown
 * @typedef {{ numbers?: PartNumbers, shown?: Record<string, number[]>, agrees?: boolean, then?: string[], outline?: TopicOutline }} Filling
 *   shown: the places that are shown of an axis; then: sentences on what is chosen; outline: in place of the topic's own
 * @typedef {{ item: Item, site: string, head: number, query: number, position?: number | null }} Chosen
 */

export const FIRST = 6; // numbers of a row that are shown
const LOWEST = -(2 - 2 ** -23) * 2 ** 127; // float32
const EXACT = 1e-4; // of the largest number, as analysis/layer_at_position.py
const WEIGHTS_EXACT = 1e-5;

/** @type {(a: ArrayLike<number>, b: ArrayLike<number>) => number} */
const apart = (a, b) =>
  Array.from(a).reduce((most, x, at) => Math.max(most, Math.abs(x - b[at])), 0);
/** @type {(from: number, to: number) => number[]} */
const range = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, at) => from + at);

// ---- one head and one query ----

/** @type {(chosen: Chosen) => { scores: Float32Array, weights: Float32Array, allowed: Uint8Array }} */
const rowOf = ({ item, site, head, query }) => {
  const { keys } = labelsAt(item, site);
  const [from, to] = [query * keys.length, (query + 1) * keys.length];
  return {
    scores: scoresOf(item, site, head).subarray(from, to),
    weights: item.text.weightsAt(site, head, query),
    allowed: item.text.allowed(site).subarray(from, to),
  };
};

/** @type {(chosen: Chosen) => Filling} */
export const attention = (chosen) => {
  const { item, site, head, query } = chosen;
  const { text, model } = item;
  const { scoreSize, headSize: size } = model.network;
  const { scores, weights, allowed } = rowOf(chosen);
  const order = largest(weights, FIRST);
  const [best] = order;
  const read = order.filter((key) => allowed[key]);
  const values = rowsOf(text.values(site, head), weights.length);
  const output = Float64Array.from({ length: size }, (_, at) =>
    weights.reduce((sum, weight, key) => sum + weight * values[key][at], 0),
  );
  const { scale, patterns } = text.attention(site);
  return {
    numbers: {
      ...{ q: text.queries(site, head).subarray(query * size, (query + 1) * size) },
      ...{ k: rowsOf(text.keys(site, head), weights.length)[best], root: Math.sqrt(scoreSize) },
      ...{ scores, weights, v: values[best], output },
    },
    shown: { Tk: (read.length ? read : order).sort((a, b) => a - b) },
    agrees: !patterns.length && Math.abs(scale - scoreSize ** -0.5) < WEIGHTS_EXACT,
  };
};

/** @type {(chosen: Chosen, outline: TopicOutline) => Filling} */
export const mask = (chosen, { formula }) => {
  const { item, site, query } = chosen;
  const { scores, allowed } = rowOf(chosen);
  const [n, total] = [allowed.reduce((sum, may) => sum + may, 0), allowed.length];
  const then = [say("The chosen token may read {n} of {total} keys here.", { n, total })];
  if (!formula.length) return { then, agrees: n === total };
  const [from, to] = rangeOf({ ...item.text.attention(site), allowed: null }, query);
  // some keys on both sides of the query, where the mask begins to hide
  const start = Math.max(0, Math.min(query - FIRST / 2 + 1, total - FIRST));
  return {
    then,
    numbers: {
      ...{ scores, fill: LOWEST },
      mask: Array.from(allowed, (may, key) => [key, may ? "True" : "False"]),
      filled: scores.map((score, key) => (allowed[key] ? score : -Infinity)),
    },
    shown: { Tk: range(start, Math.min(total, start + FIRST)) },
    agrees: allowed.every((may, key) => Boolean(may) === (key >= from && key < to)),
  };
};

// ---- a layer at a token, as analysis/layer_at_position.py: from its recorded input on, with the heads' recorded weights ----

/** @type {(chosen: Chosen) => { parts: { self: SublayerRows, cross?: SublayerRows }, fed: Fed, agrees: boolean }} */
const layerOf = ({ item, site, query }) => {
  const { text, model } = item;
  const { network } = model;
  const { stack, layer: at } = siteOf(site);
  const { d_model: width, residual_scale: scale, parallel, n_heads: nHeads } = network.config;
  const layer = network.stacks[stack].layers[at];
  /** @type {(norm: Norm | null, x: Float32Array) => Float32Array} */
  const normed = (norm, x) => {
    const to = new Float32Array(width);
    network.normalise(norm, x, 1, to);
    return to;
  };
  /** @type {(kind: "self" | "cross") => Float32Array} what the heads of an attention add */
  const attended = (kind) => {
    const attentionPart = /** @type {AttentionPart} */ (layer[kind]);
    const place = `${stack}.${at}.${kind}`;
    const z = range(0, nHeads).flatMap((head) => {
      const weights = text.weightsAt(place, head, query);
      const values = rowsOf(text.values(place, head), weights.length);
      return range(0, network.headSize).map((i) =>
        weights.reduce((sum, weight, key) => sum + weight * values[key][i], 0),
      );
    });
    return text.mapped(attentionPart.output, Float32Array.from(z), 1);
  };
  /** @type {Fed} */
  let fed = {};
  const forward = (/** @type {Float32Array} */ read) => {
    const wide = text.mapped(layer.expand, read, 1);
    const gate = layer.gate && text.mapped(layer.gate, read, 1);
    const activated = (gate ?? wide).slice();
    network.activate(activated, activated.length);
    const inner = gate ? activated.map((x, i) => x * wide[i]) : activated;
    const made = text.mapped(layer.contract, inner, 1);
    fed = { read, wide, gate, inner, made };
    return made;
  };
  /** @type {(norms: Placement, x: Float32Array, work: (read: Float32Array) => Float32Array) => SublayerRows} */
  const passed = (norms, x, work) => {
    const read = normed(norms.input, x);
    const made = work(read);
    const added = normed(norms.output, made).map((value) => value * scale);
    const sum = x.map((value, i) => value + added[i]);
    const out = normed(norms.sum, sum);
    const [norm_of, normalised] = norms.sum
      ? [sum, out]
      : norms.output && !norms.input
        ? [made, added]
        : [x, read];
    const norm = norms.input ?? norms.sum ?? norms.output;
    return { stream: x, added, out, norm_of, normalised, norm };
  };
  const start = text.streamAt(at, query, stack).slice();
  /** @type {{ self: SublayerRows, cross?: SublayerRows }} */
  const parts = { self: passed(layer.selfNorms, start, () => attended("self")) };
  const after = (/** @type {SublayerRows} */ part) => (parallel ? start : part.out);
  if (layer.cross)
    parts.cross = passed(/** @type {Placement} */ (layer.crossNorms), after(parts.self), () =>
      attended("cross"),
    );
  const last = passed(layer.forwardNorms, after(parts.cross ?? parts.self), forward);
  const all = [...Object.values(parts), last];
  const out = parallel
    ? start.map((x, i) => all.reduce((sum, { added }) => sum + added[i], x))
    : last.out;
  if (parallel) for (const part of all) part.out = out;
  const expected = text.streamAt(at + 1, query, stack);
  const room = EXACT * (1 + expected.reduce((most, x) => Math.max(most, Math.abs(x)), 0));
  return { parts, fed, agrees: apart(out, expected) <= room };
};

/** @type {(chosen: Chosen) => Filling} */
export const norm = (chosen) => {
  const { parts, agrees } = layerOf(chosen);
  const {
    stream,
    added,
    out,
    norm_of,
    normalised,
    norm: made,
  } = /** @type {SublayerRows} */ (parts[siteOf(chosen.site).kind]);
  const mean = (/** @type {ArrayLike<number>} */ all) =>
    Array.from(all).reduce((sum, x) => sum + x, 0) / all.length;
  const middle = mean(norm_of);
  const squares = (/** @type {number} */ from) =>
    mean(Float64Array.from(norm_of, (x) => (x - from) ** 2));
  return {
    numbers: {
      ...{ stream, added, out, norm_of, normalised, mean: middle },
      ...{ variance: squares(middle), square: squares(0), gain: made?.gain, shift: made?.shift },
    },
    agrees,
  };
};
/** @type {(chosen: Chosen) => Filling} */
export const feedForward = (chosen) => {
  const { fed, agrees } = layerOf(chosen);
  return { numbers: fed, agrees };
};

// ---- positions ----

/** @type {(chosen: Chosen) => Filling} */
export const positions = ({ item, site, head, query }) => {
  const { text, model } = item;
  const { network } = model;
  const { stack: name, layer } = siteOf(site);
  const stack = network.stacks[name];
  const p = String(query);
  if (stack.positions) {
    const width = network.config.d_model;
    const ids = name === item.facts.stack ? text.ids : text.source;
    const token = network.embedded(stack, ids[query]);
    const own = stack.positions(query);
    const position = text.changes.has("no-positions")
      ? own.map(() => 0)
      : stack.positions(text.positionOf(name, query));
    const angle = Float64Array.from(
      { length: width / 2 },
      (_, pair) => query * Math.exp((-Math.log(10_000) * 2 * pair) / width),
    );
    const sum = token.map((x, i) => x + position[i]);
    return {
      numbers: { p, angle, position, token, sum },
      agrees: apart(own, position) <= WEIGHTS_EXACT,
    };
  }
  const isBroken = ["no-rotation", "shuffled-positions"].some((what) => text.changes.has(what));
  if (!stack.layers[layer].rotates || siteOf(site).kind === "cross") return {};
  if (isBroken) return { outline: { formula: [], code: [], tensors: [] } };
  const theta = network._rotations;
  const longer = Number(network.config.rotary_multiplier);
  const size = network.headSize;
  const after = Float64Array.from(
    text.queries(site, head).subarray(query * size, (query + 1) * size),
  );
  const before = after.slice();
  const half = theta.length;
  const waves = (/** @type {(angle: number) => number} */ of) =>
    Float64Array.from(theta, (radians) => longer * of(radians * query));
  const [cos, sin] = [waves(Math.cos), waves(Math.sin)];
  theta.forEach((_, pair) => {
    const [first, second] = [after[pair], after[pair + half]];
    before[pair] = (first * cos[pair] + second * sin[pair]) / longer ** 2;
    before[pair + half] = (second * cos[pair] - first * sin[pair]) / longer ** 2;
  });
  const pairs = range(0, Math.min(FIRST / 2, half));
  return {
    numbers: { p, theta, cos, sin, before, after },
    shown: { D: [...pairs, ...pairs.map((pair) => half + pair)] },
  };
};
