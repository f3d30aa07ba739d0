// The numbers of a head, of a uniform one and of copies with shuffled keys, and what the head is named after: as
// analysis/head_measures.py and head_metrics.py.

import { randomBits, randomOrder } from "./sampling.js";

/**
 * @typedef {import("./questions/types").Measures} Measures
 * @typedef {Record<string, number>} MetricNumbers by metric; NaN: there is none
 * @typedef {{ layer: number, head: number, values: MetricNumbers, under: UnderMask, most: number, name: string | null,
 *   shuffled: Record<string, [number, number]> }} Measured most: the key that is read most; shuffled: mean and largest
 */

const LEAST_LENGTH = 1e-4; // of vectors that correlate
export const UNREACHED = -1; // of a query without such a key

// Pearson's correlation; NaN if one of them is constant.
/** @type {(x: ArrayLike<number>, y: ArrayLike<number>) => number} */
const correlation = (x, y) => {
  const mean = (/** @type {ArrayLike<number>} */ all) =>
    Array.from(all).reduce((sum, value) => sum + value, 0) / all.length;
  const [middle, centre] = [mean(x), mean(y)];
  let [both, ofX, ofY] = [0, 0, 0];
  for (let at = 0; at < x.length; at += 1) {
    const [a, b] = [x[at] - middle, y[at] - centre];
    both += a * b;
    ofX += a * a;
    ofY += b * b;
  }
  const length = Math.sqrt(ofX * ofY);
  return length > LEAST_LENGTH ? Math.max(-1, Math.min(1, both / length)) : NaN;
};

// Orders of keys in which none has its own place.
/** @type {(count: number, nKeys: number) => Int32Array[]} */
export const ordersOf = (count, nKeys) => {
  const next = randomBits(0);
  const moved = () => {
    for (;;) {
      const order = randomOrder(nKeys, next);
      if (nKeys < 2 || order.every((key, at) => key !== at)) return order;
    }
  };
  return Array.from({ length: count }, moved);
};

// What the heads of layers with one mask are compared with.
export class UnderMask {
  /**
   * @param {Measures["metrics"]} metrics
   * @param {string[]} names
   * @param {Uint8Array} allowed (Tq, Tk)
   * @param {number} nKeys
   * @param {string[]} tokens of the text that reads itself
   */
  constructor(metrics, names, allowed, nKeys, tokens) {
    this.metrics = metrics;
    this.names = names;
    this.allowed = allowed;
    this.nKeys = nKeys;
    this.nQueries = allowed.length / nKeys;
    const queries = Array.from({ length: this.nQueries }, (_, query) => query);
    this.counts = queries.map((query) => this._row(query).reduce((sum, may) => sum + may, 0));
    this.rows = queries.filter((query) => this.counts[query] >= 2);
    this.repeats = this._repeatsOf(tokens);
    /** @type {Record<string, Int32Array>} the key of each query whose weight is the metric */
    this.keys = Object.fromEntries(
      names.filter((name) => metrics[name].position).map((name) => [name, this._keysOf(name)]),
    );
    const uniform = Float64Array.from(
      allowed,
      (may, at) => may / this.counts[Math.floor(at / nKeys)],
    );
    this.even = this.measure(uniform);
  }

  /** @param {number} query */
  _row(query) {
    return this.allowed.subarray(query * this.nKeys, (query + 1) * this.nKeys);
  }

  // The last place before of each query's token, with another token between, both of which it may read.
  /** @param {string[]} tokens @returns {Map<number, number>} */
  _repeatsOf(tokens) {
    const last = new Map();
    const repeats = new Map();
    tokens.slice(0, this.nQueries).forEach((token, query) => {
      const before = last.get(token) ?? query;
      if (before + 1 < query && this._row(query)[before] && this._row(query)[before + 1])
        repeats.set(query, before);
      last.set(token, query);
    });
    return repeats;
  }

  /** @param {string} name */
  _keysOf(name) {
    const { nKeys, repeats } = this;
    const keys = new Int32Array(this.nQueries).fill(UNREACHED);
    /** @type {Record<string, (query: number) => number>} */
    const places = {
      previous: (query) => query - 1,
      itself: (query) => query,
      next: (query) => query + 1,
      mirror: (query) => nKeys - 2 - query,
      backwards: (query) => /** @type {number} */ (repeats.get(query)) - 1,
      duplicate: (query) => /** @type {number} */ (repeats.get(query)),
      induction: (query) => /** @type {number} */ (repeats.get(query)) + 1,
    };
    for (const query of this.metrics[name].repeats ? repeats.keys() : this.rows) {
      if (name === "first") keys[query] = 0;
      else if (name === "last") keys[query] = nKeys - 1;
      else {
        const key = places[name](query);
        if (this._row(query)[key]) keys[query] = key;
      }
    }
    return keys;
  }

