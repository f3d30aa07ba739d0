// The page's buttons: what a press asks the server, what of its answer is shown, and what ends it.
import assert from "node:assert/strict";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { fire, press as click, settled } from "../kit/dom.js";
import * as site from "./server.js";

Object.assign(globalThis.document, { visibilityState: "visible" });
const { answerFrom } = await import("../../transformer/web/ask.js");
const { controls, page, setRun, shell } = await import("../../transformer/web/store.js");
const { fields } = await import("../../transformer/web/fields.js");
const gradio = await import("../../transformer/server/static/gradio.js");
const { generate, languagesIn, press, readBatch, showBatch, showText, stop, toggleMask } =
  await import("../../transformer/server/static/presses.js");
const { body } = globalThis.document;

// ---- a server over a connection: bytes in pieces, as they come ----

/** @type {{ name: string, data: any, signal: AbortSignal, send: (text: string, size?: number) => void, end: () => void }[]} */
const requests = [];
/** @type {((name: string) => any) | null} answers without a body */
let answerWith = null;
let isReady = false;
/** @type {any} */
const fetchHere = async (
  /** @type {string} */ address,
  { body: text = "null", signal } = /** @type {any} */ ({}),
) => {
  const [, name] = /** @type {string[]} */ (/^(?:resources\/)?([\w/]+)/.exec(address));
  if (name === "ready")
    return {
      json: async () => ({ status: isReady ? "ok" : "starting", version: "static/presses" }),
    };
  const special = answerWith?.(name);
  if (special) return special;
  /** @type {any} */
  let stream;
  const readable = new ReadableStream({ start: (control) => void (stream = control) });
  signal?.addEventListener("abort", () => stream.error(new Error("aborted")));
  const send = (/** @type {string} */ written, size = 7) => {
    const bytes = new TextEncoder().encode(written);
    for (let at = 0; at < bytes.length; at += size) stream.enqueue(bytes.slice(at, at + size));
  };
  requests.push({ name, data: JSON.parse(text), signal, send, end: () => stream.close() });
  return { ok: true, body: readable };
};
globalThis.fetch = fetchHere;
const asked = async (count = 1) => {
  await settled(body, () => requests.length >= count);
  return requests.splice(0).at(-1);
};
/** @type {(...lines: object[]) => string} */
const written = (...lines) => lines.map((line) => `${JSON.stringify(line)}\n`).join("");
const run = (more = {}) => site.runOf({ model: "tiny", text: "the fox" }, more);

test("an answer is read line by line, however its bytes are cut", async () => {
  const draw = chance(1);
  for (let round = 0; round < 12; round += 1) {
    const texts = Array.from({ length: draw.whole(1, 5) }, () =>
      draw.one(["a", "漢字 – é", '🦊\\n"', ""]),
    );
    /** @type {any[]} */
    const lines = [];
    const done = press("batches", { lines: "a" }, (line) => lines.push(line));
    const request = /** @type {any} */ (await asked());
    const text = texts.map(
      (says) => `${written({ status: { kind: "busy", text: says } })}${draw.is() ? "\n" : ""}`,
    );
    request.send(text.join(""), draw.whole(1, 9));
    await settled(body, () => lines.length === texts.length);
    request.end();
    assert.equal(await done, true);
    assert.deepEqual(
      lines.map(({ status }) => status.text),
      texts,
    );
    assert.equal(page.status.text, texts.at(-1));
  }
});

test("a text that is written is seen and can be stopped, until it is the run", async () => {
  /** @type {any[]} */
  const set = [];
  gradio.connectControls((changes) => set.push(changes));
  const isStoppable = () => set.flatMap(({ stop: is }) => (is ? [is.interactive] : [])).at(-1);
  const done = press("runs", { text: "the fox" });
  const request = /** @type {any} */ (await asked());
  assert.deepEqual([request.name, request.data], ["runs", { text: "the fox" }]);
  request.send(written({ before: 3 }));
  await settled(body, () => page.status.text !== "");
  assert.deepEqual(page.status, {
    ...page.status,
    kind: "busy",
    text: "3 requests before yours …",
  });
  const part = { ...run(), run: "", state: "running" };
  request.send(written({ tokens: part, running: true }));
  await settled(body, () => page.writing !== null);
  assert.equal(/** @type {any} */ (page.writing).state, "running");
  assert.deepEqual([isStoppable(), page.run], [true, null]);
  gradio.controlsSet();
  const whole = run();
  request.send(written({ tokens: whole, status: { kind: "done", text: "Ready." } }));
  await settled(body, () => page.run !== null);
  request.end();
  assert.equal(await done, true);
  assert.deepEqual(
    [page.run.run, page.writing, isStoppable(), page.status.text],
    [whole.run, null, false, "Ready."],
  );
  gradio.controlsSet();
  const shown = page.run;
  showText(whole); // again: nothing changes
  assert.equal(page.run, shown);
});

