// What views ask about a batch and its masks, and about runs of networks of some kind alone.
import assert from "node:assert/strict";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { fire, press, settled } from "../kit/dom.js";
import { drawnView, prepare, show, texts, valuesOf } from "./drawn.js";
import { everyField } from "../../transformer/web/declared.js";
import { fields, setFields } from "../../transformer/web/fields.js";
import { page, setBatch, setHead, setQuery } from "../../transformer/web/store.js";
import { mount as masks } from "../../transformer/views/masks/masks.js";
import { mount as bias } from "../../transformer/views/positions/bias.js";
import { mount as rotary } from "../../transformer/views/positions/rotary.js";
import { mount as labels } from "../../transformer/views/prediction/labels.js";
import { mount as masked } from "../../transformer/views/prediction/masked.js";

const DECODER = [{ stack: "decoder", kind: "self", n_layers: 3 }];
const TRANSLATOR = [
  { stack: "encoder", kind: "self", n_layers: 2 },
  { stack: "decoder", kind: "self", n_layers: 2 },
  { stack: "decoder", kind: "cross", n_layers: 2 },
];
let count = 0;
const batch = (/** @type {any} */ more = {}) => {
  count += 1;
  const kinds = more.kinds ?? DECODER;
  const [{ n_layers: nLayers }] = kinds;
  /** @type {any} */
  const facts = {
    ...{
      batch: `b${count}`,
      model: "tiny",
      texts: ["one", "two three"],
      lengths: [1, 2],
      outputs: [],
      n_heads: 2,
    },
    ...{
      padding_hidden: true,
      languages: {},
      kinds,
      stacks: [...new Set(kinds.map((/** @type {any} */ { stack }) => stack))],
    },
    ...{ windows: Array(nLayers).fill(null), ...more },
  };
  for (const name of ["row", "mask_site", "mask_head", "without"])
    fields[name] = everyField[name].default;
  setBatch(facts);
  return facts.batch;
};
/** @type {{ name: string, data: any }[]} */
const questions = [];
const recording =
  (/** @type {string} */ name, /** @type {any} */ answer) => (/** @type {any} */ data) => {
    questions.push({ name, data });
    return typeof answer === "function" ? answer(data) : answer;
  };
const PREPARED = {
  padded: recording("padded", { figure: null }),
  mask: recording("mask", { figure: null }),
  heatmap: recording("heatmap", { figure: null }),
  removal: recording("removal", (/** @type {any} */ data) => ({
    figure: null,
    sentence: `of ${data.which}`,
    acting: ["causal", "padding"],
    which: data.which ?? "causal",
    share: 0.5,
  })),
};
const askedOf = (/** @type {string} */ name) =>
  questions.filter((each) => each.name === name).map(({ data }) => data);

test("each mask of the chosen sentence and attention is asked for, by layer where layers differ", async () => {
  const draw = chance(14);
  fields.more = "";
  batch();
  const element = await drawnView(masks, PREPARED);
  for (let round = 0; round < 25; round += 1) {
    const kinds = draw.one([DECODER, TRANSLATOR]);
    const differ = draw.is();
    questions.splice(0);
    const id = batch({
      kinds,
      windows: differ
        ? [2, null, null].slice(0, kinds[0].n_layers)
        : Array(kinds[0].n_layers).fill(draw.one([null, 3])),
    });
    const kind = draw.one(kinds);
    const layer = draw.whole(0, kind.n_layers - 1);
    const row = draw.whole(0, 1);
    const head = draw.whole(0, 1);
    const site = `${kind.stack}.${layer}.${kind.kind}`;
    assert.deepEqual(setFields({ mask_site: site, row: String(row), mask_head: String(head) }), []);
    await settled(element);
    const says = JSON.stringify([site, differ]);
    const byLayer = differ && kind.kind === "self";
    const shown = {
      batch: id,
      row,
      stack: kind.stack,
      kind: kind.kind,
      layer: byLayer ? layer : 0,
    };
    for (const which of ["padding", "causal", "combined"])
      assert.deepEqual(
        askedOf("mask")
          .filter((data) => data.which === which)
          .at(-1),
        { ...shown, which },
        says,
      );
    assert.deepEqual(
      askedOf("removal").at(-1),
      { batch: id, row, site, head, which: "padding" },
      says,
    );
    assert.deepEqual(askedOf("padded").at(-1), { batch: id, stack: kinds[0].stack }, says);
    const box = element.querySelector(".masks");
    assert.deepEqual(
      ["data-batch", "data-row", "data-site"].map((name) => box.getAttribute(name)),
      [id, String(row), site],
    );
    assert.deepEqual(valuesOf(element, ".sentence", "aria-checked"), [
      String(row === 0),
      String(row === 1),
    ]);
    assert.equal(element.querySelectorAll(".pick-layer").length, Number(byLayer), says);
    assert.equal(element.querySelector(".pick-kind").hasAttribute("hidden"), kinds.length === 1);
    // The window is a mask of its own only in an encoder, which has no other.
    const hasWindow = kind.kind === "self" && page.batch.windows[shown.layer] !== null;
    assert.equal(
      texts(element, ".three h3")[1],
      hasWindow && kind.stack === "encoder" ? "Window" : "Causal mask",
      says,
    );
    const hides = texts(element, ".three section")[1];
    assert.match(
      hides,
      !hasWindow
        ? /those|come after the query, in a decoder/
        : kind.stack === "encoder"
          ? /too far from the query, before it and after it/
          : /that are too far before it/,
      says,
    );
  }
});

