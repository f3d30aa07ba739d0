// Learn: which training is shown and asked about, its steps as a film, and what becomes of its network.
import assert from "node:assert/strict";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { fire, press, settled } from "../kit/dom.js";

/** @type {Map<string, string>} */
const store = new Map();
Object.assign(globalThis, {
  sessionStorage: {
    getItem: (/** @type {string} */ name) => store.get(name) ?? null,
    setItem: (/** @type {string} */ name, /** @type {string} */ text) => void store.set(name, text),
    removeItem: (/** @type {string} */ name) => void store.delete(name),
  },
});
const { drawnView, prepare, show, texts, valuesOf } = await import("./drawn.js");
const { everyField } = await import("../../transformer/web/declared.js");
const { fields, setFields } = await import("../../transformer/web/fields.js");
const { cardState } = await import("../../transformer/web/card.js");
const { page, shell } = await import("../../transformer/web/store.js");
const { mount } = await import("../../transformer/views/learn/learn.js");

// A clock that is quicker.
const { setTimeout: later } = globalThis;
globalThis.setTimeout = /** @type {any} */ (
  (/** @type {any} */ work, /** @type {number} */ ms = 0) => later(work, ms / 20)
);

const NAMES = [
  "task",
  "preset",
  "n_layers",
  "n_heads",
  "width",
  "feed_forward",
  "n_steps",
  "learning_rate",
  "seed",
];
const PLAN = {
  task: "copy",
  preset: "bert",
  n_layers: 3,
  n_heads: 2,
  width: 16,
  feed_forward: true,
  n_steps: 90,
  learning_rate: 0.02,
  seed: 5,
};
const atlas = { shape: [2, 2, 2, 2], pixels: new Uint8Array(16), masked: new Uint8Array(8) };
/** @type {(id: string, at: number | null, more?: object) => any} */
const training = (id, at, more = {}) => ({
  ...{
    id,
    state: "done",
    why: "It is trained.",
    before: 0,
    step: 90,
    total: 90,
    kept: [10, 20, 30],
  },
  plan: { ...PLAN, task: id.replace("recorded-", "") },
  ...{
    at: at ?? 30,
    task: "Copy it.",
    said: ["It copies.", "More."],
    question: "ab=",
    wanted: "ab",
    answer: "ab",
  },
  ...{
    best: { step: 30, accuracy: 1, site: "decoder.1.self", head: 0, score: 0.875 },
    pictures: { "decoder.self": atlas },
    curves: null,
  },
  ...more,
});
/** @type {any[]} */
const asked = [];
/** @type {(data: any) => any} */
let more = () => ({});
const learned = (/** @type {any} */ data) => (
  asked.push(data),
  training(data.id, data.at ?? null, more(data))
);
const reset = () => {
  for (const name of NAMES) fields[`learn.${name}`] = everyField[`learn.${name}`].default;
  fields["learn.at"] = null;
  asked.splice(0);
  more = () => ({});
};
const still = (/** @type {boolean} */ is) =>
  Object.assign(globalThis, { matchMedia: () => ({ matches: is, addEventListener: () => {} }) });
const drawn = async () => {
  show();
  const element = await drawnView(mount, { learned });
  await settled(element, () => texts(element, ".learn-finding")[0] !== "");
  return element;
};
const at = (/** @type {any} */ element) => texts(element, ".learn-at")[0];
const last = () => asked.at(-1);

test("a recorded training plays by itself once, step by step, and is looked back at", async () => {
  reset();
  still(false);
  const element = await drawn();
  await settled(element, () => at(element) === "30" && texts(element, ".learn-play")[0] === "Play");
  const seen = asked.filter(({ id }) => id === "recorded-induction").map((data) => data.at);
  assert.deepEqual([...new Set(seen)], [null, 10, 20, 30]);
  assert.deepEqual([last().at, fields["learn.at"]], [null, null]); // at its end it is the last one
  const slider = element.querySelector(".learn-back");
  assert.deepEqual([slider.getAttribute("max"), slider.getAttribute("value")], ["2", "2"]);
  fire(slider, "input", { target: { value: "1" } });
  await settled(element);
  assert.deepEqual(
    [at(element), fields["learn.at"], slider.getAttribute("value")],
    ["20", 20, "1"],
  );
  fire(slider, "input", { target: { value: "2" } });
  await settled(element);
  assert.equal(fields["learn.at"], null);
  let release = () => {};
  const held = new Promise((done) => (release = /** @type {any} */ (done)));
  asked.splice(0);
  prepare({
    learned: async (/** @type {any} */ data) => (data.at === 20 && (await held), learned(data)),
  });
  press(element.querySelector(".learn-play"));
  await settled(
    element.querySelector(".learn-ask"),
    () => texts(element, ".learn-play")[0] === "Pause" && at(element) === "10",
  );
  press(element.querySelector(".learn-play"));
  release();
  await settled(element);
  await new Promise((done) => later(done, 30));
  assert.ok(!asked.some((data) => data.at === 30), "it stops where it was");
  assert.deepEqual([asked[0].at, texts(element, ".learn-play")], [10, ["Play"]]);
  // The controls show what was trained.
  for (const name of NAMES.slice(1))
    assert.deepEqual(fields[`learn.${name}`], /** @type {any} */ (PLAN)[name], name);
});

