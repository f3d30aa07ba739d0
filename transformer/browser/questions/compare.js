// How two runs differ, as the Python functions of these names (views/runs).

import { say } from "../../web/messages.js";
import { frameOf, hover, label, matrixOf, namedAxis } from "../frames.js";
import { boundOf, labelsAt, readings, rowsOf, switchedOff, weightsRead } from "./places.js";

/** @import { AnswererOfTwo } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {[number | null, number | null, string]} Pair places in A and B, and how they are aligned
 * @typedef {{ a: number, b: number, same: boolean }} Shared
 */

const BAR_PX = 22; // as views/drawing/style.py

// ---- tokens of two texts, aligned as difflib's SequenceMatcher does ----

/** @type {(a: string[], b: string[]) => [number, number, number][]} */
const blocksOf = (a, b) => {
  /** @type {Map<string, number[]>} */
  const places = new Map();
  b.forEach((token, at) => places.set(token, [...(places.get(token) ?? []), at]));
  /** @type {(from: number[], to: number[]) => [number, number, number]} */
  const longest = (from, to) => {
    /** @type {[number, number, number]} */
    let best = [from[0], to[0], 0];
    /** @type {Map<number, number>} of stretches that end at a place of B */
    let lengths = new Map();
    for (let at = from[0]; at < from[1]; at += 1) {
      const next = new Map();
      for (const place of places.get(a[at]) ?? []) {
        if (place < to[0] || place >= to[1]) continue;
        const length = (lengths.get(place - 1) ?? 0) + 1;
        next.set(place, length);
        if (length > best[2]) best = [at - length + 1, place - length + 1, length];
      }
      lengths = next;
    }
    return best;
  };
  /** @type {(from: number[], to: number[]) => [number, number, number][]} */
  const within = (from, to) => {
    const [inA, inB, length] = longest(from, to);
    if (!length) return [];
    const before = within([from[0], inA], [to[0], inB]);
    return [
      ...before,
      [inA, inB, length],
      ...within([inA + length, from[1]], [inB + length, to[1]]),
    ];
  };
  return within([0, a.length], [0, b.length]);
};
/** @type {(a: string[], b: string[]) => Pair[]} */
export const align = (a, b) => {
  /** @type {Pair[]} */
  const pairs = [];
  let [inA, inB] = [0, 0];
  for (const [toA, toB, length] of [...blocksOf(a, b), [a.length, b.length, 0]]) {
    const isReplaced = toA - inA === toB - inB;
    for (let at = inA; at < toA; at += 1)
      pairs.push(isReplaced ? [at, inB + at - inA, "replaced"] : [at, null, "only A"]);
    for (let at = inB; at < toB && !isReplaced; at += 1) pairs.push([null, at, "only B"]);
    for (let at = 0; at < length; at += 1) pairs.push([toA + at, toB + at, "equal"]);
    [inA, inB] = [toA + length, toB + length];
  }
  return pairs;
};
/** @type {(a: string[], b: string[]) => Shared[]} */
const shared = (a, b) =>
  align(a, b).flatMap(([inA, inB, state]) =>
    inA === null || inB === null ? [] : [{ a: inA, b: inB, same: state === "equal" }],
  );
/** @type {(pairs: Shared[], a: string[], b: string[]) => string[]} */
const labelsOf = (pairs, a, b) =>
  pairs.map((pair) => (pair.same ? a[pair.a] : `${a[pair.a]} → ${b[pair.b]}`));
/** @type {(pairs: Shared[]) => number[][]} */
const placesOf = (pairs) => pairs.map((pair) => [pair.a, pair.b]);

// ---- the answers ----

/** @type {AnswererOfTwo<"compare">} */
const compare = ({ facts }, _data, _rows, { facts: other }) => {
  const texts = /** @type {const} */ ([
    ["source", "source_labels"],
    ["text", "labels"],
  ]).map(([name, labels]) => {
    const pairs = align(facts[labels], other[labels]);
    /** @type {Record<string, number>} */
    const counts = {};
    for (const [, , state] of pairs) counts[state] = (counts[state] ?? 0) + 1;
    return { name, a: facts[labels], b: other[labels], pairs, counts };
  });
  return { texts: texts.filter(({ a, b }) => a.length && b.length) };
};

