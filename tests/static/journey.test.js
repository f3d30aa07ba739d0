// The journey's cards and bars, and its layout: what they say of answers.
import assert from "node:assert/strict";
import test from "node:test";

import { press, settled } from "../kit/dom.js";
import { changesOf, requests, drawn, drawnView, show, texts, valuesOf } from "./drawn.js";
import { effects } from "../../transformer/web/effects.js";
import { html } from "../../transformer/web/preact.js";
import { controls, page, setHead, shell } from "../../transformer/web/store.js";
import { ForwardCard } from "../../transformer/views/journey/forward_card.js";
import {
  bandsOf,
  geometryOf,
  layerGeometryOf,
  partsOf,
  segmentsOf,
} from "../../transformer/views/journey/geometry.js";
import { HeadCard, Writes } from "../../transformer/views/journey/head_card.js";
import { mount as nextWords } from "../../transformer/views/journey/next_words.js";
import { WordCard } from "../../transformer/views/journey/word_card.js"; // prettier-ignore

const HEAD = { stack: "decoder", kind: "self", layer: 1, head: 0 };
/** @type {any} of the token read at place 4; the text goes on with 5 */
const ANSWER = {
  ...{ position: 4, target: 2, target_label: "␣fox", logits: [0, 1, 3, 2, -1, -2], never: 0 },
  next: { id: 2, joins: false },
  likeliest: [
    { id: 2, label: "␣fox", joins: false, probability: 0.6 },
    { id: 3, label: "␣sat", joins: false, probability: 0.2 },
  ],
  heads: { self: [0.5, -1, 2, 0.25] },
  feed_forward: [1, -3],
};
const likeliest = [{ id: 4, label: "␣on", joins: false }];
const without_head = { logits: [0, 1, 2, 0, 3, 0], likeliest };

test("what mattered to the next word is told of the largest effect", async () => {
  show();
  const word = (/** @type {number[]} */ places, /** @type {string} */ name, p = 0) => ({
    ...{ places, word: name, probability: p, likeliest: { label: "␣dog", probability: 0.3 } },
  });
  const target = { probability: 0.6 };
  const result = { stack: "decoder", target, mentions: [], masked: false };
  const [the, fox, again] = [word([0], "the", 0.59), word([1], "fox", 0.2), word([4], "the", 0.64)];
  const card = (/** @type {any} */ part) => html`<${WordCard} part=${part} answer=${ANSWER} />`;
  const prepared = {
    word_effects: { ...result, words: [the, fox, again] },
    continuation: { labels: ["␣fox"] },
    without_words: { labels: ["␣dog"] },
  };
  const element = await drawn(card, prepared);
  const says = () => texts(element, ".word-card p");
  assert.equal(says()[0], "Without fox, fox goes from 60 % to 20 %.");
  assert.deepEqual(texts(element, ".word-rows bdi"), ["fox", "the", "the"]); // by effect
  assert.deepEqual(valuesOf(element, ".reader", "aria-pressed"), ["true", "false", "false"]);
  assert.match(says()[1], /With fox the network writes “fox”, without it “dog”\./);
  const shares = effects.value?.shares ?? [];
  assert.deepEqual(
    [0, 1, 4].map((at) => shares[at].toFixed(3)),
    ["0.025", "1.000", "-0.100"],
  );
  press(element.querySelectorAll(".reader")[1]);
  await settled(element);
  assert.deepEqual(valuesOf(element, ".reader", "aria-pressed"), ["false", "true", "false"]);
  assert.deepEqual(effects.value?.left, [4]);

  show();
  const all = word([0, 4], "the", 0.1); // more than each of them alone
  const mentioned = { ...result, words: [the, fox, again], mentions: [all] };
  const together = await drawn(card, { word_effects: mentioned });
  assert.match(
    texts(together, "p")[0],
    /^Without all 2 mentions of the, fox goes from 60 % to 10 %; without one of them alone, to 59 % to 64 %\.$/,
  );
  assert.deepEqual(texts(together, ".word-rows bdi"), ["the (all 2)", "fox"]);
  show();
  const faint = await drawn(card, { word_effects: { ...result, words: [the] } });
  assert.match(texts(faint, "p")[0], /any one word changes little: fox stays near 60 %/);
  show();
  const none = await drawn(card, { word_effects: { ...result, words: [] } });
  assert.match(texts(none, "p")[0], /no other word/);
});