  // The metrics of a head's weights (Tq, Tk).
  /** @param {ArrayLike<number>} weights @returns {MetricNumbers} */
  measure(weights) {
    const { rows, nKeys } = this;
    const reads = new Float64Array(nKeys); // of each key
    /** @type {number[]} */
    const places = []; // where each row reads, in the mean
    let [entropy, largest, distance] = [0, 0, 0];
    for (const query of rows) {
      let [most, place] = [0, 0];
      for (let key = 0, at = query * nKeys; key < nKeys; key += 1, at += 1) {
        const weight = weights[at];
        if (!weight) continue;
        entropy -= weight * Math.log2(weight);
        distance += weight * Math.abs(query - key);
        place += weight * key;
        reads[key] += weight;
        if (weight > most) most = weight;
      }
      largest += most;
      places.push(place);
    }
    const n = rows.length;
    /** @type {MetricNumbers} */
    const means = {
      ...{ entropy: entropy / n, largest: largest / n, distance: distance / n },
      most_read: Math.max(...reads) / n,
      order: correlation(rows, places),
    };
    const atKeys = (/** @type {Int32Array} */ keys) => {
      let [sum, count] = [0, 0];
      keys.forEach((key, query) => {
        if (key === UNREACHED) return;
        sum += weights[query * nKeys + key];
        count += 1;
      });
      return sum / count;
    };
    return Object.fromEntries(
      this.names.map((name) => [name, name in means ? means[name] : atKeys(this.keys[name])]),
    );
  }

  // The metrics that are compared with copies of a head, whose keys are in other orders: of a head with these scores (Tq, Tk) the mean
  // over the copies, and the largest.
  /** @param {Float32Array} scores @param {Int32Array[]} orders @returns {Record<string, [number, number]>} */
  shuffled(scores, orders) {
    const { rows, nKeys } = this;
    const names = this.names.filter((name) => this.metrics[name].against === "shuffled");
    const atKeys = names.filter((name) => name in this.keys);
    const copies = orders.map(() => ({
      ...{ distance: 0, places: /** @type {number[]} */ ([]) },
      sums: /** @type {MetricNumbers} */ (Object.fromEntries(atKeys.map((name) => [name, 0]))),
    }));
    for (const query of rows) {
      const may = this._row(query);
      const row = scores.subarray(query * nKeys, (query + 1) * nKeys);
      const most = row.reduce((a, b) => Math.max(a, b), -Infinity);
      const powers = Float64Array.from(row, (score) => Math.exp(score - most));
      copies.forEach((copy, number) => {
        const order = orders[number];
        let read = readIn(order, may, powers, query);
        if (!read.total) {
          const highest = order.reduce(
            (a, key, at) => (may[at] ? Math.max(a, row[key]) : a),
            -Infinity,
          );
          read = readIn(
            order,
            may,
            Float64Array.from(row, (score) => Math.exp(score - highest)),
            query,
          );
        }
        copy.distance += read.distance / read.total;
        copy.places.push(read.place / read.total);
        for (const name of atKeys) {
          const key = this.keys[name][query];
          if (key !== UNREACHED && may[key])
            copy.sums[name] += read.powers[order[key]] / read.total;
        }
      });
    }
    const count = (/** @type {string} */ name) =>
      this.keys[name].reduce((sum, key) => sum + Number(key !== UNREACHED), 0);
    return Object.fromEntries(
      names.map((name) => {
        const values = copies.map(({ distance, places, sums }) => {
          if (name === "distance") return distance / rows.length;
          return name === "order" ? correlation(rows, places) : sums[name] / count(name);
        });
        return [name, [values.reduce((a, b) => a + b, 0) / values.length, Math.max(...values)]];
      }),
    );
  }
}

// What a query reads of keys in an order, before it is divided by their total; powers: of e, by key.
/** @type {(order: Int32Array, may: Uint8Array, powers: Float64Array, query: number) => { total: number, distance: number, place: number, powers: Float64Array }} */
const readIn = (order, may, powers, query) => {
  let [total, distance, place] = [0, 0, 0];
  for (let key = 0; key < order.length; key += 1) {
    if (!may[key]) continue;
    const power = powers[order[key]];
    total += power;
    distance += Math.abs(query - key) * power;
    place += key * power;
  }
  return { total, distance, place, powers };
};

// The metric that a head is named after, as named_after of analysis/head_metrics.py; null: none is high enough.
/** @type {(measures: Measures, head: Measured) => string | null} */
export const nameOfHead = (
  { metrics, limits },
  { values, shuffled, under: { even, rows, repeats } },
) => {
  if (rows.length < limits.rows) return null;
  const isClear = (/** @type {string} */ name) => {
    const again = metrics[name].repeats;
    const [least, times] = again
      ? [limits.again, limits.times_again]
      : [limits.weight, limits.times];
    return values[name] >= least && values[name] >= times * even[name];
  };
  const clear = Object.keys(values).filter(
    (name) =>
      metrics[name].position &&
      (!metrics[name].repeats || repeats.size >= limits.rows) &&
      isClear(name) &&
      values[name] > shuffled[name][1],
  );
  const times = (/** @type {string} */ name) => values[name] / even[name];
  if (clear.length) return clear.reduce((best, name) => (times(name) > times(best) ? name : best));
  if (isClear("most_read")) return "most_read";
  const isOrdered =
    values.largest >= limits.weight &&
    values.order >= limits.order &&
    values.order > shuffled.order[1];
  if (isOrdered) return "order";
  return values.entropy >= limits.evenly * even.entropy ? "entropy" : null;
};
