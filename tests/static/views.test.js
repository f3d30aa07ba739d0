// Views that explain a run or compare two: what they say of answers, and what a press on them chooses.
import assert from "node:assert/strict";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { fire, press, settled } from "../kit/dom.js";
import { changesOf, requests, drawn, drawnView, prepare, show, texts, valuesOf } from "./drawn.js";
import { fields, setFields } from "../../transformer/web/fields.js";
import { Figure } from "../../transformer/web/figure.js";
import { openSection, Section } from "../../transformer/web/part.js";
import { html, signal } from "../../transformer/web/preact.js";
import { controls, page, setHead, setQuery, shell } from "../../transformer/web/store.js";
import { Lines } from "../../transformer/views/attention/lines.js";
import { useReaders } from "../../transformer/views/attention/numbers.js";
import { LargeHead } from "../../transformer/views/journey/large_head.js";
import { mount as architecture } from "../../transformer/views/model/architecture.js";
import { mount as compare } from "../../transformer/views/runs/compare.js";
import { Board } from "../../transformer/views/masks/mask_board.js";
import { mount as editMask } from "../../transformer/views/masks/edit_mask.js";
import { mount as positions } from "../../transformer/views/positions/positions.js";
import { mount as prediction } from "../../transformer/views/prediction/prediction.js";

const NO_CELLS = {
  labels: { queries: [], keys: [] },
  where: "",
  words: () => "",
  allowed: () => false,
  edit: () => null,
  lineEdit: () => null,
};
const state = signal(/** @type {any} */ (NO_CELLS));
const FIGURE = { data: [], layout: { xaxis: {}, yaxis: {}, meta: {} } };
const KINDS = ["self", "cross"].map((kind) => ({ stack: "decoder", kind, n_layers: 2 }));

test("a mask is edited by cells and lines before the text is run with it", async () => {
  const labels = ["a", "b", "c"];
  const used = { query_labels: labels, key_labels: labels, window: null };
  const allowed = Uint8Array.of(0b10011011, 0b10000000); // 3 x 3, causal, from the highest bit
  show();
  const element = await drawnView(editMask, { used_mask: { ...used, allowed } });
  const says = () => texts(element, ".mask-says")[0];
  const board = element.querySelector("canvas");
  /** @type {(...keys: string[]) => Promise<void>} */
  const type = async (...keys) => {
    for (const key of keys) fire(board, "keydown", { key });
    await settled(element);
  };
  assert.equal(says(), "decoder self-attention, all layers: 6 of 9 cells are allowed, as in the run that is shown."); // prettier-ignore
  assert.equal(element.querySelector(".apply").getAttribute("aria-disabled"), "true");
  await type("ArrowRight"); // from the first cell, 0, 0
  assert.equal(texts(element, ".board-cell")[0], "Query 0 a, key 1 b: hidden by the mask");
  await type("Enter");
  assert.equal(texts(element, ".board-cell")[0], "Query 0 a, key 1 b: allowed by you");
  assert.equal(says(), "decoder self-attention, all layers: 7 cells would be allowed. Not yet applied."); // prettier-ignore
  await type("ArrowUp"); // the label of the key
  await type("Enter");
  assert.equal(texts(element, ".board-cell")[0], "Column of key 1 b: forbidden by you");
  assert.match(says(), /: 4 cells would be allowed/); // the column's own cell is forgotten
  press(element.querySelector(".apply"));
  const mask = {
    type: "mask",
    stack: "decoder",
    kind: "self",
    layer: null,
    without: [],
    allow: [],
  };
  assert.deepEqual(requests[0].interventions, [{ ...mask, forbid: [[null, 1]] }]);
  press(element.querySelector(".clear"));
  await settled(element);
  assert.match(says(), /6 of 9 cells are allowed/);
});

