// What is altered in a run, where it branches, which cells are lit: without a page.
import assert from "node:assert/strict";
import test from "node:test";

import { sentencesOf } from "../../transformer/browser/doubts.js";
import { PLAIN_ENGLISH } from "../../transformer/browser/plain_text.js";
import { unpacked } from "../../transformer/web/ask.js";
import { cellAt, cellBox, drawnFrame } from "../../transformer/web/cells.js";
import {
  branchAt,
  experiment,
  isAblated,
  isForwardOff,
  switchForward,
  withAblation,
} from "../../transformer/web/runs.js";
import { readPosition } from "../../transformer/web/selection.js";
import { controls, page, setKey, setQuery, shell } from "../../transformer/web/store.js";

const head = (/** @type {number} */ number, kind = "self") => ({
  stack: "decoder",
  kind,
  layer: 1,
  head: number,
});

test("heads join those of their layer and kind that are switched off in the same way", () => {
  const zero = withAblation(head(2), withAblation(head(0), []));
  assert.deepEqual(zero, [{ type: "ablate", stack: "decoder", layer: 1, heads: [0, 2] }]);
  const mean = withAblation(head(1), zero, "mean");
  assert.deepEqual(
    mean.map(({ heads, by }) => [heads, by]),
    [
      [[0, 2], undefined],
      [[1], "mean"],
    ],
  );
  const cross = withAblation(head(0, "cross"), mean);
  assert.deepEqual(
    [0, 1, 2].map((number) => isAblated(head(number, "cross"), cross)),
    [true, false, false],
  );
  const back = withAblation(head(0), cross); // that one alone is on again
  assert.ok(!isAblated(head(0), back) && isAblated(head(2), back) && isAblated(head(1), back));
});

test("a feed-forward is off where all of it is, and on again without touching another", () => {
  const off = { type: "ablate", stack: "decoder", layer: 1, part: "mlp_out" };
  const others = [
    { type: "add" },
    { part: "z" },
    { by: "mean" },
    { positions: [0] },
    { stack: "encoder" },
    { layer: 0 },
  ].map((change) => ({ ...off, ...change }));
  /** @type {any[]} */
  const asked = [];
  shell.generate = (/** @type {any} */ request) => void asked.push(request.interventions);
  const show = (/** @type {any[]} */ ...changes) => {
    page.run = /** @type {any} */ ({ interventions: changes.map((is) => ({ is })) });
  };
  for (const other of others) {
    show(other);
    assert.ok(!isForwardOff(off), JSON.stringify(other));
  }
  show(...others, off);
  assert.ok(isForwardOff(off));
  switchForward(off);
  show(...others);
  switchForward(off);
  assert.deepEqual(asked, [others, [...others, off]]);
});

test("an experiment is there for a network that writes alone", () => {
  const [Component, finding] = experiment(
    () => null,
    () => "a finding",
  );
  for (const stack of ["encoder", "decoder"]) {
    page.run = /** @type {any} */ ({ stack });
    const isShown = [Component({}), finding()].map(Boolean);
    assert.deepEqual(isShown, Array(2).fill(stack === "decoder"), stack);
  }
});

test("the token read is the chosen one of the run's text, else the run's own", () => {
  page.run = /** @type {any} */ ({
    ...{ stack: "decoder", labels: [..."abcde"], source_labels: [..."abcde"] },
    ...{ trace_start: 0, last_read: 3 },
  });
  for (const [stack, position] of /** @type {const} */ ([
    ["decoder", 1],
    ["encoder", 3],
  ])) {
    setQuery({ stack, index: 1 });
    assert.equal(readPosition(), position, stack);
  }
});

test("a branch keeps what was written before its step", () => {
  /** @type {any[]} */
  const asked = [];
  shell.generate = (/** @type {any[]} */ ...request) => void asked.push(request);
  const run = { run: "a", text: "x", ids: [1, 2, 3, 4, 5], n_prompt: 2, interventions: [] };
  page.run = /** @type {any} */ (run);
  controls.max_new_tokens = 1;
  branchAt(1, 9);
  assert.deepEqual(asked, [[{ interventions: [], forced_tokens: [3, 9], max_new_tokens: 2 }, "x"]]);
});

test("a second token that cannot be read reads the first instead", () => {
  page.run = /** @type {any} */ ({
    stack: "decoder",
    labels: [..."abcde"],
    source_labels: [..."abcde"],
    trace_start: 0,
  });
  const [source, early, late] = [
    { stack: "encoder", index: 2 },
    { stack: "decoder", index: 1 },
    { stack: "decoder", index: 4 },
  ];
  for (const [first, second, query, key] of [
    [source, early, early, source],
    [early, source, early, source],
    [early, late, late, early],
    [late, early, late, early],
  ]) {
    setQuery(first);
    page.key = null;
    setKey(second);
    assert.deepEqual([page.query, page.key], [query, key]);
  }
});

test("a range of cells is where Plotly draws it, and a place is in its cell", () => {
  const xaxis = { _offset: 10, _length: 100, range: [-0.5, 9.5] };
  const yaxis = { _offset: 20, _length: 50, range: [4.5, -0.5] }; // row 0 on top
  const box = { _fullLayout: { xaxis, yaxis } };
  const rounded = Object.entries(cellBox(box, 2, 3, 1, 1)).map(([side, px]) => [
    side,
    Math.round(px),
  ]);
  assert.deepEqual(Object.fromEntries(rounded), { left: 30, top: 30, width: 20, height: 10 });
  assert.deepEqual(cellAt(drawnFrame(box), 45, 35), { row: 1, column: 3 });
  assert.deepEqual(cellAt(drawnFrame(box), 5, 75), { row: null, column: null });
});

test("arrays behind an answer are found where they begin", () => {
  const text = new TextEncoder().encode(
    JSON.stringify([
      { a: null },
      [
        [["a"], "float32", 2],
        [["b"], "uint8", 3],
      ],
    ]).padEnd(80),
  );
  const buffer = new ArrayBuffer(4 + text.length + 16);
  new DataView(buffer).setUint32(0, text.length, true);
  new Uint8Array(buffer).set(text, 4);
  new Float32Array(buffer, 4 + text.length, 2).set([0.5, -2]);
  new Uint8Array(buffer, 4 + text.length + 8, 3).set([7, 8, 9]);
  const { a, b } = unpacked(buffer);
  assert.deepEqual(
    [[...a], [...b]],
    [
      [0.5, -2],
      [7, 8, 9],
    ],
  );
});

test("a line ends a sentence, an abbreviation alone does not", () => {
  const model = /** @type {any} */ ({ metadata: { source_text: PLAIN_ENGLISH } });
  const sentences = sentencesOf(model, 'Mr. Fox ran. "He sat." She saw Dr.\nThen it ended.');
  assert.deepEqual(sentences, ["Mr. Fox ran.", '"He sat."', "She saw Dr.", "Then it ended."]);
});
