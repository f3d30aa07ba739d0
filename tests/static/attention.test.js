// Attention: which numbers the large picture asks for and what it is called, the grid and its finding, the table of all
// heads, and one row worked out.
import assert from "node:assert/strict";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { press, settled } from "../kit/dom.js";
import { vectors } from "./vectors.js";
import { changesOf, drawnView, prepare, show, texts, valuesOf } from "./drawn.js";
import { everyField } from "../../transformer/web/declared.js";
import { fields } from "../../transformer/web/fields.js";
import { page, setHead, setQuery } from "../../transformer/web/store.js";
import { sourceOf } from "../../transformer/web/text.js";
import { mount as attention } from "../../transformer/views/attention/attention.js";
import { mount as math } from "../../transformer/views/attention/attention_math.js";
import { mount as metrics } from "../../transformer/views/attention/head_metrics.js";

const KINDS = [
  { stack: "encoder", kind: "self", n_layers: 1 },
  { stack: "decoder", kind: "self", n_layers: 3 },
  { stack: "decoder", kind: "cross", n_layers: 3 },
];
const TRANSLATOR = { kinds: KINDS, source_labels: ["␣un", "␣renard", "␣</s>"], n_heads: 2 };
const FIELDS = Object.keys(everyField).filter((name) =>
  /^(picture|which|depth|line_heads|over_heads|stage|by|scale|range|threshold|cell|sort|order)$/.test(
    name,
  ),
);
const reset = () => {
  for (const name of FIELDS) fields[name] = everyField[name].default;
};
// Of a real head; several heads combined have no scores.
const { answer } = vectors.head;
const [aligned] = vectors.lines.slice(-1);
/** @type {(answer: any) => any} */
const typed = (answer) => ({
  ...answer,
  ...Object.fromEntries(
    Object.entries(answer)
      .filter(([, value]) => Array.isArray(value) && value !== answer.shape)
      .map(([name, value]) => [
        name,
        name === "allowed" ? Uint8Array.from(value) : Float32Array.from(value),
      ]),
  ),
});
const ofHead = () => typed(answer);
const combinedHeads = () => ({
  ...ofHead(),
  scores: undefined,
  queries: undefined,
  keys: undefined,
  weights: Float32Array.from(vectors.head.weights.flat()),
});
/** @type {(nLayers: number, n?: number) => any} */
const atlas = (nLayers, n = 6) => ({
  shape: [nLayers, 2, n, n],
  pixels: new Uint8Array(nLayers * 2 * n * n),
  masked: new Uint8Array(nLayers * n * n),
});
/** @type {(layer: number, head: number, more?: object) => any} */
const measured = (layer, head, more = {}) => ({
  ...{ layer, head, values: {}, label: null, sign: null, key: 1, key_label: "␣fox", ...more },
});
/** @type {any} */
const METRICS = {
  heads: [0, 1, 2].flatMap((layer) => [measured(layer, 0), measured(layer, 1)]),
  ...{
    metrics: [],
    even: [{}, {}, {}],
    finding: null,
    rule: "",
    n_rows: 5,
    n_repeats: 0,
    n_left_out: 0,
    n_shuffles: 4,
  },
};
/** @type {{ name: string, data: any }[]} */
const questions = [];
const asking =
  (/** @type {string} */ name, /** @type {(data: any) => any} */ answer) =>
  (/** @type {any} */ data) => {
    questions.push({ name, data });
    return answer(data);
  };
const PREPARED = {
  atlas: (/** @type {any} */ { stack }) => atlas(stack === "encoder" ? 1 : 3),
  metrics: METRICS,
  heatmap: asking("heatmap", ofHead),
  flow: asking("flow", combinedHeads),
  columns: { alignment: aligned.columns },
};
const box = (/** @type {any} */ element) => element.querySelector(".attention");
const title = (/** @type {any} */ element) => texts(element, ".large-title")[0];

