// The network in the visitor's browser, seen from the page: what it answers in a server's place, how a press comes back
// line by line, and the page without Gradio.
import assert from "node:assert/strict";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { fire, place, press, settled } from "../kit/dom.js";
import * as site from "./server.js";

site.write({ in_browser: ["tiny", "other"] });
const { answerFrom, answeredHere } = await import("../../transformer/web/ask.js");
await import("../kit/later.js");
const { render } = await import("../../transformer/web/preact.js");
const { page, setBatch, setRun } = await import("../../transformer/web/store.js");
const { answersOf, modelOf, otherOf } = await import("../../transformer/browser/page/answers.js");
const { Engine, loading } = await import("../../transformer/browser/page/engine.js");
const { pageOf } = await import("../../transformer/browser/page/layout.js");
const { body } = globalThis.document;

// ---- the engine: a worker that is told what to answer ----

/** @type {(answers: Record<string, (data: any, more: any) => any>) => { engine: any, calls: any[] }} */
const engineOf = (answers) => {
  /** @type {any[]} */
  const calls = [];
  const address = (/** @type {string} */ name) => name;
  const model = () => ({
    files: { "a.bin": 30, "b.bin": 12 },
    page: { run: { run: "r" }, batch: { batch: "b" } },
  });
  /** @type {any} */
  const models = { tiny: model(), other: model() };
  const engine = new Engine(/** @type {any} */ ({ address, source: address }), models);
  engine.caller = Promise.resolve({
    call: async (/** @type {string} */ name, /** @type {any} */ data, /** @type {any} */ more) => {
      calls.push([name, data]);
      return answers[name]?.(data, more);
    },
    end: () => calls.push(["end"]),
  });
  return { engine, calls };
};

test("a model is loaded once, with its progress, and again where that failed", async () => {
  /** @type {any[]} */
  const seen = [];
  let isBroken = true;
  const { engine, calls } = engineOf({
    load: (_, { progress }) => {
      seen.push(loading.value);
      progress(17);
      seen.push(loading.value);
      if (isBroken) throw new Error("No network.");
    },
  });
  page.inBrowser = [];
  await assert.rejects(engine.load("tiny"), /No network/);
  assert.deepEqual(
    [seen, loading.value, page.inBrowser],
    [
      [
        { got: 0, all: 42 },
        { got: 17, all: 42 },
      ],
      null,
      [],
    ],
  );
  isBroken = false;
  await Promise.all([engine.load("tiny"), engine.load("tiny")]);
  await engine.load("tiny");
  assert.deepEqual([calls.length, page.inBrowser, loading.value], [2, ["tiny"], null]);
  const [, [, data]] = calls;
  assert.deepEqual(data.files, [
    { name: "a.bin", size: 30, source: "a.bin" },
    { name: "b.bin", size: 12, source: "b.bin" },
  ]);
  assert.deepEqual([data.model, data.facts, data.batch], ["tiny", { run: "r" }, { batch: "b" }]);
  await engine.ask("other", "journey", { position: 3 });
  assert.deepEqual(
    calls.slice(2).map(([name]) => name),
    ["load", "journey"],
  );
  // One that is too large for the device is not asked for.
  Object.defineProperty(globalThis, "navigator", {
    configurable: true,
    value: { deviceMemory: 2 },
  });
  engine.models.large = { files: { a: 2 ** 28 + 1 }, page: {} };
  await assert.rejects(engine.load("large"), /268 MB of weights, too many for a device with 2 GB/);
  engine.models.large.files.a = 2 ** 28;
  await engine.load("large");
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: {} });
});