test("a sentence, an attention and a layer are chosen; what a batch does not have is said", async () => {
  fields.more = "";
  batch({ kinds: TRANSLATOR, windows: [1, 2], outputs: ["un", "deux"], lengths: [1, 2] });
  const element = await drawnView(masks, PREPARED);
  assert.deepEqual(texts(element, ".sentence"), ["1 one 1 tokenun", "2 two three 2 tokensdeux"]);
  press(element.querySelectorAll(".sentence")[1]);
  assert.equal(fields.row, 1);
  fire(element.querySelector(".pick-layer"), "change", { target: { value: "1" } });
  assert.equal(fields.mask_site, "encoder.1.self");
  fields.without = "padding";
  fire(element.querySelector(".pick-kind"), "change", { target: { value: "2" } });
  assert.deepEqual([fields.mask_site, fields.without], ["decoder.0.cross", null]);
  fire(element.querySelector(".pick-kind"), "change", { target: { value: "0" } });
  assert.equal(fields.mask_site, ""); // the first is the usual one
  for (const [wrong, says] of /** @type {[Record<string, string>, RegExp][]} */ ([
    [{ row: "2" }, /row must be .* from 0 to 1; got 2/],
    [{ mask_head: "2" }, /mask_head must be .* from 0 to 1; got 2/],
    [{ mask_site: "decoder.2.self" }, /mask_site must be one of .*; got decoder.2.self/],
  ])) {
    assert.match(setFields(wrong)[0], says);
    const [name] = Object.keys(wrong);
    assert.equal(fields[name], everyField[name].default);
  }
  await settled(element);
  assert.match(texts(element, ".padding-note")[0], /^Hides the keys that are not text/);
  batch({ padding_hidden: false });
  await settled(element);
  assert.match(texts(element, ".padding-note")[0], /^Taken away/);
  assert.match(texts(element, ".combined-note")[0], /without the padding mask/);
  page.models = ["translate-en-fr"];
  await settled(element);
  assert.equal(
    element.querySelector(".on-padding a").getAttribute("href"),
    "#model=translate-en-fr&tab=masks",
  );
  batch({ kinds: TRANSLATOR });
  await settled(element);
  assert.equal(element.querySelector(".on-padding a"), null);
});

test("a mask is taken away from one head, where it acts; scores are shown around it", async () => {
  batch({ kinds: DECODER });
  const element = await drawnView(masks, PREPARED);
  const { batch: id } = page.batch;
  for (const summary of element.querySelectorAll("summary")) press(summary);
  await settled(element, () => element.querySelector(".removal") !== null);
  const head = { batch: id, row: 0, site: "decoder.0.self", head: 0 };
  assert.deepEqual(askedOf("removal").at(-1), { ...head, which: null });
  assert.deepEqual(
    [
      ...new Set(
        askedOf("heatmap")
          .filter(({ run }) => run === id)
          .map(({ stage }) => stage),
      ),
    ],
    ["scores", "masked", "weights"],
  );
  const removal = element.querySelector(".removal");
  assert.deepEqual(
    ["data-which", "data-share"].map((name) => removal.getAttribute(name)),
    ["causal", "0.5"],
  );
  assert.equal(removal.querySelector("section").getAttribute("hidden"), "true"); // it has no picture
  fire(removal.querySelectorAll(".switch input")[1], "change");
  await settled(element);
  assert.deepEqual([fields.without, texts(element, ".removal-says")[0]], ["padding", "of padding"]);
  fire(removal.querySelector(".pick-head"), "change", { target: { value: "1" } });
  fire(removal.querySelector(".pick-layer"), "change", { target: { value: "2" } });
  await settled(element);
  assert.deepEqual([fields.mask_head, fields.mask_site], [1, "decoder.2.self"]);
  assert.deepEqual(
    askedOf("removal")
      .filter(({ which }) => which === "padding")
      .at(-1),
    { ...head, site: "decoder.2.self", head: 1, which: "padding" },
  );
  assert.equal(element.querySelector("[data-section=targets]"), null);
  batch({ kinds: TRANSLATOR });
  await settled(element);
  assert.ok(element.querySelector("[data-section=targets]"));
});