test("a mask's board shows each cell as it is allowed and edited, and a press changes the one under it", async () => {
  const draw = chance(61);
  /** @type {any} */
  const canvases = Object.getPrototypeOf(globalThis.document.body);
  const { getContext } = canvases;
  /** @type {any} */
  let pen;
  canvases.getContext = function context() {
    if (this.localName !== "canvas" || !this.classList.contains("board"))
      return getContext.call(this);
    pen = {
      boxes: [],
      signs: [],
      setTransform: () => Object.assign(pen, { boxes: [], signs: [] }),
    };
    pen.fillRect = (
      /** @type {number} */ x,
      /** @type {number} */ y,
      /** @type {number} */ width,
      /** @type {number} */ height,
    ) => pen.boxes.push({ x, y, width, height, colour: pen.fillStyle });
    pen.fillText = (/** @type {string} */ sign, /** @type {number} */ x, /** @type {number} */ y) =>
      pen.signs.push({ sign, x, y });
    return pen;
  };
  /** @type {any[][]} */
  const pressed = [];
  const element = await drawn(
    (part) =>
      html`<${Board} part=${part} shown=${state.value} change=${(/** @type {any} */ { query, key }) => pressed.push([query, key])} />`,
  );
  for (const [queries, keys] of [
    [3, 4],
    [20, 30],
    [150, 300],
  ]) {
    const names = (/** @type {number} */ count, /** @type {string} */ sign) =>
      Array.from({ length: count }, (_, at) => `${sign}${at}`);
    const cells = Array.from({ length: queries }, () =>
      Array.from({ length: keys }, () => ({
        is: draw.is(),
        edit: draw.is(0.2) ? draw.one(["allow", "forbid"]) : null,
      })),
    );
    state.value = {
      ...{
        labels: { queries: names(queries, "q"), keys: names(keys, "k") },
        where: "decoder",
        words: (/** @type {any} */ cell) => JSON.stringify(cell),
      },
      allowed: (/** @type {number} */ query, /** @type {number} */ key) => cells[query][key].is,
      edit: (/** @type {number} */ query, /** @type {number} */ key) => cells[query][key].edit,
      lineEdit: (/** @type {string} */ line) => (line === "1,*" ? "forbid" : null),
    };
    await settled(element);
    const board = element.querySelector("canvas");
    const side = parseFloat(board.style.width) / keys;
    assert.equal(parseFloat(board.style.height), side * queries);
    assert.ok(
      Number.isInteger(side) &&
        side >= 4 &&
        side <= 24 &&
        side * Math.max(queries, keys) <= Math.max(2200, 4 * keys),
      `${side}`,
    );
    const of = new Map(
      pen.boxes
        .filter((/** @type {any} */ box) => box.width > side / 2 && box.height > 1)
        .map((/** @type {any} */ box) => [`${box.y / side},${box.x / side}`, box.colour]),
    );
    const colours = new Map();
    for (const [query, row] of cells.entries())
      for (const [key, { is, edit }] of row.entries()) {
        const colour = of.get(`${query},${key}`);
        assert.equal(colour !== undefined, is || edit !== null, `${query},${key}`);
        if (colour === undefined) continue;
        const kind = edit ?? "as it is";
        assert.equal(colour, colours.get(kind) ?? colour);
        colours.set(kind, colour);
      }
    assert.ok(new Set(colours.values()).size > 1);
    const edits = cells.flat().filter(({ edit }) => edit);
    if (side >= 8) {
      assert.equal(pen.signs.length, edits.length);
      for (const { sign, x, y } of pen.signs) {
        const { edit } = cells[Math.floor(y / side)][Math.floor(x / side)];
        assert.deepEqual(
          [sign, x % side, y % side],
          [edit === "allow" ? "+" : "×", side / 2, side / 2],
        );
      }
    } else {
      const lines = pen.boxes.filter((/** @type {any} */ { height }) => height === 1);
      assert.equal(lines.length, edits.filter(({ edit }) => edit === "forbid").length);
      for (const { x, y } of lines)
        assert.equal(cells[Math.floor(y / side)][Math.floor(x / side)].edit, "forbid");
    }
    const labels = element.querySelectorAll(".of-queries bdi");
    const tops = labels.map((/** @type {any} */ each) => parseFloat(each.style.top));
    for (const [at, label] of labels.entries()) {
      const [, sign, number] = /(×?) q(\d+)/.exec(label.textContent) ?? [];
      assert.equal(tops[at], (Number(number) + 0.5) * side);
      assert.deepEqual(
        [sign, label.getAttribute("class")],
        number === "1" ? ["×", "is-edited"] : ["", ""],
      );
      if (at) assert.ok(tops[at] - tops[at - 1] >= 16 || side >= 16, "labels have room");
    }
    const frame = element.querySelector(".board-frame");
    for (let round = 0; round < 12; round += 1) {
      const [query, key] = [draw.whole(-1, queries), draw.whole(-1, keys)];
      pressed.splice(0);
      fire(frame, "click", { clientX: (key + 0.5) * side, clientY: (query + 0.5) * side });
      const isOn = query < queries && key < keys && (query >= 0 || key >= 0);
      assert.deepEqual(
        pressed,
        isOn ? [[query, key]] : [],
        `${query},${key} of ${queries},${keys}`,
      );
      fire(frame, "pointermove", { clientX: (key + 0.5) * side, clientY: (query + 0.5) * side });
      await settled(element);
      const cursor = element.querySelector(".board-cursor");
      assert.equal(cursor.hasAttribute("hidden"), !isOn);
      if (isOn && query >= 0 && key >= 0)
        assert.deepEqual(
          ["left", "top", "width", "height"].map((name) => parseFloat(cursor.style[name])),
          [key * side, query * side, side, side],
        );
      if (isOn) assert.equal(texts(element, ".board-cell")[0], JSON.stringify({ query, key }));
    }
  }
  canvases.getContext = getContext;
});

