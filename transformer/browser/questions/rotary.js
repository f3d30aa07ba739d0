// Rotary positions: a head's query and key before and after, as views/positions/rotary.py.

import { numeral, say } from "../../web/messages.js";
import { label } from "../frames.js";
import { fixed, labelsAt, scoresOf, siteOf } from "./places.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 */

const [MAX_DISTANCES, ROOM, DEGREES] = [256, 1.15, 180 / Math.PI];

// Radians of each pair at each position, from 0 to 2 π, as of the float32 waves that the network rotates with.
/** @type {(frequencies: Float32Array, nPositions: number) => Float64Array[]} */
const anglesOf = (frequencies, nPositions) =>
  Array.from({ length: nPositions }, (_, position) =>
    Float64Array.from(frequencies, (frequency) => {
      const angle = Math.fround(position * frequency);
      const wave = Math.atan2(Math.fround(Math.sin(angle)), Math.fround(Math.cos(angle)));
      return wave < 0 ? wave + 2 * Math.PI : wave;
    }),
  );
/** @type {(vector: ArrayLike<number>, angles: Float64Array, by: number, way?: number) => Float64Array} */
const rotated = (vector, angles, by, way = 1) => {
  const turned = Float64Array.from(vector);
  const half = angles.length;
  angles.forEach((angle, pair) => {
    const [cosine, sine] = [by * Math.cos(way * angle), by * Math.sin(way * angle)];
    turned[pair] = vector[pair] * cosine - vector[pair + half] * sine;
    turned[pair + half] = vector[pair + half] * cosine + vector[pair] * sine;
  });
  return turned;
};
/** @type {(number: number, digits: number) => string} */
const grouped = (number, digits) => {
  if (!Number.isFinite(number)) return "inf";
  const [whole, ...rest] = number.toFixed(digits).split(".");
  return numeral([whole.replace(/\B(?=(\d{3})+$)/g, ","), ...rest].join("."));
};
// A label outside Plotly, which has escaped ones.
/** @type {(text: string) => string} */
const plain = (text) =>
  label(text).replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

/** @type {Answerer<"rotary">} */
const rotary = (item, { site = "decoder.0.self", head = 0, query = null, pair: wanted = 0 }) => {
  const { text, model } = item;
  const { network, frames } = model;
  const { stack, layer, kind } = siteOf(site);
  const isBroken = ["no-rotation", "shuffled-positions"].some((what) => text.changes.has(what));
  const { layers, maxLen } = network.stacks[stack];
  if (kind === "cross" || isBroken || !layers[layer].rotates) return { is_rotary: false };
  const { queries: labels } = labelsAt(item, site);
  const all = anglesOf(network._rotations, maxLen);
  const nPairs = network._rotations.length;
  const pair = Math.min(wanted, nPairs - 1);
  const at = query ?? labels.length - 1;
  const other = Math.max(at - 1, 0);
  const size = network.headSize;
  const longer = Number(network.config.rotary_multiplier);
  const vectorAt = (/** @type {Float32Array} */ rows, /** @type {number} */ row) =>
    rows.subarray(row * size, (row + 1) * size);
  const [q, k] = [vectorAt(text.queries(site, head), at), vectorAt(text.keys(site, head), other)];
  const before = {
    q: rotated(q, all[at], 1 / longer, -1),
    k: rotated(k, all[other], 1 / longer, -1),
  };
  const { scale, cap } = text.attention(site);
  const scoreAt = (/** @type {number} */ a, /** @type {number} */ b) => {
    const there = rotated(before.k, all[b], longer);
    const product = rotated(before.q, all[a], longer).reduce((sum, x, i) => sum + x * there[i], 0);
    const score = product * scale;
    return cap === null ? score : cap * Math.tanh(score / cap);
  };
  const score = scoresOf(item, site, head)[at * labels.length + other];
  const { angles, pair: plane, distance } = structuredClone(frames.rotary);

  const used = labels.map((_, row) => Float32Array.from(all[row], (angle) => angle * DEGREES));
  Object.assign(angles.data[0], {
    z: used,
    customdata: labels.map((token) => new Array(nPairs).fill(label(token))),
  });
  angles.layout.yaxis.range = [labels.length - 0.5, -0.5];
  Object.assign(angles.layout.meta, { stack, n_pairs: nPairs });

  const both = [pair, pair + nPairs];
  const arrows = [before.q, q, before.k, k];
  const names = [
    say("query of token {place}, before", { place: at }),
    say("query of token {place}, after", { place: at }),
    say("key of token {place}, before", { place: other }),
    say("key of token {place}, after", { place: other }),
  ];
  arrows.forEach((vector, number) => {
    const [x, y] = both.map((feature) => vector[feature]);
    Object.assign(plane.data[number], { x: [0, x], y: [0, y], name: names[number] });
  });
  const most = arrows.map((vector) =>
    Math.max(...both.map((feature) => Math.abs(vector[feature]))),
  );
  const room = ROOM * Math.max(...most) || 1;
  [plane.layout.xaxis, plane.layout.yaxis].forEach((axis, number) => {
    axis.range = [-room, room];
    axis.title.text = say("feature {n}", { n: both[number] });
  });
  const degrees = [at, other].map((position) => all[position][pair] * DEGREES);
  Object.assign(plane.layout.meta, { degrees, pair });

  const distances = Array.from({ length: Math.min(maxLen, MAX_DISTANCES) }, (_, step) => step);
  const last = maxLen - 1;
  let moved = 0;
  for (let step = 0; step <= last - at; step += 1)
    moved = Math.max(moved, Math.abs(scoreAt(at + step, other + step) - score));
  const [line, here] = distance.data;
  Object.assign(line, { x: distances, y: distances.map((step) => scoreAt(step, 0)) });
  Object.assign(here, { x: [at - other], y: [score] });
  Object.assign(distance.layout.meta, { moved, score });

  const period = (/** @type {number} */ one) => (2 * Math.PI) / (all[1]?.[one] || 0);
  return {
    ...{ is_rotary: true, n_pairs: nPairs, angles, pair: plane, distance },
    says: {
      angles: say(
        "tokens in which a pair rotates once: {first} for pair 0, the fastest; {last} for the last",
        {
          first: grouped(period(0), 1),
          last: grouped(period(nPairs - 1), 0),
        },
      ),
      pair: say("query {query} by {query_degrees}°, key {key} by {key_degrees}°", {
        ...{ query: plain(labels[at]), query_degrees: fixed(degrees[0], 1) },
        ...{ key: plain(labels[other]), key_degrees: fixed(degrees[1], 1) },
      }),
      distance: say("moved on together by up to {n} places, the score changes by {change}", {
        n: last - at,
        change: numeral(moved.toExponential(1)),
      }),
    },
  };
};

export const answers = { rotary };