test("the large picture asks for what it shows, is named after it, and tells what a token reads in it", async () => {
  reset();
  const run = show(TRANSLATOR);
  const element = await drawnView(attention, PREPARED);
  const draw = chance(11);
  for (let round = 0; round < 25; round += 1) {
    const kind = draw.one(KINDS);
    const at = {
      stack: kind.stack,
      kind: kind.kind,
      layer: draw.whole(0, kind.n_layers - 1),
      head: draw.whole(0, 1),
    };
    const set = {
      picture: draw.one(["heatmap", "flow", "lines"]),
      which: draw.one(["mean", "rollout", "joint"]),
      depth: draw.one(["layer", "all"]),
      stage: draw.one(["scores", "masked", "weights"]),
    };
    if (set.picture === "lines") set.picture = "heatmap"; // has its own test
    const index = draw.whole(0, 2);
    questions.splice(0);
    setHead(at);
    Object.assign(fields, set);
    setQuery({ stack: kind.stack, index });
    await settled(element);
    const says = JSON.stringify([at, set]);
    const attentionOf = `${kind.stack} ${kind.kind}-attention`;
    const own = kind.kind === "self" ? set.which : "mean";
    const sites = { run, stack: at.stack, kind: at.kind };
    const head = { run, site: `${at.stack}.${at.layer}.${at.kind}`, head: at.head, numbers: true };
    const combined = {
      which: own,
      ...sites,
      layer: set.depth === "all" ? null : at.layer,
      numbers: true,
    };
    const isFlow = set.picture === "flow";
    const source = /** @type {any} */ (sourceOf({ stack: kind.stack, index }));
    assert.equal(source.name, isFlow ? "flow" : "heatmap", says);
    assert.deepEqual({ ...source.data }, isFlow ? combined : head, says);
    for (const { name, data } of questions)
      assert.deepEqual([name, { ...data }], isFlow ? ["flow", combined] : ["heatmap", head], says);
    const last = set.depth === "all" ? kind.n_layers - 1 : at.layer;
    const upTo = last === 0 ? "layer 0" : `layers 0 to ${last}`;
    const layers =
      own === "mean" ? (set.depth === "all" ? "all layers" : `layer ${at.layer}`) : upTo;
    const stage = { scores: "scores", masked: "masked scores", weights: "weights" }[set.stage];
    const end = isFlow ? `: ${attentionOf}, ${layers}` : `: ${attentionOf}, ${stage}`;
    assert.ok(title(element)?.endsWith(end), `${title(element)} for ${says}`);
    if (!isFlow) assert.equal(title(element), `Layer ${at.layer}, head ${at.head}${end}`, says);
    assert.deepEqual(
      ["data-site", "data-head", "data-picture", "data-stage"].map((name) =>
        box(element).getAttribute(name),
      ),
      [head.site, String(at.head), set.picture, set.stage],
      says,
    );
    assert.equal(source.stacks.keys, kind.kind === "cross" ? "encoder" : kind.stack);
    const shown = (/** @type {string} */ name) =>
      !element.querySelector(`[data-field=${name}]`)?.hasAttribute("hidden");
    assert.deepEqual(
      [shown("stage"), shown("depth"), shown("which")],
      [!isFlow, isFlow, isFlow && kind.kind === "self"],
      says,
    );
  }
  // A token of another stack, which is no query there: the mean of all heads of its own.
  setHead({ stack: "decoder", kind: "cross", layer: 0, head: 0 });
  fields.picture = "heatmap";
  const other = /** @type {any} */ (sourceOf({ stack: "encoder", index: 0 }));
  assert.deepEqual(
    [other.name, other.data.stack, other.data.layer, other.whose],
    ["flow", "encoder", null, "The mean of all heads"],
  );
  assert.equal(
    /** @type {any} */ (sourceOf({ stack: "decoder", index: 0 })).whose,
    "Layer 0, head 0",
  );
});