test("a press ends the one before: a text a text, a batch a batch, an example both", async () => {
  for (const [name, next, isEnded] of /** @type {const} */ ([
    ["runs", "runs", true],
    ["runs", "batches", false],
    ["batches", "batches", true],
    ["batches", "runs", false],
    ["runs", "examples", true],
    ["batches", "examples", true],
    ["examples", "runs", true],
    ["examples", "batches", false],
  ])) {
    const says = `${name}, then ${next}`;
    const first = press(name, {});
    const { send, signal, end } = /** @type {any} */ (await asked());
    const second = press(next, {});
    const other = /** @type {any} */ (await asked());
    assert.equal(signal.aborted, isEnded, says);
    if (!isEnded) {
      send(written({ status: { kind: "done", text: says } }));
      end();
    }
    assert.equal(await first, !isEnded, says);
    if (!isEnded) assert.equal(page.status.text, says);
    other.send(written({}));
    other.end();
    assert.equal(await second, true, says);
    assert.notEqual(page.status.kind, "error", says);
  }
});

test("what the server refuses is said; a connection that is lost comes back", async () => {
  const refused = press("runs", {});
  /** @type {any} */ (await asked()).send(written({ detail: "No such model.", code: "x" }));
  assert.equal(await refused, false);
  assert.deepEqual([page.status.kind, page.status.text], ["error", "No such model."]);
  answerWith = () => ({ ok: false, json: async () => ({ detail: "Too many." }) });
  assert.equal(await press("runs", {}), false);
  assert.equal(page.status.text, "Too many.");
  answerWith = () => ({ ok: false, json: async () => ({ detail: [1] }) });
  assert.equal(await press("runs", {}), false);
  assert.equal(page.status.text, "The server refused the request.");
  answerWith = null;
  for (const last of [{ running: true }, { before: 1 }, null]) {
    isReady = false;
    const done = press("runs", {});
    const request = /** @type {any} */ (await asked());
    if (last) request.send(written(last));
    request.end();
    assert.equal(await done, false);
    assert.match(page.status.text, /connection to the server was lost/);
    assert.equal(page.isLost, true);
    isReady = true;
    await settled(body, () => !page.isLost);
    assert.match(page.status.text, /^The server is back\. .*press the button again/);
  }
  // The page of another version of the server is loaded anew.
  let loaded = 0;
  Object.assign(globalThis.location, { reload: () => void (loaded += 1) });
  const { fetch } = globalThis;
  /** @type {any} */ (globalThis).fetch = async (/** @type {string} */ address) => {
    if (address !== "ready") throw new Error("no connection");
    return { json: async () => ({ status: "ok", version: "another" }) };
  };
  assert.equal(await press("runs", {}), false);
  await settled(body, () => loaded > 0);
  assert.equal(page.isLost, true);
  Object.assign(globalThis, { fetch });
  page.isLost = false;
});

test("a server that says nothing for long is told of, while it is waited for", async () => {
  const done = press("runs", {});
  const request = /** @type {any} */ (await asked());
  assert.doesNotMatch(page.status.text, /not answered/);
  await settled(body, () => /has not answered for a while/.test(page.status.text));
  request.send(written({ status: { kind: "done", text: "At last." } }));
  request.end();
  assert.equal(await done, true);
  assert.equal(page.status.text, "At last.");
});