test("rotary positions are of the chosen head and token, pair by pair; a bias of the head", async () => {
  /** @type {any[]} */
  const asked = [];
  const says = { angles: "A", pair: "P", distance: "D" };
  const answer = (/** @type {any} */ data) => (
    asked.push(data),
    {
      n_pairs: 4,
      says,
      angles: null,
      pair: null,
      distance: null,
      bias: null,
      before: null,
      after: null,
      product: "q·k / 2",
    }
  );
  const kinds = TRANSLATOR;
  const heads = [
    [{ stack: "decoder", kind: "self", layer: 1, head: 1 }, "decoder.1.self", 1, 2],
    [{ stack: "encoder", kind: "self", layer: 0, head: 1 }, "encoder.0.self", 1, null],
    [{ stack: "decoder", kind: "cross", layer: 1, head: 1 }, "decoder.0.self", 0, 2],
  ];
  prepare({ rotary: answer, bias: answer });
  const views = [await drawnView(rotary), await drawnView(bias)];
  for (const [at, site, head, query] of /** @type {[any, string, number, number | null][]} */ (
    heads
  )) {
    const run = show({
      kinds,
      is_rotary: true,
      biases_scores: true,
      source_labels: ["x"],
      trace_start: 1,
    });
    setHead(at);
    setQuery({ stack: "decoder", index: 3 });
    fields["rotary.pair"] = 2;
    await settled(views[0]);
    await settled(views[1]);
    const [ofRotary, ofBias] = [
      asked.filter((data) => "pair" in data).at(-1),
      asked.filter((data) => !("pair" in data)).at(-1),
    ];
    assert.deepEqual(ofRotary, { run, site, head, query, pair: 2 });
    assert.deepEqual(ofBias, { run, site, head });
  }
  const [element] = views;
  assert.deepEqual(
    ["angles", "pair", "distance"].map((name) => texts(element, `.${name}-says`)[0]),
    ["A.", "P.", "D."],
  );
  const box = element.querySelector(".rotary-pair");
  for (const [typed, pair] of [
    ["3", 3],
    ["9", 3],
    ["-4", 0],
    ["", 0],
    ["1", 1],
  ]) {
    fire(box, "change", { target: { value: typed } });
    assert.equal(fields["rotary.pair"], pair, String(typed));
  }
  asked.splice(0);
  show({ kinds });
  await settled(element);
  assert.deepEqual([asked, element.querySelector(".rotary").getAttribute("hidden")], [[], "true"]);
});

test("labels are asked of what has labels, a hidden token of what reads both ways", async () => {
  /** @type {any[]} */
  const asked = [];
  prepare({
    labels: (/** @type {any} */ data) => (asked.push(["labels", data]), { figure: null }),
    masked: (/** @type {any} */ data) => (
      asked.push(["masked", data]),
      { figure: null, position: 1 }
    ),
  });
  show();
  const [ofLabels, ofMasked] = [await drawnView(labels), await drawnView(masked)];
  const isHidden = () =>
    [ofLabels.querySelector(".labels"), ofMasked.querySelector(".masked")].map((each) =>
      each.getAttribute("hidden"),
    );
  assert.deepEqual([asked, isHidden()], [[], ["true", "true"]]);
  const run = show({ stack: "encoder", head: "text-labels" });
  await settled(ofLabels);
  await settled(ofMasked);
  assert.deepEqual([asked.splice(0), isHidden()], [[["labels", { run }]], [null, "true"]]);
  const other = show({ stack: "encoder" });
  setQuery({ stack: "encoder", index: 3 });
  await settled(ofMasked);
  assert.deepEqual(
    [asked.at(-1), isHidden()],
    [
      ["masked", { run: other, position: 3 }],
      ["true", null],
    ],
  );
  assert.match(texts(ofMasked, ".masked-says")[0], /no token that hides another/);
  assert.equal(ofMasked.querySelector(".masked").getAttribute("data-place"), "1");
});
