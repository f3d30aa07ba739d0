// What if?: the cards of what can be left out, the text without each, and what each costs.
import assert from "node:assert/strict";
import test from "node:test";

import { press, settled } from "../kit/dom.js";
import { changesOf, drawnView, requests, show, texts, valuesOf } from "./drawn.js";
import { setHead, setQuery } from "../../transformer/web/store.js";
import { mount } from "../../transformer/views/whatif/breaks.js";

const HEAD = { stack: "decoder", kind: "self", layer: 1, head: 0 };
const ROWS = [
  { what: "mask", says: "without the mask", why: "It sees ahead." },
  { what: "norm", says: "without norms", why: "Numbers grow." },
];
const COSTS = { rows: ROWS, intact: null, even: 6, about: "Of stories.", n_texts: 12 };
const MEASURED = {
  ...COSTS,
  intact: 2,
  rows: [
    { ...ROWS[0], loss: 4 },
    { ...ROWS[1], loss: 7.5 },
  ],
};

/** @type {(costs?: object, answers?: object) => Promise<{ element: any, asked: any[] }>} */
const cards = async (costs = COSTS, answers = {}) => {
  /** @type {any[]} */
  const asked = [];
  const broken_text = (/** @type {any} */ data) => {
    asked.push(data);
    if (data.what === "norm") throw new Error("It did not end.");
    const end = data.what ? ["␣ran"] : ["␣on", "␣the"];
    return { labels: end, probability: data.site ? 0.25 : undefined };
  };
  const broken = (/** @type {any} */ data) => (data.measure ? MEASURED : costs);
  const metrics = { names: {}, values: {}, metrics: [], heads: [] };
  const element = await drawnView(mount, { broken, broken_text, metrics, ...answers });
  await settled(element, () => !texts(element, ".waiting").length);
  return { element, asked };
};

test("each thing that can be left out has a card with the text without it", async () => {
  const run = show();
  setHead(HEAD);
  const { element, asked } = await cards();
  assert.deepEqual(asked, [
    { run },
    { run, site: "decoder.1.self", head: 0 },
    { run, what: "mask" },
    { run, what: "norm" },
  ]);
  assert.deepEqual(valuesOf(element, ".what-card", "data-what"), [
    ...["", "decoder.1.self.0", "mask", "norm"],
  ]);
  assert.deepEqual(
    valuesOf(element, ".what-card", "class").map((name) => name?.trim()),
    [...["what-card", "what-card of-head", "what-card", "what-card"]],
  );
  assert.deepEqual(texts(element, ".what-card h3"), [
    ...["As it is", "Without layer 1, head 0", "Without the mask", "Without norms"],
  ]);
  assert.deepEqual(texts(element, ".becomes"), [
    ...["on the", "on the 25 %", "ran", "It did not end."],
  ]);
  assert.match(valuesOf(element, ".becomes", "class")[3] ?? "", /problem/);
  assert.match(texts(element, ".what-card .hint")[1], /^The chosen head\./);
  assert.deepEqual(texts(element, ".cost"), []);
  // A press switches it off; the first card has none.
  const buttons = element.querySelectorAll(".what-switch");
  assert.equal(buttons.length, 3);
  for (const button of buttons) press(button);
  const changes = requests.map(({ interventions }) => interventions);
  assert.deepEqual(changes, [
    [{ type: "ablate", stack: "decoder", layer: 1, heads: [0] }],
    [{ type: "break", what: "mask" }],
    [{ type: "break", what: "norm" }],
  ]);
});

test("what is switched off is pressed, and on again without touching another", async () => {
  const others = [
    { type: "ablate", stack: "decoder", layer: 1, heads: [0] },
    { type: "break", what: "norm" },
  ];
  show({ interventions: changesOf({ type: "break", what: "mask" }, ...others) });
  setHead(HEAD);
  const same = { labels: ["␣on"], probability: undefined };
  const { element } = await cards(COSTS, { broken_text: () => same });
  assert.deepEqual(valuesOf(element, ".what-switch", "aria-pressed"), ["true", "true", "true"]);
  press(element.querySelectorAll(".what-switch")[1]);
  assert.deepEqual(requests[0].interventions, others);
  assert.deepEqual(texts(element, ".becomes"), ["on", ...Array(3).fill("The same text.")]);
});

test("costs are measured once they are asked for, as bars up to guessing", async () => {
  show({ model: "measured" });
  setHead(HEAD);
  const { element } = await cards();
  const button = element.querySelector(".measure");
  assert.ok(!button.hasAttribute("hidden"));
  press(button);
  await settled(element, () => element.querySelectorAll(".cost").length > 0);
  assert.deepEqual(texts(element, ".cost"), ["+2.000 nats a token", "+5.500 nats a token"]);
  const bars = element.querySelectorAll("i").map((/** @type {any} */ bar) => bar.style.width);
  assert.deepEqual(bars, ["50%", "100%"]);
  assert.deepEqual(
    valuesOf(element, ".cost", "class").map((name) => name?.trim()),
    [...["cost", "cost beyond"]],
  );
  assert.equal(button.getAttribute("aria-disabled"), "true");
  assert.match(
    texts(element, ".whatif-buttons .hint")[0],
    /sample of 12 texts\. Of stories\. .*6\.00 nats/,
  );
  show({ model: "stored" });
  const stored = await cards({ ...MEASURED, rows: [{ ...ROWS[0], loss: 1.5 }] }, {});
  assert.ok(stored.element.querySelector(".measure").hasAttribute("hidden"));
  assert.deepEqual(texts(stored.element, ".cost"), ["−0.500 nats a token"]);
  assert.equal(stored.element.querySelector("i").style.width, "0%");
});

test("of a network that fills gaps the token in the gap is guessed, and nothing is pressed", async () => {
  const run = show({ stack: "encoder", kinds: [{ stack: "encoder", kind: "self", n_layers: 2 }] });
  setHead({ ...HEAD, stack: "encoder" });
  setQuery({ stack: "encoder", index: 1 });
  const long = Array(30).fill("␣word");
  const { element, asked } = await cards(COSTS, {
    broken_text: (/** @type {any} */ data) => {
      asked2.push(data);
      return { labels: long, probability: 0.5 };
    },
  });
  assert.deepEqual(asked, []);
  assert.deepEqual(asked2[1], { run, position: 1, site: "encoder.1.self", head: 0 });
  assert.equal(element.querySelectorAll(".what-switch").length, 0);
  assert.equal(valuesOf(element, "ul", "class")[0], "what-cards guesses");
  const all = texts(element, ".becomes");
  assert.deepEqual(all, Array(4).fill(`word${" word".repeat(11)} …`)); // 60 signs, at a word's end
  assert.match(texts(element, "p")[0], /in place of ␣fox with one thing missing/);
});
/** @type {any[]} */
const asked2 = [];