test("a text is asked for with the settings and the changes of the shown run", async () => {
  const off = { type: "ablate", layer: 0 };
  setRun({ ...run(), interventions: [{ is: off, says: "off" }] });
  Object.assign(controls, { model: "tiny", text: "my text", top_k: 7, seed: 5 });
  const ask = async (/** @type {any[]} */ ...values) => {
    generate(...values);
    const request = /** @type {any} */ (await asked());
    request.end();
    return request.data;
  };
  const data = await ask();
  assert.deepEqual(
    [data.model, data.text, data.top_k, data.seed, data.interventions],
    ["tiny", "my text", 7, 5, [off]],
  );
  assert.ok(!("lines" in data) && !("forced_tokens" in data));
  const branch = await ask({ interventions: [], forced_tokens: [3], max_new_tokens: 2 }, "another");
  assert.deepEqual(
    [branch.text, branch.interventions, branch.forced_tokens, branch.max_new_tokens],
    ["another", [], [3], 2],
  );
  assert.equal(controls.text, "another");
  // A press waits for the state that is being opened, and is forgotten where another is wanted.
  const [first, second] = [{ state: {} }, { state: {} }];
  page.opening = first;
  generate();
  page.opening = second;
  await settled(body);
  page.opening = null;
  await settled(body);
  assert.equal(requests.length, 0);
  page.opening = first;
  generate();
  await settled(body);
  assert.equal(requests.length, 0);
  page.opening = null;
  assert.equal((await asked())?.data.text, "another");
  page.opening = first; // a change of the shown run is one of the run that is shown
  generate({ interventions: [] });
  assert.equal(page.opening, null);
  await asked();
  assert.equal(shell.generate, generate);
});

test("a batch is read with its mask or without, in the translator's languages", async () => {
  Object.assign(controls, {
    model: "tiny",
    lines: "a\nb c",
    source_language: "en",
    target_language: undefined,
  });
  fields.without = "padding"; // of the batch that was shown
  readBatch();
  const first = /** @type {any} */ (await asked());
  assert.deepEqual(first.data, {
    model: "tiny",
    lines: "a\nb c",
    bare: false,
    source_language: "en",
    target_language: null,
  });
  first.send(written({ batch: site.batchOf(first.data) }));
  first.end();
  await settled(body, () => page.batch !== null);
  assert.equal(fields.without, null);
  const bare = site.element("without-padding", "", "button");
  for (const isBare of [true, false]) {
    toggleMask();
    const request = /** @type {any} */ (await asked());
    assert.equal(request.data.bare, isBare);
    request.send(written({ batch: site.batchOf(request.data) }));
    request.end();
    await settled(body, () => page.batch.padding_hidden === !isBare);
    assert.equal(bare.ariaPressed, String(isBare));
  }
  fields.without = "padding";
  showBatch(page.batch); // the one that is shown
  assert.equal(fields.without, "padding");
  assert.deepEqual(languagesIn({ source_language: "fr", text: "x" }), {
    source_language: "fr",
    target_language: null,
  });
  stop();
  assert.equal((await asked())?.name, "stop");
});

test("this browser's answer is taken, and the server's where that fails by a fault", async () => {
  /** @type {(error: any) => any} */
  const failing = (error) =>
    async function* fail() {
      yield { status: { kind: "busy", text: "here" } };
      throw error;
    };
  const answers = { runs: failing(new Error("That text is too long.")) };
  answerFrom(answers, () => true);
  assert.equal(await press("runs", {}), false);
  assert.equal(page.status.text, "That text is too long.");
  answers.runs = failing(Object.assign(new Error("out of memory"), { isFault: true }));
  const done = press("runs", {});
  const request = /** @type {any} */ (await asked());
  request.send(written({ status: { kind: "done", text: "there" } }));
  request.end();
  assert.equal(await done, true);
  assert.equal(page.status.text, "there");
  answerFrom(answers); // without a server there is no other
  assert.equal(await press("runs", {}), false);
  assert.equal(page.status.text, "out of memory");
  answerFrom(answers, () => false);
});

