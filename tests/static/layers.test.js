// The journey's picture: every head and feed-forward with what it adds, what a press on one chooses, and what is beside it.
import assert from "node:assert/strict";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { fire, press, room, settled } from "../kit/dom.js";
import { modules } from "../kit/later.js";
import { vectors } from "./vectors.js";
import { changesOf, drawnView, prepare, show, texts, valuesOf } from "./drawn.js";
import { html } from "../../transformer/web/preact.js";
import { fields } from "../../transformer/web/fields.js";
import { page, setHead, setQuery, shell } from "../../transformer/web/store.js";
import { mount as journey } from "../../transformer/views/journey/journey.js";
import { Passages } from "../../transformer/views/journey/passages.js";
import { shared } from "../../transformer/views/journey/next_words.js";

modules["views/journey/passages.js"] = { Passages };
for (const name of ["ForwardCard", "WordCard", "LargeHead"]) {
  const file = name.replace(/[A-Z]/g, (sign, at) => `${at ? "_" : ""}${sign.toLowerCase()}`);
  modules[`views/journey/${file}.js`] = { [name]: () => html`<section class=${`a-${name}`} />` };
}
const DECODER = [{ stack: "decoder", kind: "self", n_layers: 2 }];
const TRANSLATOR = [
  { stack: "encoder", kind: "self", n_layers: 2 },
  { stack: "decoder", kind: "self", n_layers: 2 },
  { stack: "decoder", kind: "cross", n_layers: 2 },
];
const lens = ["a", "b", "c"].map((label, id) => ({
  id,
  label: `␣${label}`,
  joins: false,
  probability: (id + 1) / 8,
}));
/** @type {(kinds: any[], more?: object) => any} */
const answerOf = (kinds, more = {}) => ({
  ...{
    position: 4,
    target: 2,
    target_label: "␣fox",
    logits: [0, 1, 3, 2],
    never: 0,
    lens,
    named: null,
    embedding: null,
  },
  ...{
    next: { id: 2, joins: false },
    likeliest: [{ id: 2, label: "␣fox", joins: false, probability: 0.6 }],
  },
  heads: Object.fromEntries(
    kinds
      .filter(({ stack }) => stack === "decoder")
      .map(({ kind }) => [kind, Float32Array.of(0.5, -1, 2, 0.25)]),
  ),
  ...{ feed_forward: Float32Array.of(1, -4), biases: null, norms: Float32Array.of(1, 2, 3) },
  ...{ encoder: kinds.length > 1 ? { norms: Float32Array.of(1, 1, 1), lens: [] } : null, ...more },
});
const { answer: sent } = vectors.head;
const numbers = () => ({
  ...sent,
  allowed: Uint8Array.from(sent.allowed),
  ...Object.fromEntries(
    ["scores", "queries", "keys"]
      .filter((name) => sent[name])
      .map((name) => [name, Float32Array.from(sent[name])]),
  ),
});
const measured = [0, 1].flatMap((layer) =>
  [0, 1].map((head) => ({
    layer,
    head,
    values: {},
    label: layer && head ? "copies" : null,
    sign: null,
    key: 0,
    key_label: "",
  })),
);
/** @type {any[]} */
const asked = [];
const prepared = (/** @type {any} */ answer, more = {}) => ({
  ...{
    journey: answer,
    heatmap: numbers,
    telling: {},
    metrics: { heads: measured },
    continuation: { labels: ["␣fox"] },
    deciding: { n: null },
  },
  atlas: { shape: [2, 2, 2, 2], pixels: new Uint8Array(16), masked: new Uint8Array(8) },
  readers: (/** @type {any} */ data) => (
    asked.push(data),
    { heads: { self: Float32Array.of(0.5, 0.25, 0.125, 1) }, ranked: [] }
  ),
  ...more,
});
/** @type {(facts?: any, answer?: any, more?: any) => Promise<any>} */
const drawn = async (facts = {}, answer = answerOf(facts.kinds ?? DECODER), more = {}) => {
  prepare(prepared(answer, more));
  shared.asksWords = false;
  show({ example: true, ...facts });
  setHead({ stack: "decoder", kind: "self", layer: 0, head: 0 });
  const element = await drawnView(journey);
  await settled(element, () => element.querySelector(".picture-of") !== null);
  return element;
};
const heads = (/** @type {any} */ element) => element.querySelectorAll(".picture-of button.head");
const px = (/** @type {any} */ button) =>
  ["left", "top", "width", "height"].map((name) => parseFloat(button.style[name]));