test("the lines of a press come as they are written, until it is over, refused or ended", async () => {
  const draw = chance(3);
  for (let round = 0; round < 15; round += 1) {
    const count = draw.whole(0, 5);
    const how = draw.one(["done", "refused", "fault", "ended"]);
    const stop = new AbortController();
    const { engine, calls } = engineOf({
      runs: async (_, { progress, signal }) => {
        assert.equal(engine.isWriting, true);
        for (let at = 0; at < count; at += 1) {
          if (draw.is()) await new Promise((done) => setTimeout(done, 0));
          progress({ at });
        }
        if (how === "refused") throw new Error("Too long.");
        if (how === "fault") throw Object.assign(new Error("broken"), { isFault: true });
        if (how === "ended") {
          stop.abort();
          assert.equal(signal.aborted, true);
          progress({ at: count });
        }
      },
    });
    page.inBrowser = ["tiny"];
    /** @type {any[]} */
    const lines = [];
    const read = async () => {
      for await (const line of engine.lines("tiny", "runs", { text: "x" }, stop.signal))
        lines.push(line);
    };
    if (how === "fault") await assert.rejects(read(), /broken/);
    else await read();
    const refused = { status: { kind: "error", text: "Too long." }, running: false };
    const whole = [
      ...Array.from({ length: count }, (_, at) => ({ at })),
      ...(how === "refused" ? [refused] : []),
    ];
    if (how === "ended")
      assert.deepEqual(lines, whole.slice(0, lines.length)); // none after its end
    else assert.deepEqual(lines, whole, how);
    assert.deepEqual([engine.isWriting, engine.isOver], [false, how === "fault"]);
    await settled(body);
    assert.deepEqual(
      [page.inBrowser.length === 0, calls.some(([name]) => name === "end")],
      [how === "fault", how === "fault"],
    );
  }
  const { engine } = engineOf({
    runs: (_, { signal }) =>
      new Promise((done) => signal.addEventListener("abort", () => done(undefined))),
  });
  const reading = engine.lines("tiny", "runs", {}).next();
  await settled(body, () => engine.isWriting);
  assert.match(page.status.text, /being loaded into this browser/);
  engine.stop();
  assert.deepEqual(await reading, { done: true, value: undefined });
});

test("a question is asked with the facts of its run, its batch and the run beside it", async () => {
  const { engine, calls } = engineOf({ journey: () => "answer", examples: () => null });
  const [one, two] = [
    site.runOf({ model: "tiny", text: "a" }),
    site.runOf({ model: "other", text: "b" }),
  ];
  await import("../../transformer/web/runs.js");
  setRun(one);
  setRun(two);
  const batch = site.batchOf({ model: "tiny", lines: "a", bare: false });
  setBatch(batch);
  for (const [data, model] of /** @type {[any, string | undefined][]} */ ([
    [{ run: two.run }, "other"],
    [{ run: one.run }, "tiny"],
    [{ batch: batch.batch }, "tiny"],
    [{ run: "gone" }, undefined],
    [{ model: "named", run: one.run }, "named"],
    [{}, undefined],
  ]))
    assert.equal(modelOf(data), model, JSON.stringify(data));
  assert.equal(otherOf({ run: two.run, other: one.run })?.model, "tiny");
  assert.equal(otherOf({ other: one.run }), undefined);
  const answers = answersOf(engine, "tiny", ["offered", "a\nb"]);
  assert.equal(await answers.journey({ run: two.run, other: one.run }), "answer");
  assert.deepEqual(
    calls.map(([name, { model }]) => [name, model]),
    [
      ["load", "tiny"],
      ["load", "other"],
      ["journey", undefined],
    ],
  );
  const [, data] = calls[2];
  assert.deepEqual([data.facts.run, data.others.run], [two.run, one.run]);
  engine.models.tiny.page.first = { model: "tiny" };
  engine.models.other.page.first = { model: "other" };
  for (const [model, shown, problems] of /** @type {[string | null, string, number][]} */ ([
    [null, "tiny", 0],
    ["other", "other", 0],
    ["third", "tiny", 1],
  ])) {
    const lines = [];
    const typed = { text: "own", lines: "a\nb", other: " ", more: "offered" };
    for await (const line of /** @type {any} */ (answers.examples({ model, typed })))
      lines.push(line.example);
    assert.deepEqual(
      [lines.length, lines[0].first.model, lines[0].problems.length, lines[0].own],
      [1, shown, problems, { text: "own" }],
    );
  }
});