test("positions are summed as the answer has them, and asked for by stack", async () => {
  /** @type {any[]} */
  const questions = [];
  const lengths = { token: 3, position: 4, sum: 5 };
  const inputs = {
    ...{ lengths, normalised: false, difference: 1e-7, position: 2, label: "␣sat", strips: FIGURE },
    token: FIGURE,
  };
  show({ adds_positions: true, stacks: ["decoder"], d_model: 8 });
  const prepared = {
    positions: (/** @type {any} */ data) => {
      questions.push(data);
      return { figure: { ...FIGURE, layout: { ...FIGURE.layout, meta: { used: 5 } } } };
    },
    inputs,
    shift: { figure: FIGURE, k: 1, fitted: false, n_pairs: 39, largest_miss: 1e-6, largest: 20 },
  };
  fields.more = "inputs"; // this section is open
  const element = await drawnView(positions, prepared);
  assert.deepEqual(texts(element, ".used"), ["5"]);
  assert.deepEqual([...new Set(questions.map(({ which }) => which))], ["matrix", "similarity"]);
  assert.match(texts(element, ".input-lengths")[0], /tokens 3\.00, positions 4\.00, their sums 5\.00\..*what the first layer reads/); // prettier-ignore
  assert.match(texts(element, ".input-title")[0], /token 2 ␣sat/);
  fields.more = "curves";
  await settled(element, () => element.querySelector(".dimensions") !== null);
  const [box] = element.querySelectorAll(".dimensions");
  fire(box, "change", { target: { value: "7, 2" } });
  await settled(element);
  assert.deepEqual(questions.at(-1).dimensions, [7, 2]);
  for (const wrong of ["8", "1, 1", "-1", "1.5", ""]) {
    fire(box, "change", { target: { value: wrong } });
    await settled(element);
    assert.match(page.status.text, /different whole numbers from 0 to 7; got/, wrong);
    assert.deepEqual(questions.at(-1).dimensions, [7, 2]);
  }
  show({ adds_positions: false, is_rotary: false, biases_scores: false, stacks: ["decoder"] });
  await settled(element);
  assert.match(texts(element, "p")[0], /is not told where a token stands/);
  fields.more = "";
});

