// The page's state, its events, and questions to the server.
import assert from "node:assert/strict";
import test from "node:test";

import { RUN_GONE, ask, session } from "../../transformer/web/ask.js";
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
  for (const index of [4, 4]) setQuery({ stack: "decoder", index });
  assert.deepEqual(
    told().map(([name]) => name),
    ["head", "query"],
  );
  assert.equal(sameToken(null, undefined), true);
  assert.equal(sameToken(null, { stack: "decoder", index: 0 }), false);
});

test("a token's row counts from the first that is traced; another stack has none", () => {
  assert.equal(tracedFrom("decoder"), 3);
  assert.equal(tracedFrom("encoder"), 0);
  assert.equal(chosenRow("decoder"), 1);
  assert.equal(chosenRow("encoder"), null);
  setQuery({ stack: "decoder", index: 2 });
  assert.equal(chosenRow("decoder"), null);
});

// What the server answers each question with, by its data.
const asked = [];
const answering = (/** @type {(data: any) => Response} */ answer) => {
  asked.splice(0);
  globalThis.fetch = async (url, given) => {
    const data = JSON.parse(String(given?.body));
    asked.push({ url, ...given, data });
    return answer(data);
  };
};
const refusing = (status, detail) => new Response(JSON.stringify({ detail }), { status });

test("a question on its way is not asked again; one that was answered is", async () => {
  answering((data) => Response.json({ data }));
  const [first, again, other] = [
    ask("lens", { a: 1 }),
    ask("lens", { a: 1 }),
    ask("lens", { a: 2 }),
  ];
  assert.equal(await first, await again);
  assert.deepEqual((await other).data, { a: 2 });
  assert.equal(asked.length, 2);
  await ask("lens", { a: 1 });
  await ask("lines", { a: 1 });
  assert.equal(asked.length, 4);
});

test("a server that does not keep a run is told how it was made", async () => {
  answering((data) => (data.made ? Response.json({ weights: 1 }) : refusing(410, "x")));
  setRun(/** @type {any} */ ({ run: "known", link: { text: "Hello" } }));
  setRun(/** @type {any} */ ({ run: "other", link: { text: "Bye" } }));
  assert.deepEqual(await ask("lens", { run: "known", head: 1 }), { weights: 1 });
  const made = { known: { text: "Hello" } };
  assert.deepEqual(
    asked.map(({ data }) => data),
    [
      { run: "known", head: 1 },
      { run: "known", head: 1, made },
    ],
  );
  await ask("lens", { run: "known", other: "other" });
  assert.deepEqual(asked.at(-1)?.data.made, { ...made, other: { text: "Bye" } });
  await assert.rejects(ask("lens", { run: "unknown" }), { message: RUN_GONE });
});

test("a refusal is an error with the server's own sentence", async () => {
  const answers = [refusing(400, "No such head."), new Response("<html>", { status: 502 })];
  answering(() => {
    const answer = answers.shift();
    if (!answer) throw new TypeError("offline");
    return answer;
  });
  const messages = [/No such head./, /refused the request/, /did not answer/];
  for (const message of messages) await assert.rejects(ask("lesson", { name: "a" }), { message });
  const { url, method, headers, data } = asked[0];
  const wanted = ["resources/lesson?__lang=en", "POST", { name: "a" }];
  assert.deepEqual([url, method, data], wanted);
  assert.equal(headers["x-session"], session);
});