test("each head has its place, its amount and its name; a press chooses that one", async () => {
  for (const kinds of [DECODER, TRANSLATOR]) {
    const element = await drawn({
      kinds,
      source_labels: kinds.length > 1 ? ["␣un"] : [],
      adds_positions: true,
    });
    const own = kinds.filter(({ stack }) => stack === "decoder");
    const buttons = heads(element);
    assert.equal(buttons.length, own.length * 4);
    const amounts = { "0.0": "+0.50", 0.1: "−1.00", "1.0": "+2.00", 1.1: "+0.25" };
    const places = new Set();
    for (const button of buttons) {
      press(button);
      await settled(element);
      const { stack, kind, layer, head } = page.head;
      const of = kinds.length > 1 ? `, decoder ${kind}-attention` : "";
      const amount = /** @type {any} */ (amounts)[`${layer}.${head}`];
      assert.equal(
        button.getAttribute("aria-label"),
        `Layer ${layer}, head ${head}${of}: ${amount} to the logit of “␣fox”`,
      );
      assert.equal(stack, "decoder");
      assert.deepEqual(
        buttons.filter((/** @type {any} */ each) => each.getAttribute("aria-pressed") === "true"),
        [button],
      );
      // What adds little beside the most, 4, is pale.
      assert.equal(button.classList.contains("matters"), ["1.0"].includes(`${layer}.${head}`));
      assert.equal(
        button.style["--share"],
        `${(100 * Math.abs(Number(amount.replace("−", "-")))) / 4}%`
          .replace("12.5", "13")
          .replace("6.25", "6"),
      );
      places.add(px(button).join());
      const [left, top] = px(button);
      for (const other of buttons) {
        if (other === button) continue;
        const [x, y, wide, high] = px(other);
        assert.ok(
          !(left >= x && left < x + wide && top >= y && top < y + high),
          "none lies on another",
        );
      }
    }
    assert.equal(places.size, buttons.length);
    const forwards = element.querySelectorAll(".feed-forward");
    assert.deepEqual(
      forwards.map((/** @type {any} */ each) => each.getAttribute("aria-label")),
      [
        "The feed-forward of layer 0: +1.00 to the logit of “␣fox”",
        "The feed-forward of layer 1: −4.00 to the logit of “␣fox”",
      ],
    );
    assert.deepEqual(
      forwards.map((/** @type {any} */ each) => each.classList.contains("takes")),
      [false, true],
    );
    press(forwards[1]);
    await settled(element, () => element.querySelector(".a-ForwardCard") !== null);
    assert.deepEqual(
      [page.forward, forwards[1].getAttribute("aria-pressed")],
      [{ stack: "decoder", layer: 1 }, "true"],
    );
    assert.equal(
      buttons.filter((/** @type {any} */ each) => each.getAttribute("aria-pressed") === "true")
        .length,
      0,
    );
    press(buttons[0]);
    await settled(element);
    assert.equal(page.forward, null);
    const bands = element.querySelectorAll("path.band-in");
    // All but those below 6 % of the most, as bandsOf has it.
    assert.equal(bands.length, own.length * 4 + 2);
    assert.equal(
      bands.filter((/** @type {any} */ each) => each.getAttribute("class").includes("takes"))
        .length,
      own.length + 1,
    );
    // It says where the stream starts, and what the network would say after each layer.
    assert.equal(texts(element, ".embedding")[0], "token + position");
    assert.deepEqual(valuesOf(element, ".lens", "aria-label"), [
      "After layer 0: b, 25 %",
      "After layer 1: c, 38 %",
    ]);
    assert.deepEqual(valuesOf(element, ".lens", "class"), ["lens", "lens final"]);
    const source = element.querySelector(".source-stream");
    assert.equal(Boolean(source), kinds.length > 1);
    if (!source) continue;
    press(source);
    await settled(element);
    assert.deepEqual(page.head, { stack: "encoder", kind: "self", layer: 0, head: 0 });
    await settled(element, () => heads(element).length === 4);
    // The encoder adds to no word.
    assert.equal(heads(element)[0].getAttribute("aria-label"), "Layer 0, head 0");
    assert.equal(element.querySelector(".flow-legend"), null);
    assert.deepEqual(element.querySelectorAll(".lens"), []);
  }
});