test("a block of the network says what it is, and leads to its view", async () => {
  /** @type {string[]} */
  const tabs = [];
  shell.openTab = (name) => {
    tabs.push(name);
    return undefined;
  };
  const block = (/** @type {string} */ kind, more = {}) => ({
    ...{ name: `decoder.${kind}`, kind, stack: "decoder", title: kind, short: "4", each: 1200 },
    ...{ times: 2, shape: "T x 8", does: `It does ${kind}.`, shared_with: null, ...more },
  });
  const stack = {
    ...{ stack: "decoder", parallel: false, reads: "ids", writes: "words", shape: "T", times: "x 2" },
    before: [block("embedding")],
    sublayers: [block("self"), block("feed_forward")].map((each) => ({ branch: [each], after: [] })),
    after: [block("head", { each: 0, times: 1, shared_with: "decoder.embedding" })],
  }; // prettier-ignore
  const leads = { self: { title: "Attention", tab: "attention" } };
  show();
  page.inBrowser = [];
  const element = await drawnView(architecture, {
    architecture: { title: "GPT", n_parameters: 12345, stacks: [stack], leads, formulas: [] },
  });
  assert.deepEqual(texts(element, "h3"), ["GPT, 12,345 parameters"]);
  assert.match(texts(element, ".architecture-letters")[0], /\(6 in this run\)/);
  const says = () => texts(element, ".architecture-says")[0];
  const [embedding, self, , output] = element.querySelectorAll(".block");
  assert.equal(element.querySelectorAll(".block").length, 4);
  fire(embedding, "focus");
  await settled(element);
  assert.match(says(), /^embedding T x 8, 1,200 × 2 parameters\. It does embedding\.$/);
  fire(output, "focus");
  await settled(element);
  assert.match(says(), /T x 8, 0 of its own, shared with “embedding”\./);
  press(self);
  await settled(element);
  assert.deepEqual(tabs, ["attention"]);
  assert.match(says(), /It does self\. Press to open Attention\.$/);
  assert.deepEqual(valuesOf(element, ".is-here", "data-block"), ["decoder.self"]);
  page.forward = { stack: "decoder", layer: 1 }; // its card is open: but another block is pointed at
  await settled(element);
  assert.deepEqual(valuesOf(element, ".is-here", "data-block"), ["decoder.self"]);
  show();
  await settled(element);
  assert.deepEqual(valuesOf(element, ".is-here", "data-block"), ["decoder.feed_forward"]);
});

test("two runs are compared in the chosen head, or the nearest", async () => {
  /** @type {any[]} */
  const questions = [];
  const [first, second] = [
    show({ text: "one", n_heads: 2, kinds: KINDS.slice(0, 1) }),
    show({ text: "two", n_heads: 4, kinds: KINDS }),
  ];
  setHead({ ...KINDS[1], layer: 1, head: 3 });
  const meta = { limit: 0.5, kept: [0.25, 0.75] };
  const element = await drawnView(compare, {
    kept: (/** @type {any} */ { runs }) => ({ kept: runs.map(() => true) }),
    compare: {
      texts: [{ name: "text", a: ["x", "y"], b: ["x", "z"], counts: { equal: 1, replaced: 1 },
        pairs: [[0, 0, "equal"], [1, 1, "replaced"]] }],
    },
    outcomes: { figure: FIGURE },
    difference: (/** @type {any} */ data) => {
      questions.push(data);
      return { figure: { data: [], layout: { xaxis: { title: {} }, yaxis: { title: {} }, meta } } };
    },
  }); // prettier-ignore
  const pair = { run: second, other: first };
  const heads = { site: "decoder.1.cross", head: 3, other_site: "decoder.0.self", other_head: 0 };
  assert.deepEqual(questions.at(-1), { ...pair, ...heads });
  assert.match(texts(element, ".compare-text p")[0], /^1 in both, 1 replaced\.$/);
  assert.deepEqual(texts(element, ".side-b .replaced"), ["z"]);
  assert.match(texts(element, ".difference-says")[0], /from -0\.500 to 0\.500\. Of .* 25\.0 % in A and 75\.0 % in B/); // prettier-ignore
  press(element.querySelectorAll(".side-a button")[1]);
  assert.deepEqual(page.query, { stack: "decoder", index: 1 });
  fire(element.querySelector(".pick-of-heads"), "change", { target: { value: "mean" } });
  await settled(element);
  assert.deepEqual([questions.at(-1).head, questions.at(-1).other_head], ["mean", 0]);
  assert.equal(page.head.head, 3);
  fire(element.querySelector(".pick-of-heads"), "change", { target: { value: "1" } });
  await settled(element);
  assert.deepEqual([questions.at(-1).head, page.head.head], [1, 1]);
});

