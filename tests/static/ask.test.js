// Questions to the server.
import assert from "node:assert/strict";
import test from "node:test";

import { RUN_GONE, ask } from "../../transformer/web/ask.js";
import { setRun } from "../../transformer/web/store.js";

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

test("a pending request is not repeated; an answered one may be", async () => {
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

test("a busy server is retried when it says so; else its error is shown", async () => {
  let after = "0.01";
  const busy = () =>
    new Response('{"detail": "busy"}', { status: 503, headers: { "retry-after": after } });
  answering(() => (asked.length < 3 ? busy() : Response.json({ weights: 1 })));
  assert.deepEqual(await ask("lens", { a: 3 }), { weights: 1 });
  assert.equal(asked.length, 3);
  answering(busy);
  for (after of ["3600", "", "soon"]) await assert.rejects(ask("lens", {}), { message: "busy" });
  assert.equal(asked.length, 3);
});

test("a server that lost a run is sent the request that made it", async () => {
  answering((data) => (data.made ? Response.json({ weights: 1 }) : refusing(410, "x")));
  setRun(/** @type {any} */ ({ run: "known", request: { text: "Hello" } }));
  setRun(/** @type {any} */ ({ run: "other", request: { text: "Bye" } }));
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