test("beside a server the browser answers what it can about a model that is loaded, and no change that it does not make", async () => {
  Object.assign(globalThis.document, { baseURI: "http://127.0.0.1/" });
  const { engine, start } = await import("../../transformer/browser/page/beside.js");
  /** @type {any} */
  const run = site.runOf({ model: "tiny", text: "a" });
  /** @type {string[]} */
  const asked = [];
  Object.assign(engine, engineOf({}).engine, { models: {} });
  globalThis.fetch = /** @type {any} */ (
    async (/** @type {string} */ address) => {
      asked.push(address);
      const example = { run, controls: { model: {} } };
      const engineOfModel = {
        kernel: "k",
        worker: "w",
        words: { messages: {} },
        offered: [],
        batches: [],
        files: { a: 1 },
        page: example,
        breaks: ["no-norms"],
      };
      return { ok: true, headers: new Map(), json: async () => engineOfModel };
    }
  );
  page.inBrowser = [];
  setRun(run);
  start();
  await settled(body, () => page.inBrowser.includes("tiny"));
  assert.equal(asked.length, 1);
  const isHere = (/** @type {string} */ name, /** @type {any} */ data) =>
    answeredHere(name, data) !== null;
  assert.deepEqual(
    [
      isHere("journey", { run: run.run }),
      isHere("journey", { run: "gone" }),
      isHere("journey", { model: "other" }),
    ],
    [true, false, false],
  );
  assert.deepEqual(
    [
      isHere("examples", { model: "tiny" }),
      isHere("examples", { model: null }),
      isHere("examples", { model: "other" }),
    ],
    [true, true, false],
  );
  assert.deepEqual(
    [
      isHere("stop", {}),
      isHere("broken", { model: "tiny" }),
      isHere("broken", { model: "tiny", measure: true }),
    ],
    [false, true, false],
  );
  engine.isWriting = true;
  assert.equal(isHere("stop", {}), true);
  // The run's network has encoder and decoder self-attention, two layers of three heads each.
  const draw = chance(7);
  for (let round = 0; round < 150; round += 1) {
    const type = draw.one(["ablate", "mask", "patch", "add", "break"]);
    const change = {
      type,
      stack: draw.one(["encoder", "decoder", "other"]),
      ...(draw.is() && { kind: draw.one(["self", "cross"]) }),
      ...(draw.is(0.8) && { layer: draw.one([0, 1, 2, -1, 0.5, null]) }),
      ...(draw.is(0.8) && { heads: draw.one([[0], [2, 1], [3], [], [-1]]) }),
      ...(draw.is(0.2) && { part: "mlp_out" }),
      ...(type === "break" && { what: draw.one(["no-norms", "no-masks", undefined]) }),
    };
    const { stack, kind = "self", layer = 0, heads = [], part, what } = /** @type {any} */ (change);
    const isAt =
      ["encoder", "decoder"].includes(stack) && kind === "self" && [0, 1, null].includes(layer);
    const areHeads = heads.every((/** @type {number} */ head) => [0, 1, 2].includes(head));
    const isMade = type === "ablate" ? !part && heads.length > 0 : ["mask", "patch"].includes(type);
    const wanted = type === "break" ? what === "no-norms" : isAt && areHeads && isMade;
    const isFirst = draw.is();
    const others = [{ type: "mask", stack: "decoder", layer: 1 }];
    const interventions = isFirst ? [change, ...others] : [...others, change];
    assert.equal(isHere("runs", { model: "tiny", interventions }), wanted, JSON.stringify(change));
  }
  setRun(site.runOf({ model: "third", text: "a" })); // none of this browser's
  await settled(body);
  assert.equal(asked.length, 1);
  answerFrom({}, () => false);
});

// ---- the page without Gradio ----

let ids = 0;
/** @type {(type: string, props?: any, more?: any) => any} */
const described = (type, props = {}, more = {}) => {
  ids += 1;
  return { type, id: ids, name: `${type}-${ids}`, classes: "", props, children: [], ...more };
};

