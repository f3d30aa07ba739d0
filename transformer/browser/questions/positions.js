// The questions about positions, each answered as the Python function of its name (views/positions).

import { numeral, say } from "../../web/messages.js";
import { frameOf, label, namedAxis, tokenAxis } from "../frames.js";
import { largest } from "../sampling.js";
import { boundOf } from "./places.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {import("../text.js").Text} Text
 * @typedef {import("../types.d.ts").StackName} StackName
 * @typedef {import("../../web/types").PlotlyObject} PlotlyObject
 */

/** @type {(item: Item, data: import("./types").AtStack) => { stack: StackName, table: Float32Array[], used: number }} */
export const tableOf = (item, { stack = item.facts.stacks[item.facts.stacks.length - 1] }) => {
  const { positions, maxLen } = item.model.network.stacks[stack];
  const rowAt = /** @type {(position: number) => Float32Array} */ (positions);
  const table = Array.from({ length: maxLen }, (_, at) => rowAt(at));
  return { stack, table, used: item.labelsOf(stack).length };
};
const MAX_CELLS = 28_000; // of a picture
// The positions of the picture of a matrix (positions, dimensions), as of views/positions/encodings.py.
/** @type {(count: number, size: number) => number[]} */
export const drawnPositions = (count, size) => {
  const half = Math.max(8, Math.floor(MAX_CELLS / size / 2));
  const isAll = count <= 2 * half;
  const first = Array.from({ length: isAll ? count : half }, (_, at) => at);
  if (isAll) return first;
  const rounded = (/** @type {number} */ x) =>
    x % 1 === 0.5 && Math.floor(x) % 2 === 0 ? Math.floor(x) : Math.round(x); // as NumPy
  const step = (count - 1 - half) / (half - 1);
  return [
    ...first,
    ...first.map((at) => (at === half - 1 ? count - 1 : rounded(half + at * step))),
  ];
};
/** @type {Answerer<"positions">} */
const positions = (item, data) => {
  const { which = "matrix", dimensions = [] } = data;
  const { stack, table, used } = tableOf(item, data);
  const figure = frameOf(item, which);
  const { layout } = figure;
  Object.assign(layout.meta, { stack, used });
  const rows = table.length;
  if (which === "curves") {
    const [first] = figure.data;
    const x = Int32Array.from({ length: rows }, (_, at) => at);
    const [colours, dashes] = [CURVES, DASHES];
    figure.data = dimensions.map((dimension, order) => ({
      ...first,
      ...{
        x,
        y: Float32Array.from(table, (row) => row[dimension]),
        name: say("dimension {dimension}", { dimension }),
      },
      line: {
        ...first.line,
        color: colours[order % colours.length],
        dash: dashes[Math.floor(order / colours.length) % dashes.length],
      },
    }));
    layout.shapes[0].x1 = used - 0.5;
    return { figure };
  }
  const [cells] = figure.data;
  const places = drawnPositions(rows, table[0].length);
  const drawn = places.map((place) => table[place]);
  const some = places.length < rows ? Int32Array.from(places) : null;
  if (which === "matrix") {
    const bound = Math.max(...table.map((row) => boundOf(row, 0))) || 1;
    Object.assign(cells, { z: drawn, zmin: -bound, zmax: bound, ...(some && { y: some }) });
    Object.assign(layout.shapes[0], { y0: used - 0.5, y1: used - 0.5 });
    Object.assign(layout.annotations[0], {
      y: used - 0.5,
      yanchor: used < 0.9 * rows ? "top" : "bottom",
    });
    return { figure };
  }
  const units = drawn.map((row) => {
    const length = Math.sqrt(row.reduce((sum, x) => sum + x * x, 0)) || 1;
    return row.map((x) => x / length);
  });
  cells.z = units.map((a) =>
    Float32Array.from(units, (b) => a.reduce((sum, x, at) => sum + x * b[at], 0)),
  );
  if (some) Object.assign(cells, { x: some, y: some });
  Object.assign(layout.shapes[0], { x1: used - 0.5, y1: used - 0.5 });
  return { figure };
};
// As views/positions/encodings.py.
const CURVES = ["rgb(0,114,178)", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];
const DASHES = ["solid", "dash", "dot", "dashdot"];

