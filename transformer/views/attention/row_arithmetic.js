// One row of attention computed step by step, and the steps as text. Deliberately independent of the softmax
// of the attention pictures, in float64.

import { capital, numeral, say, sayN, tinyNumber } from "../../web/messages.js";
import { shortenLabels, thinLabels } from "../../web/labels.js";

/**
 * @typedef {Float32Array | Uint8Array | number[]} RowNumbers
 * @typedef {{q: RowNumbers, keys: RowNumbers, values: RowNumbers, allowed: RowNumbers, score_size: number,
 *   bias: RowNumbers | null, cap: number | null}} Row
 * @typedef {Row & { keys: Float32Array, historical: boolean }} NetworkRow
 * @typedef {import("./types").RowSteps} Steps
 * @typedef {{ name: string, first: string[], vector: ArrayLike<number> }} Line of the table
 */

// q (D), keys and values (keys x D, flat; of values a saved page has dimension 0 alone), allowed (keys), score_size (scores are divided by its
// root), bias (keys; what positions add to scores) and cap (of scores), null if there is none. Returns every step for each key, and the output (D).
/** @type {(row: Row) => Steps} */
export const workOutRow = ({ q, keys, values, allowed, score_size: divisor, bias, cap }) => {
  const [size, count] = [q.length, allowed.length];
  const dots = Array.from({ length: count }, (_, key) => {
    let sum = 0;
    for (let d = 0; d < size; d += 1) sum += q[d] * keys[key * size + d];
    return sum;
  });
  const biased = dots.map((dot, key) => dot / Math.sqrt(divisor) + (bias?.[key] ?? 0));
  const scores = cap === null ? biased : biased.map((score) => cap * Math.tanh(score / cap));
  const open = Array.from(allowed).some(Boolean); // a row with nothing allowed is uniform, as in the network
  const masked = scores.map((score, key) => (allowed[key] ? score : open ? -Infinity : 0));
  const largest = masked.reduce((a, b) => Math.max(a, b));
  const exps = masked.map((score) => Math.exp(score - largest));
  const total = exps.reduce((a, b) => a + b, 0);
  const weights = exps.map((part) => part / total);
  const width = values.length / count;
  const output = Array.from({ length: width }, (_, d) =>
    weights.reduce((sum, weight, key) => sum + weight * values[key * width + d], 0),
  );
  return { dots, scores, largest, exps, total, weights, output };
};

// The largest absolute difference of two rows of numbers.
/** @type {(mine: number[], theirs: ArrayLike<number>) => number} */
export const largestDifference = (mine, theirs) =>
  mine.reduce((most, value, place) => Math.max(most, Math.abs(value - theirs[place])), 0);

/** @type {(value: number, digits?: number) => string} */
export const numberText = (value, digits = 3) => numeral(value.toFixed(digits)).replace("-", "−");
/** @type {(value: number, digits?: number) => string} */
const factorText = (value, digits = 3) =>
  value < 0 ? `(${numberText(value, digits)})` : numberText(value, digits);
/** @type {(value: number) => string} */
export const smallText = (value) =>
  value > 0 && value < 0.0005 ? tinyNumber(value) : numberText(value);

// The first products of two rows of numbers, and the last: "0.12·0.40 + … + 0.31·(−0.20)".
/** @type {(left: ArrayLike<number>, right: ArrayLike<number>, digits: number) => string} */
const productsText = (left, right, digits) => {
  const terms = Array.from(
    left,
    (value, place) => `${factorText(value, digits)}·${factorText(right[place], digits)}`,
  );
  return (terms.length > 4 ? [...terms.slice(0, 3), "…", terms.at(-1)] : terms).join(" + ");
};

// The number whose root divides scores: as far as it is not rounding.
/** @type {(size: number) => string} */
export const rootOf = (size) => `√${numeral(String(Number(size.toPrecision(6))))}`;
/** @type {(row: NetworkRow) => string} */
const dividedBy = ({ score_size: divisor, q, historical }) => {
  if (divisor === q.length) return say("Divided by the root of the head's size:");
  return historical
    ? say("Divided by the root of d_model, as this historical network has it:")
    : say("Divided by a number of this network's own:");
};