test("each control tells what it was set to, and is set by what an event gives", async () => {
  /** @type {any[]} */
  const told = [];
  const box = described("textbox", { label: "Text", value: "a", lines: 1 });
  const tall = described("textbox", { label: "Lines", value: "b", lines: 3 });
  const number = described("number", { label: "Seed", value: 1 });
  const slider = described("slider", { label: "Heat", value: 0.5, minimum: 0, maximum: 2 });
  const radio = described("radio", {
    label: "How",
    value: "x",
    choices: [
      ["X", "x"],
      ["Y", "y"],
    ],
  });
  const menu = described("dropdown", {
    label: "Model",
    value: "p",
    choices: [
      ["P", "p"],
      ["Q", "q"],
    ],
  });
  const button = described("button", { value: "Go", size: "lg" });
  const sum = described("html", { value: "none" });
  const all = [box, tall, number, slider, radio, menu];
  const tell =
    (/** @type {string} */ name) =>
    (/** @type {any[]} */ ...values) =>
      void told.push([name, ...values]);
  const event = (
    /** @type {any[]} */ targets,
    /** @type {any[]} */ inputs,
    /** @type {any} */ js,
    more = {},
  ) => ({ targets, inputs: inputs.map(({ id }) => id), outputs: [], js, then: [], ...more });
  /** @type {any[]} */
  const events = [
    ...all.map((one) => event([[one.id, "input"]], [one], tell("input"))),
    event(
      all.map(({ id }) => [id, "change"]),
      [],
      tell("change"),
    ),
    event(
      [
        [box.id, "submit"],
        [tall.id, "submit"],
      ],
      [],
      tell("submit"),
    ),
    event(
      [[button.id, "click"]],
      [number, radio],
      (/** @type {any[]} */ ...values) => [
        `${values.join()}`,
        { __type__: "update", choices: [["Z", "z"]], value: "z" },
        { __type__: "update" },
      ],
      {
        outputs: [sum.id, menu.id, box.id],
        then: [event([], [sum], tell("then"))],
      },
    ),
  ];
  const element = place();
  const column = described("column", {}, { children: [...all, button, sum] });
  render(pageOf([column], events), element);
  await settled(element);
  const inputs = (/** @type {any} */ one, selector = "input") =>
    element.querySelector(`#${one.name}`).querySelectorAll(selector);
  const enter = async (
    /** @type {any} */ control,
    /** @type {string} */ name,
    /** @type {any} */ target,
  ) => {
    told.splice(0);
    const event = fire(control, name, target);
    await settled(element);
    return [told.splice(0), event];
  };
  const [text] = inputs(box, "textarea");
  assert.deepEqual((await enter(text, "input", { target: { value: "new" } }))[0], [
    ["change"],
    ["input", "new"],
  ]);
  assert.deepEqual((await enter(text, "input", { target: { value: "new" } }))[0], [
    ["input", "new"],
  ]); // no other value
  for (const [control, more, isSent] of /** @type {[any, any, boolean][]} */ ([
    [text, {}, true],
    [text, { shiftKey: true }, false],
    [inputs(tall, "textarea")[0], {}, false],
    [text, { key: "a" }, false],
  ])) {
    const [said, { defaultPrevented }] = await enter(control, "keydown", { key: "Enter", ...more });
    assert.deepEqual([said, defaultPrevented], [isSent ? [["submit"]] : [], isSent]);
  }
  assert.deepEqual((await enter(inputs(number)[0], "change", { target: { value: "" } }))[0], [
    ["change"],
    ["input", null],
  ]);
  assert.deepEqual((await enter(inputs(number)[0], "change", { target: { value: "7" } }))[0], [
    ["change"],
    ["input", 7],
  ]);
  const [precise, range] = inputs(slider);
  assert.deepEqual((await enter(range, "input", { target: { value: "1.5" } }))[0], [
    ["change"],
    ["input", 1.5],
  ]);
  assert.deepEqual((await enter(precise, "change", { target: { value: "0.25" } }))[0], [
    ["change"],
    ["input", 0.25],
  ]);
  assert.deepEqual((await enter(inputs(radio)[1], "change", {}))[0], [["change"], ["input", "y"]]);
  assert.equal(inputs(radio, ".selected")[0].textContent.trim(), "Y");
  assert.deepEqual(
    (await enter(inputs(menu, "select")[0], "change", { target: { value: "q" } }))[0],
    [["change"], ["input", "q"]],
  );
  const [said] = await enter(element.querySelector(`#${button.name}`), "click", {});
  assert.deepEqual(said, [["change"], ["then", "7,y"]]); // the menu's value is another; an empty update is none
  assert.deepEqual(
    inputs(menu, "option").map((/** @type {any} */ each) => each.textContent),
    ["Z"],
  );
  assert.equal(
    inputs(box, "textarea")[0].getAttribute("value") ?? inputs(box, "textarea")[0].value,
    "new",
  );
});