test("nothing plays for a visitor without motion, with a card or by a link; a film has few frames", async () => {
  for (const [isStill, place, linked] of /** @type {[boolean, number | null, number | null][]} */ ([
    [true, null, null],
    [false, 0, null],
    [false, null, 20],
  ])) {
    reset();
    still(isStill);
    cardState.place = place;
    fields["learn.at"] = linked;
    const element = await drawn();
    await settled(element);
    assert.deepEqual(
      [at(element), texts(element, ".learn-play")[0]],
      [String(linked ?? 30), "Play"],
    );
    cardState.place = null;
    fields["learn.at"] = null;
  }
  reset();
  still(false);
  more = ({ at: step }) => ({
    kept: Array.from({ length: 60 }, (_, place) => place + 1),
    at: step ?? 60,
  });
  const element = await drawn();
  await settled(element, () => at(element) === "60" && texts(element, ".learn-play")[0] === "Play");
  const frames = asked.map((data) => data.at).filter((step) => step !== null);
  assert.deepEqual(frames.slice(0, 3), [1, 4, 7]);
  assert.ok(frames.length <= 24, String(frames.length));
});

test("a plan is trained as it is set; it can be held, stepped and stopped", async () => {
  reset();
  still(true);
  const draw = chance(3);
  const element = await drawn();
  await settled(element);
  const plan = {
    n_layers: draw.whole(1, 4),
    width: draw.whole(8, 96),
    seed: draw.whole(0, 99),
    feed_forward: true,
    learning_rate: 0.125,
  };
  for (const [name, value] of Object.entries(plan)) fields[`learn.${name}`] = value;
  /** @type {any[]} */
  const sent = [];
  let state = "running";
  more = ({ id }) => (id === "t1" ? { state, why: "Stopped.", step: 40, before: 2 } : {});
  prepare({
    train: (/** @type {any} */ data) => (sent.push(data), { id: "t1" }),
    steer: (/** @type {any} */ data) => (sent.push(data), {}),
  });
  const press_ = async (/** @type {string} */ look) => {
    press(element.querySelector(`.${look}`));
    await settled(element.querySelector(".learn-ask"));
  };
  const says = () => texts(element, ".learn-status")[0];
  assert.match(says(), /^A recorded training run: bert, layers: 3, heads: 2, width 16\./);
  await press_("train");
  await settled(element.querySelector(".learn-ask"), () => /Training/.test(says()));
  assert.deepEqual(sent[0].plan, { ...PLAN, ...plan, task: "induction" });
  assert.deepEqual([says(), store.get("viz-training")], ["Training: step 40 of 90 …", "t1"]);
  const disabled = (/** @type {string} */ look) =>
    element.querySelector(`.${look}`).getAttribute("aria-disabled");
  assert.deepEqual(["pause", "one-step", "stop"].map(disabled), ["false", "false", "false"]);
  const count = asked.length;
  await settled(element.querySelector(".learn-ask"), () => asked.length > count + 1); // it is followed
  state = "paused";
  await press_("pause");
  assert.deepEqual(sent[1], { id: "t1", do: "pause" });
  await settled(
    element.querySelector(".learn-ask"),
    () => says() === "Paused after step 40 of 90.",
  );
  await press_("one-step");
  await press_("pause"); // Go on
  assert.deepEqual(
    sent.slice(2).map(({ do: wish }) => wish),
    ["step", "go"],
  );
  state = "waiting";
  await settled(
    element.querySelector(".learn-ask"),
    () => says() === "Waiting: 2 training runs before yours.",
  );
  assert.deepEqual(["pause", "one-step", "stop"].map(disabled), ["true", "true", "false"]);
  state = "stopped";
  await press_("stop");
  await settled(element, () => says() === "Stopped.");
  assert.equal(disabled("stop"), "true");
  await press_("recorded");
  await settled(element, () => /^A recorded/.test(says()));
  assert.equal(last().id, "recorded-induction");
  fields["learn.task"] = "copy";
  await settled(element);
  fire(element.querySelector(".panel-control select"), "change", { target: { value: "reverse" } });
  await settled(element, () => last().id === "recorded-reverse"); // another exercise's
});

test("a link's plan opens its section; a lesson's other exercise shows its recorded training", async () => {
  reset();
  still(true);
  assert.deepEqual(
    setFields({ "learn.task": "sort", "learn.n_layers": "4", "learn.at": "20" }),
    [],
  );
  const element = await drawn();
  await settled(element);
  assert.deepEqual([last().id, last().at], ["recorded-sort", 20]);
  const own = () => element.querySelector(".learn-own");
  assert.equal(own().getAttribute("open"), "true");
  assert.equal(fields["learn.n_layers"], 4); // and not what was recorded
  setFields({ "learn.task": "addition", "learn.n_layers": "2" });
  await settled(element, () => last().id === "recorded-addition");
  assert.equal(own().getAttribute("open"), null);
});