/** @type {any} of a token in the middle of what was written */
const JOURNEY = {
  ...{ position: 3, target: 2, target_label: "␣the", logits: [0, 1, 3, 2, -1, -2], never: 0 },
  ...{ likeliest: [{ id: 2, label: "␣fox" }, { id: 3, label: "␣sat" }], next: { id: 1 } },
  lens: [{ id: 3, label: "x" }, { id: 2, label: "␣fox" }, { id: 2, label: "␣fox" }],
}; // prettier-ignore

test("a step of the text tells what was chosen, and from what", async () => {
  show();
  setQuery({ stack: "decoder", index: 3 }); // step 2 of 3: it chose token 4
  Object.assign(controls, { method: "sample", temperature: 0.5, top_k: 2, top_p: 1 });
  const element = await drawnView(prediction, { journey: JOURNEY, lens: { figure: null } });
  await settled(element, () => element.querySelectorAll(".candidate").length > 1);
  assert.match(texts(element, ".step-title")[0], /^Step 2 of 3: .*“␣the” with probability 0\.250$/);
  assert.deepEqual(valuesOf(element, ".candidate", "data-id"), ["2", "3", "1"]);
  // by hand: softmax of the logits; at half the temperature without the padding; of the first two
  assert.deepEqual(texts(element, ".value"), ["63 %", "87 %", "88 %", "23 %", "12 %", "12 %", "8.6 %", "1.6 %", "cut by top-k"]); // prettier-ignore
  assert.equal(element.querySelector(".tree-box").getAttribute("hidden"), "true");
  assert.match(texts(element, ".section-finding").join(), /^2\.00 bits per generated token, on average,fox from layer 0 on/); // prettier-ignore
  press(element.querySelectorAll(".candidate")[1]);
  assert.deepEqual(requests[0].forced_tokens, [4, 3]);
  press(element.querySelector(".next"));
  assert.deepEqual(page.query, { stack: "decoder", index: 4 });
  await settled(element);
  assert.match(texts(element, ".step-title")[0], /^Step 3 of 3/);
  press(element.querySelector(".previous"));
  press(element.querySelector(".previous"));
  assert.equal(page.query.index, 3);
});

test("lines are told from who reads to what is read, also across", async () => {
  const weights = Float32Array.of(0.9, 0.1, 0.25, 0.75);
  const side = (/** @type {string[]} */ names) => ({ y: [0, 1], text: names, customdata: names, marker: {} }); // prettier-ignore
  const columns = (/** @type {string[][]} */ labels) => ({
    data: [...labels.map(side), {}],
    layout: {
      ...{ meta: { strokes: { all: [{}, {}], one: [{}, {}] }, colours: {}, labels } },
      ...{ yaxis: { range: [1.5, -0.5] }, margin: { l: 9, r: 9 }, height: 300 },
    },
  });
  const source = ["un", "renard"];
  prepare({
    heatmap: () => ({ figure: { layout: { meta: { query_labels: ["a", "fox"], key_labels: source } } }, shape: [2, 2], allowed: Uint8Array.of(255), weights }),
    columns: { lines: columns([["a", "fox"], source]), alignment: columns([source, ["a", "fox"]]) },
  }); // prettier-ignore
  show({ kinds: KINDS, labels: ["a", "fox"], source_labels: source });
  Object.assign(fields, { threshold: "0.2", by: "read", over_heads: "head" });
  const at = { ...KINDS[1], layer: 0, head: 0 };
  const cell = { pin: null, rowOf: () => -1, tokenOf: () => null };
  for (const picture of ["lines", "alignment"]) {
    fields.picture = picture;
    const element = await drawn((part) => html`<${Lines} part=${part} cell=${cell} at=${at} />`);
    await settled(element, () => valuesOf(element, "[role=img]", "aria-label").length > 0);
    assert.match(valuesOf(element, "[role=img]", "aria-label")[0] ?? "", /0 a reads 0 un, 0\.90; 1 fox reads 1 renard, 0\.75/, picture); // prettier-ignore
  }
});

