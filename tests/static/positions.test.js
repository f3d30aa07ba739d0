// Positions: which are drawn, and the map from a position's vector to that of one k further on.
import assert from "node:assert/strict";
import test from "node:test";

import { drawnPositions } from "../../transformer/browser/questions/positions.js";
import { answers } from "../../transformer/browser/questions/shift.js";
import { vectors } from "./vectors.js";

/** @import { FittedShift } from "../../transformer/views/positions/types" */

const [SIZE, LENGTH] = [12, 40];

/** @type {(table: number[][], fitted: boolean) => any} */
const itemOf = (table, fitted) => ({
  facts: { stacks: ["decoder"] },
  labelsOf: () => ["a"],
  model: {
    network: {
      stacks: {
        decoder: {
          positions: (/** @type {number} */ at) => Float32Array.from(table[at]),
          maxLen: LENGTH,
        },
      },
    },
    frames: {
      shift: {
        data: [{ hovertemplate: "" }],
        layout: { meta: { fitted }, xaxis: {}, yaxis: { title: { text: "y" } } },
      },
    },
  },
});
/** @type {(first: number, place: (pair: number) => [number, number]) => number[][]} */
const waves = (first, place) =>
  Array.from({ length: LENGTH }, (_, position) => {
    const row = new Array(SIZE).fill(0);
    for (let pair = 0; pair < SIZE / 2; pair += 1) {
      const angle = (position + first) * 1e4 ** ((-2 * pair) / SIZE);
      const [sine, cosine] = place(pair);
      [row[sine], row[cosine]] = [Math.sin(angle), Math.cos(angle)];
    }
    return row;
  });
/** @type {(matrix: Float32Array[], row: number[]) => number[]} */
const product = (matrix, row) =>
  matrix.map((line) => line.reduce((sum, factor, at) => sum + factor * row[at], 0));

test("of a large matrix those positions are drawn that Python draws", () => {
  for (const [count, size, places] of vectors.positions)
    assert.deepEqual(drawnPositions(count, size), places, `${count} of ${size}`);
});

test("waves are rotated by one matrix, wherever their sines and cosines are", async () => {
  const tables = [
    waves(0, (pair) => [2 * pair, 2 * pair + 1]),
    waves(2, (pair) => [pair, SIZE / 2 + pair]),
  ];
  for (const table of tables) {
    const {
      figure,
      largest_miss: miss,
      n_pairs: pairs,
    } = /** @type {FittedShift} */ (await answers.shift(itemOf(table, false), { k: 3 }));
    assert.deepEqual([pairs, miss < 1e-5], [LENGTH - 3, true]);
    for (const position of [0, 17])
      product(figure.data[0].z, table[position]).forEach((x, at) =>
        assert.ok(Math.abs(x - table[position + 3][at]) < 1e-5),
      );
  }
});

test("the best matrix leaves errors at right angles to what it is given", async () => {
  const table = Array.from({ length: LENGTH }, (_, position) =>
    Array.from({ length: SIZE }, (__, at) => Math.sin(1.7 * position * (at + 1) + at)),
  );
  const {
    figure,
    n_pairs: pairs,
    relative_miss: miss,
  } = /** @type {FittedShift} */ (await answers.shift(itemOf(table, true), { k: 2 }));
  const matrix = figure.data[0].z;
  const missed = table
    .slice(0, pairs)
    .map((row, at) => product(matrix, row).map((x, i) => x - table[at + 2][i]));
  for (let given = 0; given < SIZE; given += 1)
    for (let made = 0; made < SIZE; made += 1) {
      const sum = missed.reduce((all, errors, at) => all + errors[made] * table[at][given], 0);
      assert.ok(Math.abs(sum) < 1e-4, `${given}, ${made}: ${sum}`);
    }
  const squares = (/** @type {number[][]} */ rows) =>
    rows.flat().reduce((sum, x) => sum + x * x, 0);
  const share = Math.sqrt(squares(missed) / squares(table.slice(2)));
  assert.ok(Math.abs(miss - share) < 1e-5 && miss > 0.01, String(miss));
});