// The steps from the query and one key to its weight and the output, [[words, reckoning], ...].
/** @type {(row: NetworkRow, sums: Steps, key: number) => [string, string][]} */
export const stepsOf = (row, sums, key) => {
  const size = row.q.length;
  const ofKey = row.keys.subarray(key * size, (key + 1) * size);
  const [dot, score] = [numberText(sums.dots[key]), numberText(sums.scores[key])];
  const divided = sums.dots[key] / Math.sqrt(row.score_size);
  const added = row.bias?.[key] ?? 0;
  const [part, whole] = [numberText(divided), numberText(divided + added)];
  const order = sums.weights
    .map((_, place) => place)
    .sort((a, b) => sums.weights[b] - sums.weights[a]);
  const mix = order.filter((place) => sums.weights[place] > 0);
  const allowed = row.allowed[key];
  const exponential = `e^(${score} − ${factorText(sums.largest)}) = ${smallText(sums.exps[key])}`;
  const products = productsText(
    mix.map((place) => sums.weights[place]),
    mix.map((place) => row.values[(place * row.values.length) / row.allowed.length]),
    3,
  );
  /** @type {[string, string][]} */
  const changes = [];
  if (row.bias !== null) {
    const title = capital(say("what positions add to the scores"));
    const says = say("{title}: {part}", { title, part: "" }).trimEnd();
    changes.push([says, `${part} + ${factorText(added)} = ${whole}`]);
  }
  if (row.cap !== null) {
    const cap = numeral(String(row.cap));
    const says = say("Capped, so that no score exceeds {cap}:", { cap });
    changes.push([says, `${cap} tanh(${whole} / ${cap}) = ${score}`]);
  }
  return [
    [
      say("Agreement, the sum of {size} products: q·k =", { size }),
      `${productsText(row.q, ofKey, 2)} = ${dot}`,
    ],
    [dividedBy(row), `${dot} / ${rootOf(row.score_size)} = ${part}`],
    ...changes,
    [
      capital(say("mask")),
      allowed
        ? say("{score} + 0 = {score}, this key may be read", { score })
        : say("the mask hides this key: score −∞, e to the −∞ = 0"),
    ],
    [say("Exponential, after subtracting the largest score:"), allowed ? exponential : "0"],
    [
      say("Weight, its share of the sum:"),
      `${smallText(sums.exps[key])} / ${numberText(sums.total)} = ${smallText(sums.weights[key])}`,
    ],
    [
      sayN(
        "Output, dimension 0: the weighted sum of the values' dimension 0 ({n} key):",
        "Output, dimension 0: the weighted sum of the values' dimension 0 ({n} keys, largest " +
          "weight first):",
        mix.length,
      ),
      `${products} = ${numberText(sums.output[0])}`,
    ],
  ];
};

// The picture of one computed row: its layout on this page, and its numbers as a table.

const NARROW_PX = 640;

// The picture's numbers as one table: q, each key with its score and weight, and the output. row: the
// server's answer; sums: see workOutRow.
/** @type {(of: import("./types").WorkedRow) => import("../../web/types").NumbersTable} */
export const tableOfRow = ({ row, sums }) => {
  const size = row.q.length;
  /** @type {(label: string, key: number) => Line} */
  const ofKey = (label, key) => ({
    name: say("key {key} {label}", { key, label }),
    first: [
      numeral(sums.scores[key].toFixed(4)),
      row.allowed[key]
        ? numeral(sums.weights[key].toFixed(4))
        : say("{weight}, hidden", { weight: numeral(sums.weights[key].toFixed(4)) }),
    ],
    vector: row.keys.subarray(key * size, (key + 1) * size),
  });
  /** @type {Line[]} */
  const lines = [
    {
      name: say("q, query {query} {label}", { query: row.query, label: row.query_label }),
      first: ["", ""],
      vector: row.q,
    },
    ...row.key_labels.map(ofKey),
    { name: say("output"), first: ["", ""], vector: sums.output },
  ];
  /** @type {(line: Line, column: number) => string} */
  const valueOf = ({ first, vector }, column) =>
    first[column] ?? numeral(vector[column - first.length].toFixed(4));
  return {
    rows: lines.map(({ name }) => name),
    columns: [
      say("score"),
      say("weight"),
      ...Array.from(row.q, (_, dimension) => say("dimension {dimension}", { dimension })),
    ],
    value: (/** @type {number} */ at, /** @type {number} */ column) => valueOf(lines[at], column),
    corner: say("vector"),
  };
};

// Titles are in the page; on a phone the scores are only in the table.
/** @type {(width: number) => (figure: import("../../web/types").Figure) => void} */
export const fitToWidth =
  (width) =>
  ({ layout, data }) => {
    const { height, margin, yaxis } = layout;
    const [low, high] = yaxis.domain;
    thinLabels(yaxis, (high - low) * (height - margin.t - margin.b)); // a projector's are larger
    if (width >= NARROW_PX) return;
    layout.margin.l = 50; // plus the room of the labels
    for (const name of ["yaxis", "yaxis2", "yaxis5"]) shortenLabels(layout[name]);
    layout.xaxis.title.text = say("dimension");
    data[2].visible = false;
    layout.xaxis3.visible = false;
    layout.annotations = layout.annotations.filter(
      (/** @type {{ text: string }} */ { text: says }) => !says.startsWith("q·k"),
    );
    layout.annotations.find(
      (/** @type {{ text: string }} */ { text: says }) => says === "softmax",
    ).x = 0.76;
    for (const name of ["xaxis", "xaxis2", "xaxis5"]) layout[name].domain = [0, 0.66];
    Object.assign(layout.xaxis4, { domain: [0.76, 1], nticks: 2, tickangle: 0 });
  };