test("a tab is drawn as it is first opened, and stays; arrow keys walk the tabs", async () => {
  /** @type {any[]} */
  const selected = [];
  /** @type {any[]} */
  const mounts = [];
  const script = (/** @type {string} */ name) =>
    described(
      "html",
      { value: name, props: { more: 1 } },
      { script: { module: "m", mount: `mount.${name}`, bundle: "page" } },
    );
  const tabs = ["one", "two", "three"].map((name) =>
    described("tabitem", { id: name, label: name.toUpperCase() }, { children: [script(name)] }),
  );
  const fold = described(
    "accordion",
    { label: "More" },
    { children: [described("html", { value: "x" })] },
  );
  const whole = described("tabs", {}, { children: tabs });
  const events = tabs.map(({ id, props }) => ({
    targets: [/** @type {[number, string]} */ ([id, "select"])],
    inputs: [],
    outputs: [],
    js: () => void selected.push(props.id),
    then: [],
  }));
  const mount = Object.fromEntries(
    ["one", "two", "three"].map((name) => [
      name,
      (/** @type {any} */ mounted) =>
        void mounts.push([name, mounted.props.value, mounted.props.more]),
    ]),
  );
  const element = place();
  Object.assign(globalThis.document, { dispatchEvent: () => true });
  render(pageOf([whole, fold], events, { page: { modules: { m: { mount } } } }), element);
  await settled(element);
  const buttons = element.querySelectorAll("[role=tab]");
  const open = () => buttons.map((/** @type {any} */ each) => each.getAttribute("aria-selected"));
  assert.deepEqual(
    [open(), selected, mounts],
    [["true", "false", "false"], ["one"], [["one", "one", 1]]],
  );
  press(buttons[2]);
  await settled(element);
  press(buttons[0]);
  await settled(element);
  press(buttons[2]);
  await settled(element);
  assert.deepEqual(
    [open(), selected, mounts.map(([name]) => name)],
    [
      ["false", "false", "true"],
      ["one", "three", "one", "three"],
      ["one", "three"],
    ],
  );
  assert.deepEqual(
    element
      .querySelectorAll("[role=tabpanel]")
      .map((/** @type {any} */ each) => each.getAttribute("hidden")),
    ["true", "true", null],
  );
  for (const [from, key, to] of /** @type {[number, string, number][]} */ ([
    [0, "ArrowRight", 1],
    [2, "ArrowRight", 0],
    [0, "ArrowLeft", 2],
    [1, "Home", 1],
  ])) {
    buttons[from].focus();
    fire(buttons[from], "keydown", { key });
    assert.equal(globalThis.document.activeElement, buttons[to], `${from} ${key}`);
  }
  const [more] = element.querySelectorAll(".label-wrap");
  for (const isOpen of [true, false]) {
    press(more);
    await settled(element);
    assert.deepEqual(
      [
        more.getAttribute("aria-expanded"),
        element.querySelector(".accordion .column").hasAttribute("hidden"),
      ],
      [String(isOpen), !isOpen],
    );
  }
});