test("what is switched off is crossed out, what is read lights up, and a hovered head is left out", async () => {
  const off = [
    { type: "ablate", stack: "decoder", layer: 1, heads: [0] },
    { type: "ablate", stack: "decoder", layer: 0, part: "mlp_out" },
  ];
  const element = await drawn({ interventions: changesOf(...off) });
  const places = ["0.0", "0.1", "1.0", "1.1"];
  assert.deepEqual(
    heads(element).map((/** @type {any} */ each) => each.classList.contains("ablated")),
    places.map((place) => place === "1.0"),
  );
  assert.match(heads(element)[2].getAttribute("aria-label"), /^Layer 1, head 0, switched off/);
  assert.deepEqual(
    valuesOf(element, ".feed-forward", "class").map((look) => /is-off/.test(look ?? "")),
    [true, false],
  );
  setQuery({ stack: "decoder", index: 4 });
  page.key = { stack: "decoder", index: 1 };
  await settled(element, () => heads(element)[0].classList.contains("weighed"));
  assert.deepEqual(asked.at(-1), {
    run: page.run.run,
    stack: "decoder",
    query: 4,
    kind: "self",
    key: 1,
  });
  assert.deepEqual(
    heads(element).map((/** @type {any} */ each) => each.style["--weight"]),
    ["0.500", "0.250", "0.125", "1.000"],
  );
  assert.equal(texts(element, ".readers h3")[0], "Which heads read ␣fox at ␣the?");
  const [, head] = heads(element);
  for (const [pointerType, preview] of [
    ["touch", null],
    ["mouse", { stack: "decoder", kind: "self", layer: 0, head: 1 }],
  ]) {
    shared.preview = null;
    fire(head, "pointerenter", { pointerType, clientX: 5, clientY: 5 });
    assert.deepEqual(shared.preview, preview);
  }
  fire(element.querySelector(".picture-of"), "pointerleave");
  assert.equal(shared.preview, null);
  page.key = null;
});

test("the readers are ranked with their weights; the first five are told", async () => {
  const draw = chance(2);
  const ranked = Array.from({ length: 7 }, (_, at) => ({
    stack: "decoder",
    kind: "self",
    layer: at % 2,
    head: draw.whole(0, 1),
    weight: (8 - at) / 10,
  }));
  const element = await drawn({}, undefined, {
    readers: { heads: { self: new Float32Array(4) }, ranked },
  });
  setQuery({ stack: "decoder", index: 4 });
  page.key = { stack: "decoder", index: 1 };
  await settled(element, () => element.querySelectorAll(".reader").length > 0);
  assert.deepEqual(texts(element, ".reader .value"), ["0.80", "0.70", "0.60", "0.50", "0.40"]);
  assert.deepEqual(
    element
      .querySelectorAll(".reader .drawn")
      .map((/** @type {any} */ each) => Math.round(parseFloat(each.style.width))),
    [80, 70, 60, 50, 40],
  );
  press(element.querySelectorAll(".reader")[1]);
  assert.deepEqual(page.head, {
    stack: "decoder",
    kind: "self",
    layer: 1,
    head: ranked[1].head,
    weight: 0.7,
  });
  /** @type {string[]} */
  const tabs = [];
  shell.openTab = (name) => void tabs.push(name);
  press(element.querySelector(".readers .to-tab"));
  assert.deepEqual(tabs, ["what-if"]);
  page.key = null;
});