test("who reads the second token is asked of both, and not told of another", async () => {
  /** @type {any[]} */
  const questions = [];
  /** @type {any} */
  let readers;
  show();
  setQuery({ stack: "decoder", index: 4 });
  page.key = { stack: "decoder", index: 1 };
  const element = await drawn(
    (part) => {
      readers = useReaders(part);
      return null;
    },
    { readers: (/** @type {any} */ data) => ({ place: questions.push(data) }) },
  );
  await settled(element, () => readers !== null);
  const { run } = page.run;
  assert.deepEqual(questions, [{ run, stack: "decoder", query: 4, kind: "self", key: 1 }]);
  page.key = { stack: "decoder", index: 2 };
  await settled(element, () => questions.length === 2 && readers?.place === 2);
  page.key = null;
  await settled(element, () => readers === null);
});

test("a large head tells its chosen cell", async () => {
  show();
  const labels = page.run.labels;
  const numbers = {
    ...{ weights: Float32Array.from({ length: 36 }, (_, at) => at / 36), allowed: new Uint8Array(36).fill(1) },
    ...{ labels: { query: labels, key: labels }, figure: { data: [], layout: { meta: {} } } },
  }; // prettier-ignore
  setQuery({ stack: "decoder", index: 4 });
  page.key = { stack: "decoder", index: 1 };
  const cell = { over: null, moves: {} };
  const at = { stack: "decoder", kind: "self", layer: 1, head: 0 };
  const element = await drawn(
    (part) =>
      html`<${LargeHead} part=${part} height=${400} shown=${{ numbers: null, refusals: 0 }} numbers=${numbers} cell=${cell} at=${at} row=${4} />`,
    { atlas: {} },
  );
  assert.equal(texts(element, ".cell-says")[0], "␣the reads ␣fox, 0.694"); // (4 x 6 + 1) / 36
  page.key = null;
  await settled(element);
  assert.equal(texts(element, ".cell-says")[0], "Click a cell: which other heads read like this?");
  show({ interventions: changesOf({ type: "ablate", stack: "decoder", layer: 1, heads: [0] }) });
  await settled(element);
  assert.match(texts(element, ".cell-says")[0], /^Layer 1, head 0 is switched off/);
});

test("a picture's numbers are a table, a page of rows and columns at a time", async () => {
  const draw = chance(71);
  for (const [height, width] of [
    [3, 4],
    [60, 30],
    [24, 13],
  ]) {
    const z = Array.from({ length: height }, () =>
      Array.from({ length: width }, () => draw.one([draw.whole(-9, 9), draw.between(-2, 2)])),
    );
    const labels = (/** @type {string} */ sign, /** @type {number} */ count) =>
      Array.from({ length: count }, (_, at) => `${sign}${at}`);
    const meta = { row_labels: labels("r", height), column_labels: labels("c", width) };
    const figure = { data: [{ type: "heatmap", z }], layout: { meta, xaxis: {}, yaxis: {} } };
    const element = await drawn(
      (part) => html`<${Figure} part=${part} name="some" figure=${figure} />`,
    );
    await settled(element, () => element.querySelector(".as-table") !== null);
    assert.equal(element.querySelector("table"), null);
    fire(element.querySelector(".as-table"), "toggle", { target: { open: true } });
    await settled(element);
    let [top, left] = [0, 0];
    for (let round = 0; round < 8; round += 1) {
      const names = (/** @type {string} */ selector) => texts(element, selector);
      const rows = z.slice(top, top + 24);
      assert.deepEqual(
        names("tbody th"),
        rows.map((_, at) => `${top + at} r${top + at}`),
      );
      assert.deepEqual(
        names("thead th").slice(1),
        z[0].slice(left, left + 12).map((_, at) => `${left + at} c${left + at}`),
      );
      const cell = (/** @type {number} */ value) =>
        Number.isInteger(value) ? String(value) : value.toFixed(4);
      assert.deepEqual(
        names("tbody td"),
        rows.flatMap((row) => row.slice(left, left + 12).map(cell)),
      );
      const pagers = element.querySelectorAll(".pager");
      const [down, across] = [
        pagers[0].querySelectorAll("button"),
        pagers[1].querySelectorAll("button"),
      ];
      assert.deepEqual([down.length, across.length], [height > 24 ? 2 : 0, width > 12 ? 2 : 0]);
      if (down.length)
        assert.match(
          pagers[0].textContent,
          new RegExp(`rows ${top} to ${Math.min(height, top + 24) - 1} of ${height}`),
        );
      if (across.length)
        assert.match(
          pagers[1].textContent,
          new RegExp(`columns ${left} to ${Math.min(width, left + 12) - 1} of ${width}`),
        );
      const by = draw.one([-1, 1]);
      const isDown = draw.is();
      const button = (isDown ? down : across)[by < 0 ? 0 : 1];
      if (!button) continue;
      const [at, size, total] = isDown ? [top, 24, height] : [left, 12, width];
      const to = Math.max(0, at + by * size);
      const isOff = to === at || to >= total;
      assert.equal(button.getAttribute("aria-disabled"), String(isOff));
      press(button);
      await settled(element);
      if (isOff) continue;
      if (isDown) top = to;
      else left = to;
    }
  }
});