test("a picture that a kind of attention does not have gives way to the heatmap", async () => {
  reset();
  show(TRANSLATOR);
  const element = await drawnView(attention, {
    ...PREPARED,
    flow: asking("flow", () => typed(aligned.answer)),
  });
  setHead({ stack: "decoder", kind: "cross", layer: 1, head: 0 });
  Object.assign(fields, { picture: "alignment", over_heads: "layer" });
  await settled(element);
  assert.match(title(element), /: decoder cross-attention, the mean of the heads of layer 1$/);
  const mean = /** @type {any} */ (sourceOf({ stack: "decoder", index: 2 }));
  assert.deepEqual(
    [mean.name, mean.data.which, mean.data.layer, mean.whose],
    ["flow", "mean", null, "The mean of the heads of layer 1"].map((each, at) =>
      at === 2 ? 1 : each,
    ),
  );
  setHead({ stack: "decoder", kind: "self", layer: 1, head: 0 });
  await settled(element);
  assert.equal(fields.picture, "heatmap");
  assert.match(title(element), /^Layer 1, head 0: decoder self-attention, weights$/);
  // More: colours, which mean nothing before softmax; and heads that are combined.
  const offered = () => valuesOf(element, "[data-field=picture] input", "value");
  assert.deepEqual(offered(), ["heatmap", "lines"]);
  press(element.querySelector(".more-button"));
  await settled(element);
  assert.deepEqual(offered(), ["heatmap", "lines", "flow"]);
  const greyed = () =>
    ["scale", "range"]
      .map((name) => element.querySelector(`[data-field=${name}]`))
      .map((each) => [
        each.hasAttribute("hidden"),
        each.querySelector("input").hasAttribute("disabled"),
      ]);
  assert.deepEqual(greyed(), [
    [false, false],
    [false, false],
  ]);
  fields.stage = "scores";
  await settled(element);
  assert.deepEqual(greyed(), [
    [false, true],
    [false, true],
  ]);
  fields.stage = "weights";
  // The motion goes from scores to weights, and leaves what the visitor chooses meanwhile.
  /** @type {string[]} */
  const stages = [];
  const { setTimeout: later } = globalThis;
  globalThis.setTimeout = /** @type {any} */ (
    (/** @type {any} */ work, /** @type {number} */ ms) => {
      if (ms >= 900) stages.push(fields.stage);
      return later(work, ms / 30);
    }
  );
  press(element.querySelector(".motion"));
  await settled(element, () => stages.length === 2 && fields.stage === "weights");
  globalThis.setTimeout = later;
  assert.deepEqual(stages, ["scores", "masked"]);
});