test("on a narrow page layers are walked one by one; on a wide one the picture is beside the card", async () => {
  room.width = 400;
  const element = await drawn({}, undefined, {});
  assert.equal(texts(element, ".layer-steps strong")[0], "Layer 0 (0 to 1)");
  const [back, on] = element.querySelectorAll(".layer-steps button");
  assert.deepEqual(
    [back.getAttribute("aria-disabled"), on.getAttribute("aria-disabled")],
    ["true", "false"],
  );
  setHead({ stack: "decoder", kind: "self", layer: 0, head: 1 });
  await settled(element);
  press(on);
  await settled(element);
  assert.deepEqual(page.head, { stack: "decoder", kind: "self", layer: 1, head: 1 }); // the same head of the next layer
  assert.deepEqual(
    [back.getAttribute("aria-disabled"), on.getAttribute("aria-disabled")],
    ["false", "true"],
  );
  assert.equal(texts(element, ".after")[0], "then it would say c 38 %");
  assert.deepEqual(
    heads(element).map((/** @type {any} */ each) => each.getAttribute("aria-label").slice(0, 15)),
    ["Layer 1, head 0", "Layer 1, head 1"],
  );
  press(back);
  await settled(element);
  assert.equal(page.head.layer, 0);
  for (const [width, wide] of [
    [859, 859],
    [860, 499],
    [1000, 580],
  ]) {
    room.width = width;
    const other = await drawn();
    const picture = other.querySelector(".picture-of");
    assert.equal(parseFloat(picture.style.width), wide);
    const columns = other.querySelector(".journey-body").style.gridTemplateColumns;
    assert.equal(columns, width < 860 ? "minmax(0, 1fr)" : `${wide}px minmax(0, 1fr)`);
  }
  room.width = 800;
});

test("the card is of a head, of words or of a feed-forward; each question leads on", async () => {
  const element = await drawn({ model: "stories", adds_positions: false, is_rotary: false });
  const kinds = () => valuesOf(element, ".card-kinds button", "aria-pressed");
  assert.deepEqual(kinds(), ["true", "false"]);
  press(element.querySelectorAll(".card-kinds button")[1]);
  await settled(element, () => element.querySelector(".a-WordCard") !== null);
  assert.deepEqual(kinds(), ["false", "true"]);
  press(heads(element)[0]); // a head is looked at again
  await settled(element, () => element.querySelector(".a-WordCard") === null);
  assert.deepEqual(kinds(), ["true", "false"]);
  page.forward = { stack: "decoder", layer: 0 };
  await settled(element, () => element.querySelector(".a-ForwardCard") !== null);
  assert.deepEqual(kinds(), ["false", "false"]);
  press(element.querySelectorAll(".card-kinds button")[0]);
  await settled(element);
  assert.deepEqual([page.forward, kinds()], [null, ["true", "false"]]);
  assert.equal(element.querySelector(".a-LargeHead"), null);
  shared.isLarge = true;
  await settled(element, () => element.querySelector(".a-LargeHead") !== null);
  shared.isLarge = false;

  const questions = () => texts(element, ".questions li");
  const FUTURE = "Why not the future?";
  assert.deepEqual(questions(), [
    "Which word does it read?",
    FUTURE,
    "Why this word, and not another?",
    "Watch a head form",
    "All tools…",
  ]);
  /** @type {any[]} */
  const told = [];
  shell.openTab = (name) => void told.push(name);
  shell.apply = (state) => void told.push(state);
  for (const button of element.querySelectorAll(".questions button").slice(0, 4)) press(button);
  assert.deepEqual(told.slice(1), ["masks", "prediction", "learn"]);
  assert.deepEqual(
    [told[0].model, told[0].text.split(" ").at(Number(told[0].read)), told[0].tab],
    ["stories", undefined, "journey"],
  );
  show({ example: true, is_rotary: true });
  await settled(element);
  assert.deepEqual(questions().slice(0, 2), [FUTURE, "Without positions?"]);
  show({
    example: true,
    stack: "encoder",
    adds_positions: true,
    kinds: [{ stack: "encoder", kind: "self", n_layers: 2 }],
  });
  await settled(element.querySelector(".questions"));
  assert.ok(!questions().includes(FUTURE));
  const all = element.querySelector(".all-tools");
  const { body } = globalThis.document;
  for (const isOpen of [true, false]) {
    press(all);
    await settled(element.querySelector(".questions"));
    assert.deepEqual(
      [all.getAttribute("aria-expanded"), body.classList.contains("all-tabs")],
      [String(isOpen), isOpen],
    );
  }
});

