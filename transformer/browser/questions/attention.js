// The questions about attention, each answered as the Python function of its name (views/attention).

import { flowWeights, packBits } from "../flow.js";
import { largest } from "../sampling.js";
import { columnsOf, frameOf, headFrame, matrixOf } from "../frames.js";
import {
  boundOf,
  labelsAt,
  rowsOf,
  scoresOf,
  sitesOf,
  switchedOff,
  weightsRead,
} from "./places.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {import("../../web/head_numbers.js").SentNumbers} SentNumbers
 */

const N_RANKED = 10;
const MAX_PIXELS = 380_000; // of all small heads together, as analysis/atlas.py
const [MIN_SIDE, MAX_SIDE] = [24, 64];
const TOLERANCE = 1e-5; // as analysis/row_arithmetic.py

// Where a longer side of a small picture puts each cell, as numpy's maximum.reduceat from these starts.
/** @type {(length: number, side: number) => number[]} */
const placesIn = (length, side) => {
  const places = Array.from({ length }, (_, at) => at);
  if (length <= side) return places;
  const starts = Array.from({ length: side }, (_, at) => Math.floor((at * length) / side));
  let place = 0;
  return places.map((at) => {
    while (place + 1 < side && at >= starts[place + 1]) place += 1;
    return place;
  });
};
/** @type {Answerer<"atlas">} */
const atlas = (item, { stack, kind }) => {
  const { n_heads: nHeads, n_layers: nLayers } = item.model.network.config;
  const sites = sitesOf(item, stack, kind);
  const side = Math.max(
    MIN_SIDE,
    Math.min(MAX_SIDE, Math.floor(Math.sqrt(MAX_PIXELS / (nLayers * nHeads)))),
  );
  const { queries, keys } = labelsAt(item, sites[0]);
  const [rows, columns] = [queries, keys].map(({ length }) => placesIn(length, side));
  const [height, width] = [queries, keys].map(({ length }) => Math.min(length, side));
  const pixels = new Uint8Array(nLayers * nHeads * height * width);
  const masked = new Uint8Array(nLayers * height * width).fill(1);
  sites.forEach((site, layer) => {
    const allowed = item.text.allowed(site);
    /** @type {(visit: (cell: number, pixel: number) => void) => void} */
    const each = (visit) => {
      for (let query = 0; query < rows.length; query += 1)
        for (let key = 0; key < columns.length; key += 1) {
          const cell = query * columns.length + key;
          if (allowed[cell]) visit(cell, rows[query] * width + columns[key]);
        }
    };
    each((_, pixel) => (masked[layer * height * width + pixel] = 0));
    for (let head = 0; head < nHeads; head += 1) {
      const weights = weightsRead(item, site, head);
      const start = (layer * nHeads + head) * height * width;
      each((cell, pixel) => {
        const shade = Math.round(255 * Math.sqrt(weights[cell]));
        pixels[start + pixel] = Math.max(pixels[start + pixel], shade);
      });
    }
  });
  return { shape: [nLayers, nHeads, height, width], pixels, masked };
};

// A head of a sentence of a batch, at a stage.
/** @type {(item: Item, data: import("./types").AtHead & { stage?: string, scale?: string }) => { figure: import("../../web/types").Figure }} */
const stageOf = (item, { site, head, stage = "weights", scale = "sqrt" }) => {
  const { queries, keys } = labelsAt(item, site);
  const figure = matrixOf(frameOf(item, "head"), queries, keys);
  const allowed = item.text.allowed(site);
  const isOff = switchedOff(item, site).includes(head);
  const scores = scoresOf(item, site, head);
  const weights = isOff ? new Float32Array(scores.length) : item.text.weights(site, head);
  const { looks } = figure.layout.meta;
  const bound = boundOf(scores);
  const look = stage === "weights" ? looks[scale] : { ...looks.scores, zmin: -bound, zmax: bound };
  const values =
    stage === "weights" ? weights.map((one) => (scale === "sqrt" ? Math.sqrt(one) : one)) : scores;
  const z = values.map((one, at) => (stage === "scores" || allowed[at] ? one : NaN));
  const cells = figure.data[0];
  delete cells.hovertemplate;
  figure.data = [{ ...cells, ...look, hoverinfo: "none", z: rowsOf(z, queries.length) }];
  return { figure };
};

