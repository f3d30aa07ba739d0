// Calls of the engine in a worker, whose port a MessageChannel stands for.
import assert from "node:assert/strict";
import test from "node:test";

import { serve, toWorker } from "../../transformer/browser/worker.js";

/** @typedef {import("../../transformer/browser/types.d.ts").Handlers} Handlers */

const whole = new Float32Array(1000).fill(2);
/** @type {Handlers} */
const handlers = {
  part: ({ size }) => whole.subarray(1, 1 + size),
  count: async ({ most }, { progress, signal }) => {
    let count = 0;
    for (; count < most && !signal.aborted; count += 1) {
      progress(count);
      await new Promise((done) => setTimeout(done));
    }
    return count;
  },
  fail: () => {
    throw new RangeError("too long");
  },
};

/** @type {() => Promise<import("../../transformer/browser/types.d.ts").Caller>} */
const started = () => {
  const { port1, port2 } = new MessageChannel();
  const worker = toWorker(
    /** @type {any} */ (Object.assign(port1, { terminate: () => port1.close() })),
  );
  serve(handlers, /** @type {any} */ (port2));
  return worker;
};

test("a worker answers calls, tells how far it is and ends them", async () => {
  const caller = await started();
  const part = /** @type {Float32Array} */ (await caller.call("part", { size: 3 }));
  assert.deepEqual([...part], [2, 2, 2]);
  assert.equal(part.buffer.byteLength, 12); // the rest of the memory is not sent
  /** @type {unknown[]} */
  const counts = [];
  assert.equal(
    await caller.call("count", { most: 3 }, { progress: (count) => counts.push(count) }),
    3,
  );
  assert.deepEqual(counts, [0, 1, 2]);
  const stop = new AbortController();
  const progress = (/** @type {unknown} */ count) => void (count === 2 && stop.abort());
  const count = await caller.call("count", { most: 1e6 }, { progress, signal: stop.signal });
  assert.ok(Number(count) < 1000);
  await assert.rejects(caller.call("fail", null), /too long/);
  caller.end();
});

test("calls of a worker that ended are rejected", async () => {
  const caller = await started();
  const lost = caller.call("count", 50);
  caller.end();
  await assert.rejects(lost);
});
