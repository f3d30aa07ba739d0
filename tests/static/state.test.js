// The page's state, its events, and questions to the server.
import assert from "node:assert/strict";
import test from "node:test";

import { RUN_GONE, ask, server, session } from "../../transformer/web/ask.js";
import {
  chosenRow,
  on,
  page,
  sameToken,
  setHead,
  setQuery,
  setRun,
  tracedFrom,
} from "../../transformer/web/store.js";
import { effect } from "../../transformer/web/preact.js";
import { metricsOf } from "../../transformer/views/head_metrics/known.js";

const heard = [];
for (const name of ["run", "query", "head"]) on(name, (detail) => heard.push([name, detail]));
const told = () => heard.splice(0);

test("a new run lets go of the token, after all have heard of the run", () => {
  setQuery({ stack: "decoder", index: 1 });
  told();
  const run = /** @type {any} */ ({ stack: "decoder", trace_start: 3 });
  setRun(run);
  assert.deepEqual(told(), [
    ["run", run],
    ["query", null],
  ]);
  assert.equal(page.query, null);
});

test("the same choice is told once", () => {
  const head = { stack: "decoder", kind: "self", layer: 1, head: 2 };
  setHead(head);
  setHead({ ...head });
  setQuery({ stack: "decoder", index: 4 });
  setQuery({ stack: "decoder", index: 4 });
  assert.deepEqual(
    told().map(([name]) => name),
    ["head", "query"],
  );
  assert.equal(sameToken(null, undefined), true);
  assert.equal(sameToken(null, { stack: "decoder", index: 0 }), false);
});

test("what reads a part of the page while it is made follows its changes alone", () => {
  const seen = [];
  const stop = effect(() => void seen.push(page.query?.index));
  setQuery({ stack: "decoder", index: 7 });
  page.dark = true;
  setQuery({ stack: "decoder", index: 4 });
  stop();
  assert.deepEqual(seen, [4, 7, 4]);
});

test("a token's row counts from the first that is traced; another stack has none", () => {
  assert.equal(tracedFrom("decoder"), 3);
  assert.equal(tracedFrom("encoder"), 0);
  assert.equal(chosenRow("decoder"), 1);
  assert.equal(chosenRow("encoder"), null);
  setQuery({ stack: "decoder", index: 2 });
  assert.equal(chosenRow("decoder"), null);
});

test("a question on its way is not asked again; one that was answered is", async () => {
  let count = 0;
  const question = async (data) => {
    count += 1;
    return { data };
  };
  const [first, again, other] = [
    ask(question, { a: 1 }),
    ask(question, { a: 1 }),
    ask(question, { a: 2 }),
  ];
  assert.equal(await first, await again);
  assert.deepEqual((await other).data, { a: 2 });
  assert.equal(count, 2);
  await ask(question, { a: 1 });
  assert.equal(count, 3);
});

test("a server that does not keep a run is told how it was made", async () => {
  const asked = [];
  const question = async (data) => {
    asked.push(data);
    if (!data.made) throw Object.assign(new Error("x"), { gone: true });
    return { weights: 1 };
  };
  setRun(/** @type {any} */ ({ run: "known", link: { text: "Hello" } }));
  setRun(/** @type {any} */ ({ run: "other", link: { text: "Bye" } }));
  assert.deepEqual(await ask(question, { run: "known", head: 1 }), { weights: 1 });
  const made = { known: { text: "Hello" } };
  assert.deepEqual(asked, [
    { run: "known", head: 1 },
    { run: "known", head: 1, made },
  ]);
  await ask(question, { run: "known", other: "other" });
  assert.deepEqual(asked.at(-1)?.made, { ...made, other: { text: "Bye" } });
  await assert.rejects(ask(question, { run: "unknown" }), { message: RUN_GONE });
});

test("a refusal is an error with the server's own sentence", async () => {
  const sent = [];
  const answers = [
    new Response(JSON.stringify({ detail: "No such head." }), { status: 400 }),
    new Response(JSON.stringify({ detail: "x" }), { status: 410 }),
    new Response("<html>", { status: 502 }),
  ];
  globalThis.fetch = async (...request) => {
    sent.push(request);
    return answers.shift() ?? Promise.reject(new TypeError("offline"));
  };
  const messages = ["No such head.", RUN_GONE, /refused the request/, /did not answer/];
  for (const message of messages)
    await assert.rejects(ask(server.lesson, { name: "a" }), (/** @type {any} */ error) => {
      assert.match(error.message, new RegExp(message));
      return true;
    });
  const [url, { method, headers, body }] = sent[0];
  assert.deepEqual(
    [url, method, JSON.parse(body)],
    ["resources/lesson?__lang=en", "POST", { name: "a" }],
  );
  assert.equal(headers["x-session"], session);
});

test("two parts of the page that ask for the same metrics at once ask the server once", async () => {
  let asked = 0;
  const part = () => ({ metrics: async () => ({ count: ++asked }) });
  const data = { run: "a", stack: "decoder", kind: "self" };
  const found = await Promise.all([metricsOf(part())(data), metricsOf(part())(data)]);
  assert.deepEqual(found, [{ count: 1 }, { count: 1 }]);
});