/** @type {(weights: number[][], query?: string[], key?: string[]) => any} */
const numbers = (weights, query = page.run.labels, key = query) => ({
  ...{ weights: Float32Array.from(weights.flat()), labels: { query, key }, allowed: [] },
});
/** @type {(row: number, weights: number[], more?: object) => any} */
const headCard = (row, weights, more = {}) => {
  const rows = Array.from({ length: 6 }, (_, at) => (at === row ? weights : Array(6).fill(0)));
  const values = { answer: ANSWER, numbers: numbers(rows), at: HEAD, row, label: "", ...more };
  return drawn((part) => html`<${HeadCard} part=${part} ...${values} />`, {
    continuation: (/** @type {any} */ { head }) => ({
      labels: head === undefined ? ["␣fox"] : ["␣dog"],
    }),
    deciding: { n: 2 },
  });
};

test("a head's card tells what it reads, adds and decides", async () => {
  for (const [row, weights, reads] of /** @type {[number, number[], RegExp][]} */ ([
    [4, [0.25, 0.75, 0, 0, 0, 0], /At the it reads the fox that followed the before: 75 % of/],
    [4, [0.25, 0, 0.75, 0, 0, 0], /At the it reads sat most: 75 % of its attention/],
    [4, [0, 0, 0.25, 0, 0.75, 0], /At the it reads that token itself: 75 % of/],
    [5, [0.5, 0, 0.1, 0, 0.4, 0], /At fox it reads the most: 50 % \+ 40 % of its/],
    [5, [0.75, 0, 0.15, 0, 0.1, 0], /At fox it reads the most: 75 % of its/],
  ])) {
    show();
    setHead(HEAD);
    const element = await headCard(row, weights);
    const says = texts(element, "li");
    assert.match(says[0], reads);
    assert.match(
      says[1],
      /^It adds more to fox than any other part: \+2\.0 \(the next one \+1\.0\)/,
    );
    assert.equal(says[2], "With it the network writes “fox”, without it “dog”.");
  }
  show();
  const weights = [1, 0, 0, 0, 0, 0];
  const other = { ...HEAD, layer: 0, head: 1 };
  const faint = await headCard(4, weights, { at: other });
  assert.match(
    texts(faint, "li")[1],
    /^It adds −1\.0 to fox; layer 1, head 0 adds most: \+2\.0\.$/,
  );
  press(faint.querySelector(".pick"));
  assert.deepEqual(page.head, HEAD);
  show({ interventions: changesOf({ type: "ablate", stack: "decoder", layer: 1, heads: [0] }) });
  const switchedOff = await headCard(4, weights);
  assert.match(
    texts(switchedOff, "li")[0],
    /^Layer 1, head 0 is switched off: it reads nothing\.$/,
  );
  assert.match(texts(switchedOff, "li")[2], /writes “dog”, without it “fox”/); // the text is of its run
  assert.match(texts(switchedOff, ".switch-off")[0], /on again$/);
  const same = await drawn(
    () =>
      html`<${Writes} place=${4} texts=${[["␣fox"], ["␣fox"]]} /> <${Writes} place=${4} texts=${[["␣fox"], ["␣fox"]]} ofHead=${false} />`,
  );
  assert.equal(
    same.textContent,
    "Without it, too, the network would write “fox”. Without this feed-forward, too, the network would write “fox”.",
  );
  show();
  const lone = await drawn(
    (part) =>
      html`<${HeadCard} part=${part} answer=${ANSWER} numbers=${numbers(Array(6).fill(weights))} at=${HEAD} row=${4} label="" />`,
    { deciding: { n: 1 } },
  );
  await settled(lone, () => texts(lone, ".card-line")[0] === "One head of 4 decides");
});

