// Questions to the server.
import assert from "node:assert/strict";
import test from "node:test";

import * as requests from "../../transformer/web/ask.js";
import { setRun } from "../../transformer/web/store.js";

const { RUN_GONE, answerFrom, answeredHere, hasServer } = requests;
/** @type {(name: string, data: object) => Promise<any>} of any answer */
const ask = /** @type {any} */ (requests).ask;

// What the server answers each question with, by its data.
/** @type {any[]} */
const asked = [];
const answering = (/** @type {(data: any) => Response} */ answer) => {
  asked.splice(0);
  globalThis.fetch = async (url, given) => {
    const data = JSON.parse(String(given?.body));
    asked.push({ url, ...given, data });
    return answer(data);
  };
};
/** @type {(status: number, detail: string) => Response} */
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

// ---- beside a server: the network in the page answers what it covers ----

const ID = "browser-0123456789abcd"; // of a run that was made in the page
/** @type {(work: () => any, covered?: () => boolean) => void} */
const here = (work, covered = () => true) =>
  answerFrom(
    { lens: async () => work(), stop: () => "stopped" },
    (name) => name === "lens" && covered(),
  );
const fault = () => Object.assign(new Error("gone"), { isFault: true });

test("what the page covers asks no server; the rest does, with the run's request at once", async () => {
  here(() => ({ weights: 2 }));
  answering(() => Response.json({ weights: 1 }));
  setRun(/** @type {any} */ ({ run: ID, request: { text: "Hi" } }));
  assert.deepEqual(await ask("lens", { run: ID }), { weights: 2 });
  assert.equal(asked.length, 0);
  assert.deepEqual(await ask("metrics", { run: ID }), { weights: 1 });
  assert.equal(answeredHere("stop", {}), null);
  assert.deepEqual(
    asked.map(({ data }) => data),
    [{ run: ID, made: { [ID]: { text: "Hi" } } }],
  );
});

test("a question is answered wholly by whoever was there when it was asked", async () => {
  let isReady = false;
  answering(() => Response.json({ weights: 1 }));
  here(
    () => ({ weights: 2 }),
    () => isReady,
  );
  const before = ask("lens", { run: "a" });
  isReady = true;
  const after = ask("lens", { run: "b" });
  assert.deepEqual(await Promise.all([before, after]), [{ weights: 1 }, { weights: 2 }]);
});

test("where the page fails or refuses, the server answers; where it is gone, the page's sentence is shown", async () => {
  answering(() => Response.json({ weights: 1 }));
  for (const error of [fault(), new Error("too long")]) {
    here(() => {
      throw error;
    });
    assert.deepEqual(await ask("lens", { run: ID }), { weights: 1 });
  }
  globalThis.fetch = () => Promise.reject(new TypeError("no network"));
  await assert.rejects(ask("lens", { run: ID }), { message: "too long" });
});

test("a page without a server refuses what it has no answer for", () => {
  answerFrom({ lens: () => 1 });
  assert.equal(hasServer(), false);
  assert.throws(() => answeredHere("metrics"), /only a server/);
});
