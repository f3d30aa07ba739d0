// What interventions change in one reading of a text: transformer/interventions/ for the browser's engine.
// Values at the points z, attn_out, mlp_out and resid_post are rows of positions from `first` on.

import { randomBits, randomOrder } from "./sampling.js";

/** @import { Network } from "./network.js" */
/** @import { Intervention, Ablate, Patch, EditMask, StackName, Kind } from "./types.d.ts" */
/**
 * @typedef {"z" | "attn_out" | "mlp_out" | "resid_post"} PointName
 * @typedef {{name: PointName, stack: StackName, layer: number, kind: Kind | ""}} Point
 * @typedef {{values: Float32Array, width: number, first: number, n: number}} Rows
 * @typedef {{at: (point: Point) => boolean, change: (rows: Rows) => void}} Hook
 */

// The layer from which on something changes; after the last for what only changes the head's input.
/** @type {(intervention: Intervention, stack: StackName, nLayers: number) => number} */
const firstLayer = (intervention, stack, nLayers) => {
  if (intervention.type === "break") return intervention.what === "no-final-norm" ? nLayers : 0;
  if (intervention.stack !== stack) return nLayers;
  return intervention.layer ?? 0;
};

/**
 * The first layer of a stack whose output differs between two lists of interventions; nLayers: none.
 * @param {Intervention[]} before
 * @param {Intervention[]} after
 * @param {StackName} stack
 * @param {number} nLayers
 */
export const firstChange = (before, after, stack, nLayers) => {
  const [old, now] = [before, after].map((list) => list.map((change) => JSON.stringify(change)));
  const same = now.findIndex((text, at) => text !== old[at]);
  const common = same < 0 ? now.length : same;
  const changed = [...before.slice(common), ...after.slice(common)];
  return Math.min(nLayers, ...changed.map((change) => firstLayer(change, stack, nLayers)));
};

/** @param {readonly number[] | null | undefined} positions @param {number} position */
const isAt = (positions, position) => !positions || positions.includes(position);

/**
 * The mean of rows up to each row, in an encoder over all that are text.
 * @param {Rows} rows
 * @param {boolean} isEncoder
 * @param {number} nText
 */
const meansOf = ({ values, width, n }, isEncoder, nText) => {
  const means = new Float64Array(n * width);
  for (let i = 0; i < width; i += 1) {
    let sum = 0;
    if (isEncoder) {
      for (let t = 0; t < nText; t += 1) sum += values[t * width + i];
      for (let t = 0; t < n; t += 1) means[t * width + i] = sum / Math.max(1, nText);
    } else {
      for (let t = 0; t < n; t += 1)
        means[t * width + i] = (sum += values[t * width + i]) / (t + 1);
    }
  }
  return means;
};

export class Changes {
  /**
   * nText: tokens of each stack that are text, not padding.
   * @param {Network} network
   * @param {Intervention[]} interventions
   * @param {{encoder?: number, decoder?: number}} nText
   */
  constructor(network, interventions, nText = {}) {
    this.network = network;
    this.nText = nText;
    const isPatch = (/** @type {Intervention} */ change) => Number(change.type === "patch");
    const ordered = [...interventions].sort((a, b) => isPatch(b) - isPatch(a));
    /** @type {string[]} */
    this.breaks = ordered.flatMap((change) => (change.type === "break" ? [change.what] : []));
    /** @type {EditMask[]} */
    this.masks = ordered.flatMap((change) => (change.type === "mask" ? [change] : []));
    this.hooks = ordered.flatMap((change) => this._hooksOf(change));
    // Whether positions depend on themselves and the past alone, so that a text can grow.
    this.areLocal = !ordered.some(
      (change) =>
        (change.type === "mask" && change.stack === "decoder") ||
        (change.type === "ablate" && change.by === "mean" && change.stack === "decoder"),
    );
    const orderOf = (/** @type {StackName} */ stack) =>
      randomOrder(network.maxLenOf(stack), randomBits(0));
    this.order = this.has("shuffled-positions")
      ? { encoder: orderOf("encoder"), decoder: orderOf("decoder") }
      : null;
  }

  /** Whether one idea of the architecture is switched off. @param {string} what */
  has(what) {
    return this.breaks.includes(what);
  }

  // What q·k is multiplied with.
  get scoreScale() {
    const { scoreSize, config } = this.network;
    if (this.has("no-scale")) return 1;
    return (this.has("model-scale") ? config.d_model : scoreSize) ** -0.5;
  }

  /**
   * Change rows (n, width) of positions from `first` on, in place.
   * @param {PointName} name
   * @param {StackName} stack
   * @param {number} layer
   * @param {Kind | ""} kind
   * @param {Float32Array} values
   * @param {number} first
   * @param {number} n
   */
  apply(name, stack, layer, kind, values, first, n) {
    const point = { name, stack, layer, kind };
    for (const { at, change } of this.hooks)
      if (at(point)) change({ values, width: values.length / n, first, n });
  }

