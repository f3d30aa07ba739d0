// The worker of the page loads a model from a web server, and from the texts of a page that is one file.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import test from "node:test";
import { gunzipSync } from "node:zlib";

const FOLDER = process.env.FOLDER;
if (!FOLDER) throw new Error("run these tests by pytest tests/static_page");
const OUT = join(FOLDER, "out");
const PART = 500; // bytes that are sent at a time

/** @type {any} */
const scope = globalThis;
/** @type {Map<number, { done: (value: any) => void, failed: (reply: any) => void, progress: number[] }>} */
const waiting = new Map();
scope.postMessage = (/** @type {any} */ { type, id, value, ...reply }) => {
  const call = waiting.get(id);
  if (type === "progress") call?.progress.push(value);
  else if (type === "result") call?.done(value);
  else call?.failed(reply);
};
await import("../../transformer/browser/page_worker.js");
/** @type {(name: string, data: object, progress?: number[]) => Promise<any>} */
const call = (name, data, progress = []) =>
  new Promise((done, failed) => {
    const id = waiting.size;
    waiting.set(id, { done, failed, progress });
    scope.onmessage({ data: { type: "call", id, name, data } });
  });

const server = createServer(async ({ url }, response) => {
  const content = readFileSync(join(OUT, String(url)));
  for (let at = 0; at < content.length; at += PART) {
    response.write(content.subarray(at, at + PART));
    await new Promise((done) => setImmediate(done));
  }
  response.end();
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = /** @type {any} */ (server.address());
const addressOf = (/** @type {string} */ name) => `http://127.0.0.1:${port}/${name}`;
test.after(() => server.close());

const site = JSON.parse(gunzipSync(readFileSync(join(OUT, "site.json.gz"))).toString());
const texts = JSON.parse(readFileSync(join(FOLDER, "texts.json"), "utf8"));
const [[model, { files, page }]] = Object.entries(/** @type {Record<string, any>} */ (site.models));
const { run: facts, batch } = page;
/** @type {(sourceOf: (name: string) => string | Blob) => any} */
const loadOf = (sourceOf) => ({
  ...{ model, facts, batch, kernel: sourceOf("kernel.wasm") },
  files: Object.entries(files).map(([name, size]) => ({ name, size, source: sourceOf(name) })),
});

test("a model is the same from a web server and from a page of one file", async () => {
  const answers = [];
  for (const sourceOf of [addressOf, (/** @type {string} */ name) => new Blob([texts[name]])]) {
    /** @type {number[]} */
    const progress = [];
    await call("load", loadOf(sourceOf), progress);
    assert.ok(progress.length > 1 && progress.length < 10, `${progress}`);
    assert.deepEqual(
      progress,
      [...new Set(progress)].sort((a, b) => a - b),
    );
    const { logits } = await call("journey", { run: facts.run, facts });
    answers.push([...logits]);
  }
  assert.deepEqual(answers[0], answers[1]);
});

test("a file that does not come whole is a sentence and no fault", async () => {
  const nowhere = () => "http://127.0.0.1:1/";
  const damaged = () => new Blob([texts["kernel.wasm"].slice(0, -8)]);
  for (const sourceOf of [nowhere, damaged])
    await assert.rejects(call("load", loadOf(sourceOf)), ({ isFault, message }) => {
      assert.equal(isFault, false);
      assert.match(message, /could not be loaded/);
      return true;
    });
});