test("positions of a link are checked, and a step to a later one is a whole number that is known", async () => {
  const draw = chance(72);
  /** @type {any[]} */
  const asked = [];
  show({ adds_positions: true, stacks: ["encoder", "decoder"], d_model: 16 });
  const shift = {
    figure: FIGURE,
    k: 3,
    fitted: true,
    n_pairs: 39,
    largest_miss: 1,
    relative_miss: 0.25,
    chance: 0.5,
    largest: 20,
  };
  const element = await drawnView(positions, {
    positions: { figure: FIGURE },
    inputs: null,
    shift: (/** @type {any} */ data) => (asked.push(data), shift),
  });
  for (const [texts_, says] of /** @type {[Record<string, string>, RegExp | null][]} */ ([
    [{ stack: "1" }, null],
    [{ stack: "2" }, /stack must be .* from 0 to 1; got 2/],
    [{ steps: "4096" }, null],
    [{ steps: "4097" }, /steps must be .* from 1 to 4096; got 4097/],
    [{ steps: "0" }, /steps must be .* from 1 to/],
    [{ dimensions: "0,15" }, null],
    [{ dimensions: "0,16" }, /whole numbers from 0 to 15; got 0,16/],
    [{ dimensions: "1,1" }, /different whole numbers/],
    [{ dimensions: [...Array(13).keys()].join() }, /1 to 12 different/],
    [{ dimensions: [...Array(12).keys()].join() }, null],
  ])) {
    const [problem] = setFields(texts_);
    if (says) assert.match(problem, says);
    else assert.equal(problem, undefined, JSON.stringify(texts_));
  }
  Object.assign(fields, { stack: 1, steps: 1 });
  fields.more = "shift";
  await settled(element, () => element.querySelector(".steps-k") !== null);
  await settled(element);
  assert.deepEqual(asked.at(-1), { run: page.run.run, stack: "decoder", k: 1, shown: 16 });
  assert.match(
    texts(element, ".shift-says")[0],
    /over 39 pairs of positions\) misses by 25\.0 % .* by about 50\.0 %/,
  );
  let k = 1;
  for (let round = 0; round < 15; round += 1) {
    const value = draw.one([String(draw.whole(-2, 24)), "1.5", ""]);
    const isRight = /^\d+$/.test(value) && Number(value) >= 1 && Number(value) <= 20;
    fire(element.querySelector(".steps-k"), "change", { target: { value } });
    await settled(element);
    if (isRight) k = Number(value);
    else assert.match(page.status.text, /^k must be a whole number from 1 to 20; got/);
    assert.equal(fields.steps, k);
  }
  fire(element.querySelector(".steps-shown"), "change", { target: { value: "" } });
  await settled(element);
  assert.equal(asked.at(-1).shown, null);
  fields.steps = 5;
  show({ adds_positions: true, stacks: ["encoder", "decoder"], d_model: 16 });
  assert.equal(fields.steps, 5); // the same kind of network
  show({ adds_positions: true, stacks: ["decoder"], d_model: 16 });
  assert.equal(fields.steps, 1);
  fields.more = "";
  fields.stack = 0;
});