test("a head is chosen in the grid; its cell in a link is a token, and is let go of with its kind", async () => {
  reset();
  show({
    ...TRANSLATOR,
    trace_start: 1,
    interventions: changesOf({ type: "ablate", stack: "decoder", layer: 2, heads: [1] }),
  });
  page.head = /** @type {any} */ ({ stack: "decoder", kind: "self", layer: 7, head: 0 }); // of another network
  const element = await drawnView(attention, PREPARED);
  assert.deepEqual(page.head, { stack: "encoder", kind: "self", layer: 0, head: 0 });
  setHead({ stack: "decoder", kind: "self", layer: 0, head: 0 });
  await settled(element);
  const buttons = element.querySelectorAll(".heads-side .head-grid button");
  assert.equal(buttons.length, 6); // head after head, each of three layers
  assert.deepEqual(
    buttons.map((/** @type {any} */ each) => each.classList.contains("ablated")),
    [false, false, false, false, false, true],
  );
  press(buttons[4]);
  await settled(element);
  assert.deepEqual(page.head, { stack: "decoder", kind: "self", layer: 1, head: 1 });
  assert.deepEqual(valuesOf(element, ".head-grid button", "aria-pressed"), [
    "false",
    "false",
    "false",
    "false",
    "true",
    "false",
  ]);
  press(buttons[5]);
  await settled(element);
  assert.match(title(element), /^Layer 2, head 1, switched off|switched off/);

  const { setFields } = await import("../../transformer/web/fields.js");
  assert.deepEqual(setFields({ cell: "2,1" }), []);
  assert.deepEqual(page.query, { stack: "decoder", index: 3 }); // rows begin at the first recorded token
  await settled(element);
  assert.deepEqual(
    ["data-row", "data-column"].map((name) => box(element).getAttribute(name)),
    ["2", "1"],
  );
  assert.deepEqual(setFields({ cell: "4" }), []);
  await settled(element);
  assert.deepEqual([page.query.index, fields.cell], [5, "4"]);
  for (const [cell, says] of /** @type {[string, RegExp][]} */ ([
    ["5,0", /cell's row must be .* from 0 to 4; got 5/],
    ["0,5", /cell's column must be .* from 0 to 4; got 5/],
    ["x", /cell's row/],
  ])) {
    assert.match(setFields({ cell })[0], says);
    assert.equal(fields.cell, "", cell);
  }
  setFields({ cell: "1,1" });
  setHead({ stack: "decoder", kind: "self", layer: 0, head: 0 });
  await settled(element);
  assert.equal(fields.cell, "1,1");
  setHead({ stack: "decoder", kind: "cross", layer: 0, head: 0 });
  await settled(element);
  assert.equal(fields.cell, "");
  const kinds = element.querySelectorAll(".heads-side .kind");
  press(kinds[0]);
  await settled(element);
  assert.deepEqual(page.head, { stack: "encoder", kind: "self", layer: 0, head: 0 });
});

test("the clearest head is told with its numbers, and shown where it is clearest", async () => {
  reset();
  const finding = {
    ...{
      layer: 1,
      head: 0,
      clear: true,
      value: 0.5,
      even: 0.125,
      n_rows: 5,
      query: 2,
      key: 1,
      weight: 0.875,
    },
    ...{
      does: "reads the token before",
      title: "Previous",
      number: "Weight on it:",
      query_label: "␣on",
      key_label: "␣sat",
    },
  };
  const heads = [
    measured(0, 0, { sign: "←", label: "previous" }),
    measured(1, 0, { sign: "←", label: "previous" }),
    measured(1, 1),
  ];
  for (const [more, says] of /** @type {[any, string][]} */ ([
    [
      {},
      "The clearest of all heads on this text: Layer 1, head 0 reads the token before. Weight on it: 0.50 on average over 5 tokens, 4.0 times that of a uniform head. Clearest at “␣on”: it reads “␣sat” (0.88).",
    ],
    [
      { clear: false, even: 0.03125 },
      "No head does only one thing on this text. The nearest is layer 1, head 0, “Previous”. Weight on it: 0.50 on average over 5 tokens, 16 times that of a uniform head. Clearest at “␣on”: it reads “␣sat” (0.88).",
    ],
  ])) {
    show({ trace_start: 1 });
    setHead({ stack: "decoder", kind: "self", layer: 0, head: 1 });
    const element = await drawnView(attention, {
      ...PREPARED,
      atlas: atlas(2),
      metrics: { ...METRICS, heads, finding: { ...finding, ...more } },
    });
    assert.equal(texts(element, ".finding")[0], says);
    assert.deepEqual(texts(element, ".sign-words"), ["←previous"]); // once
    assert.deepEqual(texts(element, ".head-grid .sign"), ["←", "←"]);
    press(element.querySelector(".finding .pick"));
    assert.deepEqual(
      [page.head, page.query],
      [
        { stack: "decoder", kind: "self", layer: 1, head: 0 },
        { stack: "decoder", index: 3 },
      ],
    );
  }
  show();
  const none = await drawnView(attention, { ...PREPARED, atlas: atlas(2) });
  assert.match(texts(none, ".finding")[0], /^No head stands out on this text/);
});

test("the table of heads is sorted by any column, what has no number last", async () => {
  reset();
  const draw = chance(21);
  const columns = ["entropy", "induction", "distance"];
  const all = Array.from({ length: 15 }, (_, layer) =>
    [0, 1].map((head) =>
      measured(layer, head, {
        values: Object.fromEntries(
          columns.map((name) => [name, draw.is(0.3) ? null : draw.whole(-3, 9) / 8]),
        ),
        label: draw.one([null, "copies", "previous", "first"]),
      }),
    ),
  ).flat();
  const metricsOf = columns.map((name) => ({
    name,
    title: `T ${name}`,
    unit: name === "distance" ? "tokens" : "",
    definition: `D ${name}`,
    shuffled: 0.25,
    shuffled_most: name === "distance" ? null : 0.5,
  }));
  const even = all.map(() => ({ entropy: 1, induction: 0.125, distance: null }));
  const answer = { ...METRICS, heads: all, metrics: metricsOf, even, n_repeats: 2, n_left_out: 1 };
  show({ n_heads: 2, kinds: [{ stack: "decoder", kind: "self", n_layers: 15 }] });
  setHead({ stack: "decoder", kind: "self", layer: 3, head: 1 });
  const element = await drawnView(metrics, { metrics: answer, metric_map: { figure: null } });
  const rows = () =>
    element
      .querySelectorAll(".rows tr")
      .map(
        (/** @type {any} */ row) =>
          `${row.getAttribute("data-layer")}.${row.getAttribute("data-head")}`,
      );
  assert.equal(rows().length, 24);
  assert.equal(texts(element, ".show-all")[0], "Show all 30 heads");
  press(element.querySelector(".show-all"));
  await settled(element);
  const names = all.map(({ layer, head }) => `${layer}.${head}`);
  assert.deepEqual(rows(), names);
  assert.deepEqual(valuesOf(element, ".rows .chosen", "data-layer"), ["3"]);
  let by = "head";
  let order = "up";
  for (let round = 0; round < 14; round += 1) {
    const name = draw.one(["head", "label", ...columns]);
    press(element.querySelector(`[data-by=${name}]`));
    await settled(element);
    order = name === by ? (order === "up" ? "down" : "up") : columns.includes(name) ? "down" : "up";
    by = name;
    assert.deepEqual([fields.sort, fields.order], [by, order]);
    const got = rows();
    assert.deepEqual([...got].sort(), [...names].sort());
    if (by === "head") assert.deepEqual(got, order === "up" ? names : [...names].reverse());
    else {
      const of = (/** @type {string} */ each) => {
        const head = all[names.indexOf(each)];
        return by === "label" ? head.label : head.values[by];
      };
      for (const [at, each] of got.slice(1).entries()) {
        const [one, two] = [of(got[at]), of(each)];
        if (one === null) assert.equal(two, null, "missing ones are last");
        else if (two !== null) {
          assert.ok(order === "up" ? one <= two : one >= two, `${one} before ${two}, ${order}`);
          if (one === two)
            assert.ok(names.indexOf(got[at]) < names.indexOf(each), "equal ones keep their order");
        }
      }
    }
    const sorts = valuesOf(element, "th[scope=col]", "aria-sort").filter((each) => each !== "none");
    assert.deepEqual(sorts, [order === "up" ? "ascending" : "descending"]);
    if (columns.includes(by))
      assert.deepEqual(
        [valuesOf(element, "[data-metric]", "data-metric"), texts(element, ".map-title")],
        [[by], [by === "distance" ? "T distance (tokens)" : `T ${by}`]],
      );
  }
  press(element.querySelector("[data-by=head]"));
  if (fields.order === "down") press(element.querySelector("[data-by=head]"));
  await settled(element);
  if (fields.order === "down") press(element.querySelector("[data-by=head]"));
  await settled(element);
  const first = element
    .querySelectorAll(".rows tr")[0]
    .querySelectorAll("td")
    .map((/** @type {any} */ cell) => cell.textContent);
  const value = (/** @type {string} */ name) => all[0].values[name];
  const shown = (/** @type {string} */ name, /** @type {number} */ digits) =>
    value(name) === null ? "–" : Number(value(name)).toFixed(digits);
  assert.deepEqual(first, [
    shown("entropy", 3),
    shown("induction", 3),
    shown("distance", 2),
    all[0].label ?? "",
  ]);
  const baselines = element
    .querySelectorAll(".baselines tr")
    .map((/** @type {any} */ row) =>
      row.querySelectorAll("td").map((/** @type {any} */ cell) => cell.textContent),
    );
  assert.deepEqual(baselines, [
    ["1.000", "0.125", "–", ""],
    ["0.250", "0.250", "0.25", ""],
    ["0.500", "0.500", "–", ""],
  ]);
  assert.match(
    texts(element, ".ranking-intro")[0],
    /^Heads: 30; with a label: \d+; rows of this text: 5\. 1 row is left out, .* over the 2 rows whose token/,
  );
  assert.equal(texts(element, ".baselines th")[0], "a uniform head");
  press(element.querySelectorAll(".rows tr")[5]);
  assert.deepEqual(page.head, { stack: "decoder", kind: "self", layer: 2, head: 1 });
  even[2].entropy = 2;
  show({
    n_heads: 2,
    kinds: [{ stack: "decoder", kind: "self", n_layers: 15 }],
    interventions: changesOf({ type: "ablate", stack: "decoder", layer: 2, heads: [1] }),
  });
  prepare({ metrics: { ...answer, n_left_out: 0, n_repeats: 0 } });
  await settled(element, () => texts(element, ".baselines th")[0] !== "a uniform head");
  assert.equal(texts(element, ".baselines th")[0], "a uniform head, layer 2");
  assert.match(
    texts(element, ".ranking-intro")[0],
    /rows of this text: 5\. In this text no token recurs/,
  );
  assert.equal(texts(element, ".chosen .label")[0], "switched off");
});

test("a row is worked out key by key, and compared with what the network recorded", async () => {
  reset();
  const draw = chance(31);
  show();
  const element = await drawnView(math, { attention_math: null });
  for (let round = 0; round < 8; round += 1) {
    const count = draw.one([1, 3, 6, 40]);
    const size = draw.whole(1, 4);
    const vector = (/** @type {number} */ length) =>
      Float32Array.from({ length }, () => draw.between(-2, 2));
    const [q, keys, values] = [vector(size), vector(count * size), vector(count * 2)];
    const bias = draw.is() ? vector(count) : null;
    const cap = draw.is(0.3) ? 1.5 : null;
    const allowed = Uint8Array.from({ length: count }, (_, at) => Number(at === 0 || draw.is(0.8)));
    // softmax in the plainest words
    const scores = Array.from({ length: count }, (_, key) => {
      const dot = [...q].reduce((sum, one, d) => sum + one * keys[key * size + d], 0);
      const score = dot / Math.sqrt(size) + (bias?.[key] ?? 0);
      return cap === null ? score : cap * Math.tanh(score / cap);
    });
    const parts = scores.map((score, key) => (allowed[key] ? Math.exp(score) : 0));
    const weights = parts.map((part) => part / parts.reduce((a, b) => a + b, 0));
    const isWrong = draw.is(0.3);
    const recorded = weights.map((weight) => weight + (isWrong ? 0.01 : 0));
    const row = {
      ...{
        query: 2,
        query_label: "␣sat",
        key_labels: weights.map((_, key) => `␣k${key}`),
        score_size: size,
        historical: false,
      },
      ...{
        bias,
        cap,
        q,
        keys,
        values,
        allowed,
        scores: Float32Array.from(scores),
        weights: Float32Array.from(recorded),
        tolerance: 1e-4,
      },
    };
    fields.cell = "";
    /** @type {any[]} */
    const asked = [];
    prepare({ attention_math: (/** @type {any} */ data) => (asked.push(data), row) });
    const run = show();
    setHead({ stack: "decoder", kind: "self", layer: 1, head: 0 });
    setQuery({ stack: "decoder", index: 2 });
    fields.cell = draw.is() ? `2,${count - 1}` : draw.one(["", "1,0"]);
    await settled(
      element,
      () => element.querySelector(".attention-math").getAttribute("data-run") === run,
    );
    assert.deepEqual(asked, [{ run, site: "decoder.1.self", head: 0, query: 2 }]);
    const lines = element.querySelectorAll("tr[data-key]");
    const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a] || a - b);
    const told = order.slice(0, 32).sort((a, b) => a - b);
    assert.deepEqual(
      lines.map((/** @type {any} */ line) => Number(line.getAttribute("data-key"))),
      told,
    );
    const number = (/** @type {string} */ text) => Number(text.replace("−", "-")) || 0; // or a power of ten
    const least = Math.max(
      ...weights,
      order.slice(32).reduce((sum, at) => sum + weights[at], 0),
    );
    for (const [at, key] of told.entries()) {
      const cells = lines[at]
        .querySelectorAll("td")
        .map((/** @type {any} */ cell) => cell.textContent.trim());
      const place = bias ? 3 : 2;
      assert.ok(Math.abs(number(cells[place - 1]) - scores[key]) < 6e-4, `${cells} ${scores[key]}`);
      assert.equal(cells[place], allowed[key] ? "+ 0" : "−∞");
      assert.ok(
        Math.abs(number(cells[place + 2]) - weights[key]) < 1e-3,
        `${cells} ${weights[key]}`,
      );
      if (bias) assert.ok(Math.abs(number(cells[1]) - bias[key]) < 6e-4);
      const wide = parseFloat(lines[at].querySelector("td span").style.width);
      assert.ok(Math.abs(wide - (100 * weights[key]) / least) < 0.1, `${wide}`);
      assert.equal(lines[at].classList.contains("is-hidden"), !allowed[key]);
    }
    const rest = texts(element, ".is-rest th");
    assert.deepEqual(rest, count > 32 ? [`the other ${count - 32} keys`] : []);
    const chosen = fields.cell.startsWith("2,") ? count - 1 : order[0];
    const attribute = (/** @type {string} */ name) =>
      element.querySelector(".attention-math").getAttribute(name);
    assert.deepEqual(
      [attribute("data-key"), attribute("data-agrees")],
      [String(chosen), String(!isWrong)],
    );
    assert.match(
      texts(element, ".steps-title")[0],
      new RegExp(`With the numbers of key ${chosen}: ␣k${chosen}$`),
    );
    assert.equal(/does not agree/.test(texts(element, ".agreement")[0]), isWrong);
    if (told.length > 1) {
      const other = told.find((key) => key !== chosen);
      press(element.querySelector(`tr[data-key="${other}"] button`));
      await settled(element);
      assert.equal(attribute("data-key"), String(other));
    }
  }
});