test("a feed-forward's card names its neurons, the strongest first", async () => {
  /** @type {any[]} */
  const tabs = [];
  shell.openTab = (name) => void tabs.push(name);
  show();
  page.forward = { stack: "decoder", layer: 0 };
  const neurons = [
    { index: 7, adds: 0.5, activation: 2, writes: ["␣fox", "es"], activations: [0, 0.1, 2, 0, -3, 0] },
    { index: 3, adds: -0.25, activation: 1, writes: ["␣sat"], activations: [1, 0, 0, 0, 0, 0] },
  ]; // prettier-ignore
  const passage = { text: "A fox ran.", before: "A ", token: "fox", after: " ran." };
  const element = await drawn((part) => html`<${ForwardCard} part=${part} answer=${ANSWER} />`, {
    feed_forward: { neurons, n_neurons: 64, labels: ["␣dog"] },
    neuron_passages: { n_sentences: 1000, passages: { 7: passage, 3: null } },
    continuation: { labels: ["␣fox"] },
  });
  await settled(element, () => texts(element, ".fires").includes("A fox ran."));
  const says = texts(element, "li");
  assert.match(
    says[0],
    /^This feed-forward adds \+1\.0 to fox; layer 1, head 0 adds most: \+2\.0\.$/,
  );
  assert.match(says[1], /^With this feed-forward the network writes “fox”, without it “dog”\.$/);
  assert.deepEqual(texts(element, ".neurons .value"), ["+0.50", "−0.25"]);
  assert.deepEqual(texts(element, ".writes"), ["fox · -es", "sat"]);
  const wide = element.querySelectorAll(".bars i").map((/** @type {any} */ bar) => bar.style.width);
  assert.deepEqual(wide, ["100%", "50%"]);
  assert.deepEqual(valuesOf(element, ".bars i", "class"), ["adds", "takes"]);
  assert.match(texts(element, ".neurons-room p")[2], /^Neuron 7 is most active at the in this text: −3\.0/); // prettier-ignore
  assert.deepEqual(effects.value?.shares.map((share) => share.toFixed(2)), ["0.00", "0.00", "0.67", "0.00", "-1.00", "0.00"]); // prettier-ignore
  press(element.querySelector(".in-model"));
  assert.deepEqual(tabs, ["model"]);
  const off = { type: "ablate", stack: "decoder", layer: 0, part: "mlp_out" };
  press(element.querySelector(".switch-off"));
  assert.deepEqual(requests[0].interventions, [off]);
  show({ interventions: changesOf(off) });
  await settled(element, () => texts(element, "li")[0]?.includes("“dog”, without it “fox”"));
  assert.match(texts(element, "h3 small")[0], /switched off/);
  assert.match(texts(element, ".switch-off")[0], /on again$/);
});

test("the next words are bars; a press goes on with another", async () => {
  show();
  setHead(HEAD);
  const element = await drawnView(nextWords, { journey: ANSWER, without_head });
  await settled(element, () => element.querySelectorAll(".next-words [data-id]").length > 2);
  assert.deepEqual(valuesOf(element, "[data-id]", "data-id"), ["2", "4", "3"]); // the second is without the head
  assert.match(texts(element, ".bars-legend")[0], /^the networkwithout layer 1, head 0$/);
  // softmax of ANSWER.logits, and of those without the head
  assert.deepEqual(texts(element, ".value"), ["63 % ✓22 %", "1.2 %61 %", "23 %3.0 %"]);
  assert.deepEqual(valuesOf(element, ".next-word", "aria-disabled"), ["true", "false", "false"]);
  press(element.querySelectorAll(".next-word")[2]);
  assert.deepEqual(requests[0], {
    interventions: [],
    forced_tokens: [4, 1, 3],
    max_new_tokens: 20,
  });
  show();
  Object.assign(controls, { method: "sample", temperature: 0.5 });
  const sampled = await drawnView(nextWords);
  await settled(sampled, () => sampled.querySelectorAll("[data-id]").length > 2);
  assert.match(texts(sampled, ".value")[2], /^23 % → 12 %/);
});