/** @type {Answerer<"heatmap">} */
const heatmap = (item, data) => {
  if (!data.numbers) return /** @type {SentNumbers} */ (stageOf(item, data)); // of a batch, a picture alone
  const { site, head } = data;
  const { text, model } = item;
  const { queries: rows, keys: columns } = labelsAt(item, site);
  const sent = {
    ...{
      shape: [rows.length, columns.length],
      allowed: packBits(Float32Array.from(text.allowed(site))),
    },
    figure: headFrame(item, rows, columns),
  };
  const { scale, cap, patterns } = text.attention(site);
  const isPlain = cap === null && !patterns.length && scale === model.network.headSize ** -0.5;
  const isOff = switchedOff(item, site).includes(head);
  if (isPlain && !isOff)
    return { ...sent, queries: text.queries(site, head), keys: text.keys(site, head) };
  return { ...sent, scores: scoresOf(item, site, head), weights: weightsRead(item, site, head) };
};

/** @type {Answerer<"flow">} */
const flow = (item, { stack, kind, which, layer = null }) => {
  const sites = sitesOf(item, stack, kind);
  const heads = Array.from({ length: item.model.network.config.n_heads }, (_, head) => head);
  const last = layer === null ? sites.length : layer + 1;
  const some = sites.slice(which === "mean" && layer !== null ? layer : 0, last);
  const weights = some.map((site) =>
    heads
      .filter((head) => !switchedOff(item, site).includes(head))
      .map((head) => item.text.weights(site, head)),
  );
  const { queries, keys } = labelsAt(item, sites[0]);
  const size = queries.length * keys.length;
  const masks = some.map((site) => [Float32Array.from(item.text.allowed(site))]);
  return {
    ...{ shape: [queries.length, keys.length], figure: headFrame(item, queries, keys, true) },
    allowed: packBits(flowWeights(masks, which, size)),
    weights: flowWeights(weights, which, size),
  };
};

/** @type {Answerer<"attention_math">} */
const attentionMath = (item, { site, head, query }) => {
  const { text, model } = item;
  const { scoreSize: score_size, headSize: size, config } = model.network;
  const { queries, keys: key_labels } = labelsAt(item, site);
  const isThere = query !== null && query < queries.length; // not where none is chosen
  const row = isThere ? query : queries.length - 1;
  const n = key_labels.length;
  return {
    ...{ query: row, query_label: queries[row], key_labels, score_size, bias: null },
    ...{ cap: config.score_cap, historical: config.score_divisor === "d_model" },
    q: text.queries(site, head).subarray(row * size, (row + 1) * size),
    ...{ keys: text.keys(site, head), values: text.values(site, head) },
    allowed: text.allowed(site).subarray(row * n, (row + 1) * n),
    scores: scoresOf(item, site, head).subarray(row * n, (row + 1) * n),
    weights: text.weightsAt(site, head, row),
    tolerance: TOLERANCE,
  };
};

// Which heads read a key at a query, as views/journey/journey.py.
/** @type {Answerer<"readers">} */
const readers = (item, { stack, kind, query, key }) => {
  const rowOf = (/** @type {string} */ where, /** @type {number} */ place) =>
    where === item.facts.stack ? place - item.start : place;
  const [row, column] = [rowOf(stack, query), rowOf(kind === "cross" ? "encoder" : stack, key)];
  const { n_heads: nHeads } = item.model.network.config;
  const weights = sitesOf(item, stack, kind).flatMap((site) => {
    const isOff = switchedOff(item, site);
    return Array.from({ length: nHeads }, (_, head) =>
      isOff.includes(head) ? 0 : item.text.weightsAt(site, head, row)[column],
    );
  });
  const ranked = largest(weights, N_RANKED).filter((at) => weights[at] > 0);
  return {
    heads: { [kind]: Float32Array.from(weights) },
    ranked: ranked.map((at) => ({
      ...{ stack, kind, layer: Math.floor(at / nHeads), head: at % nHeads, weight: weights[at] },
    })),
  };
};

export const answers = {
  ...{ atlas, heatmap, flow, readers },
  ...{ attention_math: attentionMath, columns: columnsOf },
};
