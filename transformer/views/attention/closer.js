// What of a large matrix is drawn. With more cells than the picture has pixels, cells are put
// together; once zoomed in, each is drawn for itself.

import { say } from "../../ui/static/messages.js";
import { plotlyIfLoaded } from "../../ui/static/plotly.js";

/** @typedef {import("./values.js").Part} Part */

export const MOST = 640; // cells along a side that are drawn
const BESIDE = 0.25; // of what is seen, drawn at each side of it too, for a picture that is dragged

// Where an axis of `count` cells begins and ends, of what is seen.
/** @type {(range: number[] | undefined, count: number) => number[]} */
const seen = (range, count) => {
  const [low, high] = range ? [Math.min(...range), Math.max(...range)] : [-0.5, count - 0.5];
  const inside = (/** @type {number} */ place) => Math.min(count, Math.max(0, place));
  return [inside(Math.floor(low + 0.5)), inside(Math.ceil(high + 0.5))];
};
/** @type {(ends: number[], count: number, step: number) => number[]} */
const widened = ([from, to], count, step) => {
  const more = Math.ceil(BESIDE * (to - from));
  const start = Math.max(0, from - more);
  return [start - (start % step), Math.min(count, to + more)];
};

// The part of a matrix of `down` rows and `across` columns to draw while axes show these ranges.
/** @type {(down: number, across: number, ranges?: {x: number[], y: number[]}) => Part} */
export const partOf = (down, across, ranges) => {
  const [y, x] = [seen(ranges?.y, down), seen(ranges?.x, across)];
  const step = Math.max(1, Math.ceil(Math.max(y[1] - y[0], x[1] - x[0]) / MOST));
  const [[top, bottom], [left, right]] = [widened(y, down, step), widened(x, across, step)];
  return { top, left, down: bottom - top, across: right - left, step };
};

// Where the first cell of a part stands, and how far apart its cells are, as Plotly has it.
/** @type {(part: Part) => {x0: number, dx: number, y0: number, dy: number}} */
export const placesOf = ({ top, left, step }) => {
  const half = (step - 1) / 2;
  return { x0: left + half, dx: step, y0: top + half, dy: step };
};

// The cell that a drawn one shows, of those that are put together in it.
// values(part): rows of what is coloured; x, y: where the drawn one stands.
/** @type {(x: number, y: number, part: Part, values: (part: Part) => Float32Array[]) => {row: number, column: number}} */
export const cellShown = (x, y, part, values) => {
  const half = (part.step - 1) / 2;
  const [top, left] = [y - half, x - half];
  const down = Math.min(part.step, part.top + part.down - top);
  const across = Math.min(part.step, part.left + part.across - left);
  const best = { row: top, column: left, value: -1 };
  values({ top, left, down, across, step: 1 }).forEach((cells, row) =>
    cells.forEach((value, column) => {
      if (Math.abs(value) <= best.value || Number.isNaN(value)) return;
      Object.assign(best, { row: top + row, column: left + column, value: Math.abs(value) });
    }),
  );
  return { row: best.row, column: best.column };
};

// Of the heatmap `box`: fill(trace, down, across, values) gives a trace that is to be drawn its
// cells; follow() draws those that a zoom or a drag shows; cellAt({x, y}) is the cell pointed at;
// note() says that cells are put together, "" where they are not.
export const closerLook = (box) => {
  /** @type {any} */
  let drawn = null; // {down, across, values, part}
  const fill = (trace, down, across, values) => {
    drawn = { down, across, values, part: partOf(down, across) };
    Object.assign(trace, { z: values(drawn.part), ...placesOf(drawn.part) });
  };
  const follow = async () => {
    if (!drawn || partOf(drawn.down, drawn.across).step === 1) return;
    const { xaxis, yaxis } = box._fullLayout;
    const part = partOf(drawn.down, drawn.across, { x: xaxis.range, y: yaxis.range });
    if (JSON.stringify(part) === JSON.stringify(drawn.part)) return;
    drawn.part = part;
    await plotlyIfLoaded().restyle(box, { z: [drawn.values(part)], ...placesOf(part) }, [0]);
  };
  const cellAt = ({ x, y }) =>
    drawn && drawn.part.step > 1
      ? cellShown(x, y, drawn.part, drawn.values)
      : { row: y, column: x };
  const note = () => {
    const step = drawn?.part.step ?? 1;
    if (step === 1) return "";
    return say(
      "Each point of the picture stands for {n} × {n} cells and shows the largest; drag over a " +
        "part to see every cell.",
      { n: step },
    );
  };
  return { fill, follow, cellAt, note };
};