test("a question is asked of the network, and what is wrong with it is said", async () => {
  reset();
  still(true);
  more = ({ question }) =>
    question ? { question, wanted: "cd", answer: question === "cd=" ? "cd" : "xx" } : {};
  const element = await drawn();
  await settled(element);
  assert.deepEqual(
    [texts(element, ".learn-answer"), texts(element, ".learn-wanted")],
    [["ab"], ["(right)"]],
  );
  const box = element.querySelector(".learn-question");
  const type = async (/** @type {string} */ text) => {
    fire(box, "input", { target: { value: text } });
    await settled(element);
    fire(box, "change", { target: { value: text } });
    await settled(element);
  };
  await type(" cd= ");
  assert.deepEqual(
    [last().question, texts(element, ".learn-answer"), texts(element, ".learn-wanted")],
    ["cd=", ["cd"], ["(right)"]],
  );
  await type("zz=");
  assert.deepEqual(
    [texts(element, ".learn-answer"), texts(element, ".learn-wanted")],
    [["xx"], ["(the right answer is cd)"]],
  );
  const { question } = last();
  more = () => {
    throw new Error("It has only letters.");
  };
  await type("1=");
  assert.equal(page.status.text, "It has only letters.");
  assert.equal(question, "zz=");
});

test("the trained network is opened with the head that was clicked, or broken, once for a step", async () => {
  reset();
  still(true);
  /** @type {any[]} */
  const opened = [];
  /** @type {any[]} */
  const adopted = [];
  shell.apply = (state) => void opened.push(state);
  const element = await drawn();
  await settled(element);
  prepare({
    adopt: (/** @type {any} */ data) => (
      adopted.push(data),
      { model: `copy~${data.at}`, max_new_tokens: 7 }
    ),
  });
  const open = async (/** @type {string} */ look) => {
    const before = opened.length;
    press(element.querySelector(`.${look}`));
    await settled(element, () => opened.length > before);
    return opened.at(-1);
  };
  const best = { site: "decoder.1.self", head: "0" };
  assert.deepEqual(await open("open-network"), {
    model: "copy~null",
    max_new_tokens: "7",
    tab: "attention",
    ...best,
  });
  assert.deepEqual(valuesOf(element, ".learn-heads button", "aria-label").length, 4);
  assert.deepEqual(texts(element, ".learn-heads .sign"), ["★"]);
  press(element.querySelectorAll(".learn-heads button")[2]); // head 1 of layer 0
  await settled(element);
  const picked = await open("open-network");
  assert.deepEqual([picked.site, picked.head], ["decoder.0.self", "1"]);
  const broken = await open("break-best");
  assert.deepEqual(broken, {
    model: "copy~null",
    max_new_tokens: "7",
    tab: "journey",
    ...best,
    interventions: '[{"type":"ablate","stack":"decoder","layer":1,"heads":[0]}]',
  });
  assert.deepEqual(adopted, [{ id: "recorded-induction", at: null }]);
  fire(element.querySelector(".learn-back"), "input", { target: { value: "0" } });
  await settled(element);
  await open("open-network");
  assert.deepEqual(adopted.at(-1), { id: "recorded-induction", at: 10 });
  // A visitor who has gone elsewhere meanwhile is left there.
  fire(element.querySelector(".learn-back"), "input", { target: { value: "1" } });
  await settled(element);
  let release = () => {};
  const held = new Promise((done) => (release = /** @type {any} */ (done)));
  prepare({ adopt: async () => (await held, { model: "late", max_new_tokens: 1 }) });
  const before = opened.length;
  press(element.querySelector(".open-network"));
  await settled(element);
  fields.tab = fields.tab === "masks" ? "learn" : "masks";
  release();
  await settled(element);
  assert.equal(opened.length, before);
  more = () => ({ kept: [], best: null });
  fire(element.querySelector(".learn-back"), "input", { target: { value: "2" } });
  await settled(element);
  assert.equal(element.querySelector(".break-best").getAttribute("hidden"), "true");
  assert.equal(element.querySelector(".open-network").getAttribute("aria-disabled"), "true");
});

test("a training of the visit is shown again after a reload", async () => {
  reset();
  still(true);
  store.set("viz-training", "t9");
  Object.assign(globalThis.performance, { getEntriesByType: () => [{ type: "reload" }] });
  const element = await drawn();
  await settled(element, () => last().id === "t9");
  assert.equal(element.querySelector(".learn-own").getAttribute("open"), "true");
  for (const name of NAMES.slice(1))
    assert.deepEqual(fields[`learn.${name}`], /** @type {any} */ (PLAN)[name], name);
});