test("passages in which a head does the same are read here with that head", async () => {
  /** @type {any[]} */
  const states = [];
  shell.apply = (state) => void states.push(state);
  const passages = [
    { text: "A fox ran.", number: 0.876 },
    { text: "Tom sat.", number: 0.5 },
  ];
  const element = await drawn({}, undefined, {
    passages: { title: "Previous", label: "reads before", n_texts: 50, passages },
  });
  setHead({ stack: "decoder", kind: "self", layer: 1, head: 1 }); // it has a label
  shared.showsPassages = true;
  await settled(element, () => element.querySelectorAll(".passage").length > 0);
  assert.equal(
    texts(element, ".passages h3")[0],
    "Reads before: strongest in these passages, from 50 texts",
  );
  assert.deepEqual(texts(element, ".passage small"), ["Previous: 0.88", "Previous: 0.50"]);
  press(element.querySelectorAll(".passage")[1]);
  assert.deepEqual(states, [
    {
      model: "tiny",
      text: "Tom sat.",
      max_new_tokens: "20",
      tab: "journey",
      site: "decoder.1.self",
      head: "1",
    },
  ]);
  setHead({ stack: "decoder", kind: "self", layer: 1, head: 0 }); // it has none
  await settled(element);
  assert.equal(element.querySelector(".passages"), null);
  prepare({ passages: { title: "Previous", label: null, n_texts: 0, passages: [] } });
  show({ example: true });
  setHead({ stack: "decoder", kind: "self", layer: 1, head: 1 });
  await settled(element, () => /not been measured/.test(texts(element, ".passages h3")[0]));
  assert.equal(element.querySelector(".passages .hint"), null);
  shared.showsPassages = false;
});

test("of a text that was written, the place and head that tell most are chosen, but nothing that was chosen is lost", async () => {
  const telling = {
    position: 3,
    head: { stack: "decoder", kind: "self", layer: 1, head: 0 },
    leads: true,
  };
  fields.tab = "journey";
  await drawn({}, undefined, { telling });
  let number = 0;
  /** @type {(facts: object) => Promise<any>} */
  const written = async (facts) => {
    number += 1;
    show({ text: `text ${number}`, ...facts });
    await settled(globalThis.document.body);
    return [page.head, page.query];
  };
  setHead({ ...telling.head, layer: 0 }); // as the model opens
  assert.deepEqual(await written({}), [telling.head, { stack: "decoder", index: 3 }]);
  setHead({ ...telling.head, layer: 0, head: 1 }); // by a press
  assert.deepEqual(await written({}), [{ ...telling.head, layer: 0, head: 1 }, null]);
  setHead({ ...telling.head, layer: 0, head: 0 });
  const off = changesOf({ type: "ablate", stack: "decoder", layer: 0, heads: [0] });
  assert.deepEqual(await written({ interventions: off }), [
    { ...telling.head, layer: 0, head: 0 },
    null,
  ]);
  assert.deepEqual(await written({}), [telling.head, { stack: "decoder", index: 3 }]);
  // A text that is only read: the head that adds most at its end.
  setHead({ ...telling.head, layer: 0, head: 0 });
  prepare({ journey: answerOf(DECODER, { named: { ...telling.head, layer: 1, head: 1 } }) });
  assert.deepEqual(await written({ n_prompt: 6 }), [{ ...telling.head, layer: 1, head: 1 }, null]);
});