const PARTS = /** @type {const} */ (["token", "position", "sum"]);
const COLOURED = 0.995; // quantile at the ends of the colours
const [ROW_PX, LEAST_PX, MOST_PX] = [19, 90, 520];
/** @type {(values: Float32Array, share: number) => number} */
const quantile = (values, share) => {
  const sorted = values.slice().sort();
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
};
/** @type {Answerer<"inputs">} */
const inputs = (item, data) => {
  const { stack, table } = tableOf(item, data);
  const { text, model } = item;
  const labels = item.labelsOf(stack);
  const ids = stack === item.facts.stack ? text.ids : text.source;
  const of = model.network.stacks[stack];
  const token = ids.map((id) => model.network.embedded(of, id));
  const position = ids.map((_, at) => table[text.positionOf(stack, at)]);
  const sum = token.map((row, at) => row.map((x, i) => x + position[at][i]));
  const parts = { token, position, sum };
  const meanLength = (/** @type {Float32Array[]} */ rows) =>
    rows.reduce((all, row) => all + Math.sqrt(row.reduce((s, x) => s + x * x, 0)), 0) / rows.length;
  const every = Float32Array.from(
    PARTS.flatMap((name) => parts[name].flatMap((row) => [...row])),
    Math.abs,
  );
  const bound = quantile(every, COLOURED) || 1;
  const strips = frameOf(item, "strips");
  strips.data.forEach((trace, at) =>
    Object.assign(trace, { z: parts[PARTS[at]], zmin: -bound, zmax: bound }),
  );
  strips.layout.height = Math.min(MOST_PX, Math.max(LEAST_PX, ROW_PX * ids.length)) + 72 + 90;
  tokenAxis(strips.layout.yaxis, labels);
  Object.assign(strips.layout.meta, { stack, row_labels: labels });
  strips.layout.annotations.forEach((/** @type {PlotlyObject} */ one, /** @type {number} */ at) => {
    const name = numeral(meanLength(parts[PARTS[at]]).toFixed(2));
    one.text = say("{titles}, mean length {name}", {
      titles: strips.layout.meta.headings[at],
      name,
    });
  });
  const last = ids.length - 1;
  const chosen =
    data.position === null || data.position === undefined || data.position > last
      ? last
      : data.position;
  const lines = frameOf(item, "token");
  lines.data.forEach((trace, at) => {
    const y = parts[PARTS[at]][chosen];
    Object.assign(trace, { x: Int32Array.from(y, (_, place) => place), y });
  });
  Object.assign(lines.layout.meta, { stack, position: chosen, token: labels[chosen] });
  const difference =
    "inputDifference" in text
      ? /** @type {import("../recorded.js").RecordedText} */ (
          /** @type {unknown} */ (text)
        ).inputDifference(stack)
      : differenceOf(text, stack, sum);
  return {
    ...{ strips, token: lines, position: chosen, label: labels[chosen], difference },
    lengths: {
      token: meanLength(token),
      position: meanLength(position),
      sum: meanLength(sum),
    },
    normalised: Boolean(model.config.norm_embeddings),
  };
};

// The largest difference between the sums and what entered the first layer.
/** @type {(text: Text, stack: StackName, sum: Float32Array[]) => number} */
const differenceOf = (text, stack, sum) =>
  Math.max(
    ...sum.map((row, at) => {
      const first = text.streamAt(0, at, stack);
      return row.reduce((most, value, i) => Math.max(most, Math.abs(value - first[i])), 0);
    }),
  );

const N_NEAREST = 10;
/** @type {Answerer<"nearest_tokens">} */
const nearestTokens = (item, { position }) => {
  const { model, facts } = item;
  const { network, tokenizer } = model;
  const place = position ?? facts.n_prompt - 1;
  const own = facts.ids[place];
  const vector = (/** @type {number} */ id) => network.embedded(network.last, id);
  const norm = (/** @type {Float32Array} */ row) =>
    Math.sqrt(row.reduce((sum, x) => sum + x * x, 0)) || 1;
  const mine = vector(own);
  const cosines = Float32Array.from(
    { length: network.vocabularyOf(network.last.name) },
    (_, id) => {
      const other = vector(id);
      return other.reduce((sum, x, i) => sum + x * mine[i], 0) / (norm(other) * norm(mine));
    },
  );
  cosines[own] = -Infinity;
  const ids = largest(cosines, N_NEAREST);
  const labels = ids.map((id) => tokenizer.label(id));
  const values = [1, ...ids.map((id) => cosines[id])];
  const figure = frameOf(item, "nearest");
  const { layout, data: [bars] } = figure; // prettier-ignore
  const [muted, accent] = bars.marker.color;
  Object.assign(bars, {
    x: values,
    y: values.map((_, at) => at),
    text: values.map((cosine) => numeral(cosine.toFixed(2))),
  });
  bars.marker.color = values.map((_, at) => (at ? accent : muted));
  layout.xaxis.range = [Math.min(0, ...values), 1.1];
  namedAxis(layout.yaxis, [
    `<b>${label(facts.labels[place])}</b>`,
    ...labels.map((token) => label(token)),
  ]);
  layout.yaxis.range = [values.length - 0.4, -0.6];
  layout.height = 140 + 32 * values.length;
  return { figure, position: place, labels, cosines: values.slice(1) };
};

export const answers = { positions, inputs, nearest_tokens: nearestTokens };