const KINDS = [{ kind: "self" }, { kind: "cross" }];
/** @type {(a: any, b: any) => boolean} */
const overlap = (a, b) =>
  a.left < b.left + b.width &&
  b.left < a.left + a.width &&
  a.top < b.top + b.height &&
  b.top < a.top + a.height;

test("heads, feed-forwards and the stream have each their place", () => {
  const size = { width: 900, height: 500, nLayers: 3, nHeads: 4, kinds: KINDS };
  for (const small of [false, true])
    for (const source of [false, true])
      for (const type of [1, 1.5]) {
        const at = geometryOf({ ...size, small, source, type });
        const boxes = [0, 1, 2].flatMap((layer) => [
          at.feedForward(layer),
          ...KINDS.flatMap(({ kind }) => [0, 1, 2, 3].map((head) => at.box(kind, layer, head))),
        ]); // prettier-ignore
        boxes.forEach((box, place) => {
          const bottom = box.top + box.height;
          assert.ok(
            box.left >= at.left && box.left + box.width <= 900 && bottom < at.stream,
            `${place}`,
          );
          for (const other of boxes.slice(0, place)) assert.ok(!overlap(box, other), `${place}`);
        });
        assert.ok(at.height <= 500 && at.stream + 17 < at.lens && at.lens < at.height);
        assert.equal(at.bridges.split("M").length - 1, source ? 3 : 0);
      }
});

test("of one layer every head has its place, and its bands end in the stream", () => {
  const at = layerGeometryOf({ width: 400, layer: 1, nHeads: 4, kinds: KINDS, across: 3 });
  const boxes = KINDS.flatMap(({ kind }) => [0, 1, 2, 3].map((head) => at.box(kind, 1, head)));
  boxes.forEach((box, place) => {
    assert.ok(box.left >= 0 && box.left + box.width <= 400 && box.top + box.height < at.stream);
    for (const other of boxes.slice(0, place)) assert.ok(!overlap(box, other), `${place}`);
  });
  assert.deepEqual([boxes[0].left, boxes[0].top], [0, 0]); // its first kind's first head
  const amounts = Float32Array.of(1, -2, 0.5, 0.125, 4, -1, 0.25, 3); // of two layers
  const bands = bandsOf(at, {
    heads: { self: amounts, cross: amounts },
    feed_forward: Float32Array.of(9, -2),
  });
  // The largest is 9: less than 0.54 is not drawn, nor is another layer.
  assert.deepEqual(bands.map(({ amount }) => amount).sort(), [-1, -1, -2, 3, 3, 4, 4]);
  for (const { width, amount, strength } of bands) {
    assert.ok(
      Math.abs(width / Math.abs(amount) - bands[0].width / Math.abs(bands[0].amount)) < 1e-9,
    );
    assert.ok(Math.abs(strength - 0.25 - (0.65 * Math.abs(amount)) / 9) < 1e-9);
  }
  assert.deepEqual(bandsOf(at, { heads: null, feed_forward: null }), []);
  const named = partsOf({ heads: { self: amounts }, feed_forward: Float32Array.of(9) }, 4);
  assert.deepEqual(named[5], { amount: -1, kind: "self", layer: 1, head: 1 });
  assert.deepEqual(named[8], { amount: 9, layer: 0 });
});

test("equal words of neighbouring layers are one where there is little room", () => {
  const lens = ["x", "a", "a", "b", "b", "c"].map((label, at) => ({ label, probability: at / 10 }));
  const roomy = segmentsOf(lens, 50).map(({ label, first, last }) => [label, first, last]);
  assert.deepEqual(roomy, [["a", 0, 0], ["a", 1, 1], ["b", 2, 2], ["b", 3, 3], ["c", 4, 4]]); // prettier-ignore
  const tight = segmentsOf(lens, 20);
  assert.deepEqual(tight, [
    { label: "a", probability: 0.2, first: 0, last: 1, isFinal: false, isSmall: true },
    { label: "b", probability: 0.4, first: 2, last: 3, isFinal: false, isSmall: true },
    { label: "c", probability: 0.5, first: 4, last: 4, isFinal: true, isSmall: true },
  ]);
});