test("controls are set one change after another, each as Gradio takes it", async () => {
  /** @type {any[]} */
  const sent = [];
  gradio.connectControls((changes) => sent.push(changes));
  gradio.controlsSet();
  sent.splice(0);
  gradio.setControls({
    text: "a",
    top_k: { __type__: "update", value: 3 },
    method: { __type__: "update", choices: [] },
    nothing: 1,
  });
  assert.deepEqual(
    [controls.text, controls.top_k, controls.method, "nothing" in controls],
    ["a", 3, "greedy", false],
  );
  gradio.setControls({ text: "b" });
  gradio.setControls({ text: "c", seed: 4 });
  assert.equal(sent.length, 1); // the others wait until it is set
  gradio.controlsSet();
  assert.deepEqual(sent[1], { text: "c", seed: 4 });
  gradio.controlsSet();
  gradio.controlsSet();
  assert.equal(sent.length, 2);
  assert.deepEqual(gradio.outputsOf(sent[1], ["seed", "top_p", "text"]), [
    4,
    { __type__: "update" },
    "c",
  ]);
  gradio.controlChanged("text", "typed");
  assert.equal(controls.text, "typed");
  Object.assign(controls, { source_language: "en", read_as: null });
  assert.deepEqual(
    ["translates", "chats"].map((name) => body.classList.contains(name)),
    [true, false],
  );
  Object.assign(controls, { source_language: null, read_as: "chat" });
  assert.deepEqual(
    ["translates", "chats"].map((name) => body.classList.contains(name)),
    [false, true],
  );
  const [generates, stops] = ["generate", "stop"].map((id) => site.element(id, "", "button"));
  stops.focus();
  gradio.setStop(false);
  assert.equal(globalThis.document.activeElement, generates);
});

test("a tab is opened by its name, also from the menu of those that do not fit", () => {
  const names = ["journey", "attention", "masks", "learn"];
  const components = names.map((id) => ({ type: "tabitem", props: { id } }));
  Object.assign(globalThis, {
    gradio_config: { components: [{ type: "html", props: {} }, ...components] },
  });
  const right = site.element("right");
  const make = (/** @type {any} */ around, /** @type {string} */ look, tag = "div") => {
    const made = around.appendChild(globalThis.document.createElement(tag));
    made.setAttribute("class", look);
    return made;
  };
  const wrapper = make(make(right, "tabs"), "tab-wrapper");
  /** @type {string[]} */
  const opened = [];
  for (const [place, name] of names.entries()) {
    const isInMenu = place > 1;
    const menu = wrapper.querySelector(".overflow-dropdown") ?? make(wrapper, "overflow-dropdown");
    const button = make(isInMenu ? menu : wrapper, "", "button");
    if (!isInMenu) {
      button.setAttribute("role", "tab");
      button.setAttribute("data-tab-id", name);
    }
    button.setAttribute("aria-selected", String(name === "journey"));
    button.addEventListener("click", () => opened.push(name));
  }
  for (const name of names) assert.ok(gradio.openTab(name), name);
  assert.deepEqual(opened, ["attention", "masks", "learn"]); // the first is open
  assert.equal(page.tabWanted, "learn");
  assert.equal(gradio.openTab("none"), undefined);
  assert.equal(shell.openTab, gradio.openTab);
  // Gradio tells of each later, when another is wanted, and of one that the visitor has pressed.
  gradio.openTab("learn");
  const told = ["attention", "masks", "learn", "masks"];
  assert.deepEqual(told.map(gradio.isWanted), [false, false, true, true]);
});

test("where the text fills the window a press on a tab leads down to it, but not against the visitor", async () => {
  const right = globalThis.document.getElementById("right");
  let top = 900;
  let led = 0;
  /** @type {any} */ (right).getBoundingClientRect = () => ({ top });
  /** @type {any} */ (right).scrollIntoView = () => {
    led += 1;
    top = led < 2 ? 500 : 0; // at first the page is too short to lead all the way
    Object.assign(globalThis, { scrollY: 300 * led });
  };
  const tab = body.querySelector("#right [role=tab]");
  click(tab);
  await settled(body, () => led === 2 && !page.isLeading);
  fire(tab, "click", { isTrusted: false }); // a script's
  await settled(body);
  assert.deepEqual([led, page.isLeading], [2, false]);
  body.classList.add("touring");
  top = 900;
  click(tab);
  await settled(body, () => !page.isLeading);
  assert.equal(led, 2);
  body.classList.remove("touring");
});

test("a batch that is read leaves the text that is written as it is", async () => {
  const text = press("runs", {});
  const written_ = /** @type {any} */ (await asked());
  written_.send(written({ tokens: { ...run(), run: "", state: "running" }, running: true }));
  await settled(body, () => page.writing !== null);
  const batch = press("batches", {});
  const other = /** @type {any} */ (await asked());
  other.send(written({}));
  other.end();
  assert.equal(await batch, true);
  assert.notEqual(page.writing, null);
  written_.send(written({ detail: "Ended." }));
  assert.equal(await text, false);
  assert.equal(page.writing, null);
});