  /**
   * The masks of an attention, after edits: (n, nKeys) of 0 and 1. causal, padding: as they are.
   * @param {StackName} stack
   * @param {number} layer
   * @param {Kind} kind
   * @param {number} n
   * @param {number} nKeys
   * @param {(query: number, key: number) => boolean} causal
   * @param {(key: number) => boolean} isText
   */
  mask(stack, layer, kind, n, nKeys, causal, isText) {
    const edits = this.masks.filter(
      (edit) =>
        edit.stack === stack && (edit.kind ?? "self") === kind && (edit.layer ?? layer) === layer,
    );
    const without = new Set(edits.flatMap((edit) => edit.without ?? []));
    const allowed = new Uint8Array(n * nKeys);
    for (let query = 0, at = 0; query < n; query += 1)
      for (let key = 0; key < nKeys; key += 1, at += 1)
        allowed[at] = Number(
          (without.has("causal") || causal(query, key)) && (without.has("padding") || isText(key)),
        );
    for (const { allow = [], forbid = [] } of edits)
      for (const [cells, value] of /** @type {[EditMask["allow"], number][]} */ ([
        [allow, 1],
        [forbid, 0],
      ]))
        for (const [query, key] of cells ?? [])
          for (let row = query ?? 0; row < Math.min(n, (query ?? n - 1) + 1); row += 1)
            for (
              let column = key ?? 0;
              column < Math.min(nKeys, (key ?? nKeys - 1) + 1);
              column += 1
            )
              allowed[row * nKeys + column] = value;
    return allowed;
  }

  /** Whether an attention's mask is edited. @param {StackName} stack @param {Kind} kind */
  editsMask(stack, kind) {
    return this.masks.some((edit) => edit.stack === stack && (edit.kind ?? "self") === kind);
  }

  /** @param {Intervention} change @returns {Hook[]} */
  _hooksOf(change) {
    switch (change.type) {
      case "ablate":
        return this._ablated(change);
      case "patch":
        return [this._patched(change)];
      case "add":
        return [
          {
            at: ({ name, stack, layer }) =>
              name === (change.part ?? "resid_post") &&
              stack === change.stack &&
              layer === change.layer,
            change: ({ values, width, first, n }) => {
              for (let t = 0; t < n; t += 1)
                if (isAt(change.positions, first + t))
                  for (let i = 0; i < width; i += 1) values[t * width + i] += change.vector[i];
            },
          },
        ];
      case "break": {
        const name = { "no-attention": "z", "no-feed-forward": "mlp_out" }[change.what];
        return name
          ? [{ at: (point) => point.name === name, change: ({ values }) => void values.fill(0) }]
          : [];
      }
      default:
        return [];
    }
  }

  /** @param {Ablate} change @returns {Hook[]} */
  _ablated({ stack, layer, heads = null, kind = "self", by = "zero", part = "z", positions }) {
    if (heads && !heads.length) return [];
    const size = this.network.headSize;
    /** @type {(point: Point) => boolean} */
    const isPart = ({ name, kind: of }) =>
      part === "layer"
        ? name === "attn_out" || name === "mlp_out"
        : name === part && (part !== "z" || of === kind);
    return [
      {
        at: (point) => point.stack === stack && point.layer === layer && isPart(point),
        change: (rows) => {
          const { values, width, first, n } = rows;
          const isZ = part === "z";
          const nText = isZ && kind === "self" ? Math.min(n, this.nText[stack] ?? n) : n;
          const means = by === "mean" ? meansOf(rows, stack === "encoder", nText) : null;
          for (let t = 0; t < n; t += 1) {
            if (!isAt(positions, first + t)) continue;
            for (let i = 0; i < width; i += 1)
              if (!isZ || !heads || heads.includes(Math.floor(i / size)))
                values[t * width + i] = means ? means[t * width + i] : 0;
          }
        },
      },
    ];
  }

  /** @param {Patch} change @returns {Hook} */
  _patched({
    stack,
    layer,
    positions,
    part = "resid_post",
    heads = null,
    kind = "self",
    values: given,
  }) {
    const size = this.network.headSize;
    const rows = given ?? [];
    return {
      at: ({ name, stack: of, layer: at, kind: which }) =>
        name === part && of === stack && at === layer && (part !== "z" || which === kind),
      change: ({ values, width, first, n }) =>
        positions.forEach((position, row) => {
          const t = position - first;
          if (t < 0 || t >= n) return;
          const flat = Array.from(/** @type {ArrayLike<number | number[]>} */ (rows[row])).flatMap(
            (x) => (typeof x === "number" ? x : Array.from(x)),
          );
          for (let i = 0; i < width; i += 1)
            if (part !== "z" || !heads || heads.includes(Math.floor(i / size)))
              values[t * width + i] = flat[i % flat.length];
        }),
    };
  }
}