/** @type {AnswererOfTwo<"outcomes">} */
const outcomes = (item, _data, _rows, { facts: other }) => {
  const { facts } = item;
  const pairs = shared(facts.labels, other.labels).filter(
    (pair) => pair.a >= facts.n_prompt && pair.b >= other.n_prompt,
  );
  const [inA, inB] = [facts, other].map(({ probabilities }) => probabilities.length);
  if (!pairs.length)
    return {
      none: say(
        "the two runs generated no tokens at the same position; A generated {n_a}, B {n_b}",
        { n_a: inA, n_b: inB },
      ),
    };
  const both = pairs.map((pair) => [
    facts.probabilities[pair.a - facts.n_prompt],
    other.probabilities[pair.b - other.n_prompt],
  ]);
  const labels = labelsOf(pairs, facts.labels, other.labels);
  const figure = frameOf(item, "outcomes");
  const { layout, data: [bars] } = figure; // prettier-ignore
  const { likelier, rarer } = layout.meta.colours;
  Object.assign(bars, {
    ...{ x: pairs.map((_, at) => at), y: both.map(([a, b]) => b - a) },
    ...{ customdata: both, hovertext: labels.map(hover) },
  });
  bars.marker.color = both.map(([a, b]) => (b > a ? likelier : rarer));
  bars.marker.pattern.shape = pairs.map((pair) => (pair.same ? "" : "/"));
  layout.width = 80 + BAR_PX * labels.length;
  const texts = labels.map((text) => label(text));
  namedAxis(layout.xaxis, texts);
  layout.xaxis.range = [-0.6, labels.length - 0.4];
  Object.assign(layout.meta, { labels, pairs: placesOf(pairs) });
  return { figure };
};

// A head's weights, (Tq, Tk), or the mean of all that are not off.
/** @type {(item: Item, site: string, head: number | "mean") => Float32Array} */
const weightsOf = (item, site, head) => {
  if (head !== "mean") return weightsRead(item, site, head);
  const every = Array.from({ length: item.model.network.config.n_heads }, (_, at) => at);
  const nOn = every.length - new Set(switchedOff(item, site)).size;
  const all = every.map((at) => weightsRead(item, site, at));
  return all[0].map((_, cell) => all.reduce((sum, weights) => sum + weights[cell], 0) / (nOn || 1));
};
/** @type {AnswererOfTwo<"difference">} */
const difference = (
  item,
  { site, head, other_site: there, other_head: otherHead },
  _rows,
  other,
) => {
  const sides = [
    { of: item, site, head },
    { of: other, site: there ?? site, head: otherHead ?? head },
  ].map((side) => ({
    ...labelsAt(side.of, side.site),
    weights: weightsOf(side.of, side.site, side.head),
    allowed: side.of.text.allowed(side.site),
  }));
  const [inA, inB] = sides;
  const [rows, columns] = /** @type {const} */ (["queries", "keys"]).map((name) =>
    shared(inA[name], inB[name]),
  );
  for (const [pairs, name] of /** @type {const} */ ([
    [rows, "queries"],
    [columns, "keys"],
  ]))
    if (!pairs.some(({ same }) => same))
      return {
        none: say("the two texts have no token in common; tokens in A: {n_a}, in B: {n_b}", {
          n_a: inA[name].length,
          n_b: inB[name].length,
        }),
      };
  const kept = [0, 0];
  const cells = rows.flatMap((row) =>
    columns.map((column) => {
      const places = [row.a * inA.keys.length + column.a, row.b * inB.keys.length + column.b];
      const isAllowed = sides.map(({ allowed }, side) => Boolean(allowed[places[side]]));
      const weights = sides.map((side, at) => (isAllowed[at] ? side.weights[places[at]] : 0));
      weights.forEach((weight, at) => (kept[at] += weight / rows.length));
      return { weights, change: isAllowed.includes(true) ? weights[1] - weights[0] : NaN };
    }),
  );
  const changes = cells.map(({ change }) => change);
  const limit = boundOf(changes.filter((change) => !Number.isNaN(change)));
  const [queries, keys] = [
    labelsOf(rows, inA.queries, inB.queries),
    labelsOf(columns, inA.keys, inB.keys),
  ];
  const figure = matrixOf(frameOf(item, "difference"), queries, keys);
  const customdata = rowsOf(
    cells.map(({ weights }) => weights),
    rows.length,
  );
  const shown = { z: rowsOf(changes, rows.length), zmin: -limit, zmax: limit, customdata };
  Object.assign(figure.data[0], shown, readings(queries, keys));
  const meta = { queries: placesOf(rows), keys: placesOf(columns), limit, kept };
  Object.assign(figure.layout.meta, meta);
  return { figure };
};

export const answers = { compare, outcomes, difference };