test("sections are opened by their headings, one by one, or by a link alone", async () => {
  const names = ["a", "b"];
  const element = await drawn(() =>
    names.map(
      (name) =>
        html`<${Section} key=${name} name=${name} title=${name} finding=${`f${name}`}><i>${name}</i><//>`,
    ),
  );
  const open = () =>
    element
      .querySelectorAll(".section")
      .map((/** @type {any} */ each) => each.hasAttribute("open"));
  const drawnBodies = () => texts(element, "i");
  const [a, b] = element.querySelectorAll("summary");
  assert.deepEqual([open(), drawnBodies()], [[false, false], []]);
  press(a);
  await settled(element);
  assert.deepEqual([open(), drawnBodies(), fields.more], [[true, false], ["a"], "a"]);
  press(b); // the other stays: it would move the one that is pressed
  await settled(element);
  assert.deepEqual([open(), fields.more], [[true, true], "b"]);
  press(b);
  await settled(element);
  assert.deepEqual([open(), drawnBodies(), fields.more], [[true, false], ["a", "b"], ""]); // what was drawn is kept
  press(b);
  await settled(element);
  fields.more = "a"; // a link: this one alone
  await settled(element);
  assert.deepEqual(open(), [true, false]);
  /** @type {string[]} */
  const tabs = [];
  shell.openTab = (name) => void tabs.push(name);
  openSection("b", "model");
  await settled(element, () => globalThis.document.activeElement === b);
  assert.deepEqual([open(), tabs, fields.more], [[false, true], ["model"], "b"]);
  openSection("a");
  await settled(element);
  assert.deepEqual([open(), tabs], [[true, false], ["model"]]);
  fields.more = "";
  await settled(element);
  assert.deepEqual(open(), [false, false]);
});

test("the lens turns to the page of the chosen token; a press on a column chooses one", async () => {
  const figure = (/** @type {number} */ columns) => ({
    data: [
      {
        type: "heatmap",
        z: [Array(columns).fill(0.5)],
        colorscale: [
          [0, "#fff"],
          [1, "#000"],
        ],
      },
    ],
    layout: {
      ...{ width: 400, height: 300, margin: { l: 50, r: 20, t: 30, b: 40 } },
      meta: { total: 25, best: [Array(columns).fill("x")], row_labels: ["0", "1"] },
      xaxis: { ticktext: [] },
      xaxis2: { ticktext: [] },
      yaxis: { ticktext: [] },
    },
  });
  /** @type {any[]} */
  const asked = [];
  const labels = Array.from({ length: 27 }, (_, at) => `␣${at}`);
  fields.lens = 0;
  show({ labels, trace_start: 2, n_prompt: 20, last_read: 26, probabilities: Array(7).fill(0.5) });
  fields.more = "lens";
  const element = await drawnView(prediction, {
    journey: null,
    lens: (/** @type {any} */ data) => (
      asked.push(data.first),
      { figure: figure(10), columns: 10, tied: true, predicts: true }
    ),
  });
  await settled(element, () => element.querySelector(".lens-box .pager button") !== null);
  assert.match(texts(element, ".lens-box .pager")[0], /tokens 0 to 9 of 25/);
  assert.match(texts(element, ".lens-says")[0], /output layer and embedding are one matrix/);
  for (const [index, first] of [
    [14, 10],
    [21, 10],
    [22, 20],
    [26, 20],
    [2, 0],
    [1, 0],
  ]) {
    setQuery({ stack: "decoder", index });
    await settled(element);
    assert.equal(fields.lens, first, String(index));
  }
  assert.deepEqual([...new Set(asked)], [0, 10, 20]);
  press(element.querySelectorAll(".lens-box .pager button")[1]);
  await settled(element);
  assert.equal(fields.lens, 10);
  fire(element.querySelector("[data-picture=lens]"), "plotly_click", {
    points: [{ x: 2.2, y: 0 }],
  });
  assert.deepEqual(page.query, { stack: "decoder", index: 2 + 10 + 2 });
  show({ labels, trace_start: 2, n_prompt: 20, last_read: 26, probabilities: Array(7).fill(0.5) });
  assert.equal(fields.lens, 0);
  fields.more = "";
});
