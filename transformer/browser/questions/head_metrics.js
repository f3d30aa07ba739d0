// The questions about the numbers of heads, each answered as the Python function of its name (views/attention/head_metrics.py,
// views/journey/passages.py).

import { capital, say } from "../../web/messages.js";
import { UNREACHED, UnderMask, nameOfHead, ordersOf } from "../head_measures.js";
import { SHORT_MS, pauses } from "../pauses.js";
import { labelsAt, scoresOf, siteOf, sitesOf, switchedOff } from "./places.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {import("../head_measures.js").MetricNumbers} MetricNumbers
 * @typedef {import("../head_measures.js").Measured} Measured
 * @typedef {import("./types").AtKind} AtKind
 * @typedef {import("./types").Measures} Measures
 * @typedef {{ names: string[], heads: Measured[], nRows: number, nRepeats: number, nOrders: number }} Metrics
 */

/** @type {(item: Item, of: AtKind) => Promise<Metrics>} */
const measured = async (item, { stack, kind }) => {
  const pause = pauses(SHORT_MS);
  const { measures } = item.model.frames;
  const { metrics, limits } = measures;
  const nHeads = item.model.network.config.n_heads;
  const sites = sitesOf(item, stack, kind);
  const { queries, keys } = labelsAt(item, sites[0]);
  const masks = sites.map((site) => item.text.allowed(site));
  const reachesForward = masks.some((allowed) =>
    queries.some((_, query) => query + 1 < keys.length && allowed[query * keys.length + query + 1]),
  );
  const names = measures.of[kind].filter((name) => name !== "next" || reachesForward);
  const nCells = sites.length * nHeads * masks[0].length;
  const nOrders = Math.min(limits.shuffles, Math.floor(limits.cells / nCells));
  const orders = ordersOf(Math.max(limits.least_shuffles, nOrders), keys.length);
  /** @type {UnderMask[]} */
  const unders = [];
  const tokens = kind === "self" ? queries : [];
  /** @type {Measured[]} */
  const heads = [];
  for (const [layer, site] of sites.entries()) {
    const isMask = (/** @type {UnderMask} */ { allowed }) =>
      allowed.every((may, at) => may === masks[layer][at]);
    let under = unders.find(isMask);
    if (!under)
      unders.push((under = new UnderMask(metrics, names, masks[layer], keys.length, tokens)));
    for (let head = 0; head < nHeads; head += 1) {
      const isOff = switchedOff(item, site).includes(head);
      const weights = item.text.weights(site, head);
      const reads = Float64Array.from(keys, (_, key) =>
        under.rows.reduce((sum, query) => sum + weights[query * keys.length + key], 0),
      );
      const none = Object.fromEntries(names.map((name) => [name, NaN]));
      /** @type {Measured} */
      const found = {
        ...{ layer, head, under, name: null },
        values: isOff ? none : under.measure(weights),
        shuffled: isOff ? {} : under.shuffled(scoresOf(item, site, head), orders),
        most: reads.indexOf(Math.max(...reads)),
      };
      if (!isOff) found.name = nameOfHead(measures, found);
      heads.push(found);
      await pause();
    }
  }
  return {
    ...{ names, heads, nOrders: orders.length },
    nRows: Math.max(...unders.map(({ rows }) => rows.length)),
    nRepeats: Math.max(...unders.map(({ repeats }) => repeats.size)),
  };
};
// The metrics of a kind of attention, worked out once for a run.
/** @type {(item: Item, of: AtKind) => Promise<Metrics>} */
const metricsOf = (item, { stack, kind }) => {
  const key = `${stack} ${kind}`;
  const known = item.metrics.get(key) ?? measured(item, { stack, kind });
  item.metrics.set(key, known);
  return known;
};

// ---- the strongest finding, as of analysis/head_metrics.py ----

// The metric to compare with a uniform head's, which has no order.
/** @type {(name: string) => string} */
const comparedBy = (name) => (name === "order" ? "largest" : name);
// Heads with a metric of a place above both baselines but too low for a label.
/** @type {(measures: Measures, found: Metrics) => [Measured, string][]} */
const nearly = ({ metrics, limits }, { heads, names }) =>
  heads.flatMap((head) =>
    names
      .filter((name) => {
        const { values, shuffled, under } = head;
        const nRows = metrics[name].repeats ? under.repeats.size : under.rows.length;
        return (
          metrics[name].position &&
          nRows >= limits.rows &&
          values[name] >= limits.times * under.even[name] &&
          values[name] > shuffled[name][1]
        );
      })
      .map((name) => /** @type {[Measured, string]} */ ([head, name])),
  );
