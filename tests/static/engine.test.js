// The engine of a page, with a worker that is pretended.
import assert from "node:assert/strict";
import test from "node:test";

import { Engine } from "../../transformer/browser/page/engine.js";
import { inBackground } from "../../transformer/browser/pauses.js";
import { page } from "../../transformer/web/store.js";

/** @type {(call: (name: string, data: any, more: any) => Promise<any>) => Engine} */
const engineOf = (call) => {
  const engine = new Engine(/** @type {any} */ ({}), {});
  engine.loaded.set("tiny", Promise.resolve());
  engine.caller = Promise.resolve({ isWorker: true, call, end: () => {} });
  page.inBrowser = ["tiny"];
  return engine;
};
/** @type {(engine: Engine, ends?: AbortSignal) => Promise<any[]>} */
const linesOf = async (engine, ends) => {
  const lines = [];
  for await (const line of engine.lines("tiny", "runs", {}, ends)) lines.push(line);
  return lines;
};

test("a press that another has ended shows nothing more", async () => {
  const ends = new AbortController();
  const engine = engineOf(async (_, __, { progress, signal }) => {
    progress({ tokens: "first" });
    await new Promise((done) => signal.addEventListener("abort", done));
    progress({ tokens: "what there was" });
  });
  const lines = [];
  for await (const line of engine.lines("tiny", "runs", {}, ends.signal)) {
    lines.push(line);
    ends.abort();
  }
  assert.deepEqual(lines, [{ tokens: "first" }]);
});

test("what is stopped shows what there is, and a refusal is a line", async () => {
  const engine = engineOf(async (_, __, { progress, signal }) => {
    await new Promise((done) => signal.addEventListener("abort", done));
    progress({ tokens: "what there was" });
  });
  setTimeout(() => engine.stop());
  assert.deepEqual(await linesOf(engine), [{ tokens: "what there was" }]);
  const refusing = engineOf(() => Promise.reject(new Error("too long")));
  const [{ status }] = await linesOf(refusing);
  assert.deepEqual(status, { kind: "error", text: "too long" });
  assert.deepEqual(page.inBrowser, ["tiny"]);
});

test("a fault ends the engine: the page says that it computes nothing", async () => {
  const fault = Object.assign(new Error("out of memory"), { isFault: true });
  const engine = engineOf(() => Promise.reject(fault));
  await assert.rejects(linesOf(engine), /out of memory/);
  assert.deepEqual([engine.isOver, page.inBrowser], [true, []]);
});

test("files that the worker cannot read as blobs are sent as bytes", async () => {
  const door = {
    address: String,
    source: (/** @type {string} */ name) => new Blob([`text of ${name}`]),
  };
  const models = {
    small: { files: { "config.json": 9, "a.safetensors": 5 }, page: { run: { run: "example" } } },
  };
  const engine = new Engine(door, models);
  /** @type {any[]} */
  const calls = [];
  const call = async (/** @type {string} */ _, /** @type {any} */ data) => {
    calls.push(data);
    if (data.kernel instanceof Blob) throw new Error("not to be read"); // as WebKit, from a file
  };
  engine.caller = Promise.resolve({ call, end: () => {} });
  await engine.load("small");
  const [, { files, kernel }] = calls;
  const texts = [...files.map((/** @type {any} */ file) => file.source), kernel];
  assert.deepEqual(
    texts.map((bytes) => new TextDecoder().decode(bytes)),
    ["text of config.json", "text of a.safetensors", "text of kernel.wasm"],
  );
  assert.equal(calls.length, 2);
  // Addresses are read again by nobody: what is not there stays away.
  const folder = new Engine({ address: String, source: String }, models);
  const refusing = async () => Promise.reject(new Error("not there"));
  folder.caller = Promise.resolve({ call: refusing, end: () => {} });
  await assert.rejects(folder.load("small"), /not there/);
});

test("of works in the background the newest is done first, and other events go between", async () => {
  /** @type {string[]} */
  const order = [];
  const work = (/** @type {string} */ name, /** @type {number} */ parts) =>
    inBackground(async (pause) => {
      for (let part = 0; part < parts; part += 1) {
        for (const began = performance.now(); performance.now() - began < 10;);
        await pause();
      }
      order.push(name);
    });
  const event = new Promise((done) =>
    setImmediate(() => {
      order.push("event");
      done(undefined);
    }),
  );
  const works = [work("older", 20), work("newer", 10)];
  await Promise.all([...works, event]);
  assert.deepEqual(order, ["event", "newer", "older"]);
  const failed = inBackground(() => Promise.reject(new Error("too long")));
  await assert.rejects(failed, /too long/);
  await work("after a failure", 1);
});