/** @type {(item: Item, of: AtKind, found: Metrics) => import("../../views/attention/types").HeadFinding | null} */
const findingOf = (item, { stack, kind }, found) => {
  const { measures } = item.model.frames;
  const labelled = found.heads.flatMap((head) =>
    head.name === null || head.name === "entropy"
      ? []
      : [/** @type {[Measured, string]} */ ([head, head.name])],
  );
  const candidates = labelled.length ? labelled : nearly(measures, found);
  if (!candidates.length) return null;
  const times = candidates.map(
    ([{ values, under }, name]) => values[comparedBy(name)] / under.even[comparedBy(name)],
  );
  const [best, name] = candidates[times.indexOf(Math.max(...times))];
  const { layer, head, under } = best;
  const site = sitesOf(item, stack, kind)[layer];
  const { queries, keys } = labelsAt(item, site);
  const weights = item.text.weights(site, head);
  const rowOf = (/** @type {number} */ query) =>
    weights.subarray(query * keys.length, (query + 1) * keys.length);
  /** @type {number[][]} queries and keys that the metric is about */
  const cells =
    name in under.keys
      ? [...under.keys[name]].flatMap((key, query) => (key === UNREACHED ? [] : [[query, key]]))
      : under.rows.map((query) => [
          query,
          name === "order" ? rowOf(query).indexOf(Math.max(...rowOf(query))) : best.most,
        ]);
  const [query, key] = cells.reduce((a, b) => (rowOf(b[0])[b[1]] > rowOf(a[0])[a[1]] ? b : a));
  const { label, title } = measures.metrics[name];
  return {
    ...{ layer, head, clear: labelled.length > 0, n_rows: cells.length, query, key },
    value: best.values[comparedBy(name)],
    even: under.even[comparedBy(name)],
    weight: rowOf(query)[key],
    ...{ does: label, title },
    number: name === "order" ? measures.metrics.largest.title : capital(say("weight")),
    ...{ query_label: queries[query], key_label: keys[key] },
  };
};

// ---- the answers ----

/** @type {(value: number) => number | null} */
const orNull = (value) => (Number.isNaN(value) ? null : value);
/** @type {(numbers: MetricNumbers) => Record<string, number | null>} */
const plain = (numbers) =>
  Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, orNull(value)]));

/** @type {Answerer<"metrics">} */
const metrics = async (item, data) => {
  const found = await metricsOf(item, data);
  const { measures } = item.model.frames;
  const { keys, queries } = labelsAt(item, sitesOf(item, data.stack, data.kind)[0]);
  const metric = (/** @type {string} */ name) => {
    const { title, unit, definition } = measures.metrics[name];
    const copies = found.heads.flatMap(({ shuffled }) => (shuffled[name] ? [shuffled[name]] : []));
    const [means, largest] = [0, 1].map((at) =>
      copies.map((copy) => copy[at]).filter((value) => !Number.isNaN(value)),
    );
    const mean = means.reduce((sum, x) => sum + x, 0) / means.length;
    return {
      ...{ name, title, unit, definition, shuffled: orNull(mean) },
      shuffled_most: largest.length ? Math.max(...largest) : null,
    };
  };
  const layers = new Map(found.heads.map(({ layer, under }) => [layer, plain(under.even)]));
  return {
    metrics: found.names.map(metric),
    heads: found.heads.map(({ layer, head, values, name, most }) => ({
      ...{ layer, head, values: plain(values), key: most, key_label: keys[most] },
      label: (name && measures.metrics[name].label) || null,
      sign: name && measures.metrics[name].sign,
    })),
    ...{ even: [...layers.values()], finding: findingOf(item, data, found), rule: measures.rule },
    ...{ n_rows: found.nRows, n_repeats: found.nRepeats, n_shuffles: found.nOrders },
    n_left_out: queries.length - found.nRows,
  };
};

/** @type {Answerer<"metric_map">} */
const metricMap = async (item, { stack, kind, metric }) => {
  const { heads } = await metricsOf(item, { stack, kind });
  const { frames, network } = item.model;
  const figure = structuredClone(frames.metric_map[`${stack} ${kind}`][metric] ?? null);
  if (!figure) return { figure }; // the text of the frames has one token
  const [cells] = figure.data;
  const nLayers = heads[heads.length - 1].layer + 1;
  const nHeads = network.config.n_heads;
  cells.z = Array.from({ length: nHeads }, (_, head) =>
    Float32Array.from(
      { length: nLayers },
      (__, layer) => heads[layer * nHeads + head].values[metric],
    ),
  );
  const values = heads
    .map(({ values: all }) => all[metric])
    .filter((value) => !Number.isNaN(value));
  if (frames.measures.metrics[metric].unit) cells.zmax = Math.max(0, ...values) || 1;
  return { figure };
};

/** @type {Answerer<"passages">} */
const passages = async (item, { site, head }) => {
  const { measures, passages: known } = item.model.frames;
  const { stack, layer, kind } = siteOf(site);
  const { heads } = await metricsOf(item, { stack, kind });
  const name = heads.find((scored) => scored.layer === layer && scored.head === head)?.name;
  const found = name && known.heads[`${site} ${head}`]?.[name];
  if (!found) return { passages: [], label: null, title: "", n_texts: known.n_texts };
  const { label, title } = measures.metrics[name];
  return {
    passages: found.map(([number, text]) => ({
      number,
      text: known.texts[text],
    })),
    ...{ label, title, n_texts: known.n_texts },
  };
};

export const answers = { metrics, metric_map: metricMap, passages };
