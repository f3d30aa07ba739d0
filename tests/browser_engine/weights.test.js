// Files of weights that come part by part.
import assert from "node:assert/strict";
import test from "node:test";

import { Kernel } from "../../transformer/browser/kernel.js";
import { Weights } from "../../transformer/browser/weights.js";
import { kernelBytes } from "./vectors.js";

const numbers = Uint16Array.from({ length: 24 }, (_, at) => 257 * at + 3);
const tensors = {
  first: { dtype: "F16", shape: [2, 4], data_offsets: [0, 16] },
  second: { dtype: "F16", shape: [4, 4], data_offsets: [16, 48] },
};
const header = new TextEncoder().encode(JSON.stringify(tensors).padEnd(152)); // no multiple of 16
const file = new Uint8Array([
  ...new Uint8Array(BigUint64Array.of(BigInt(header.length)).buffer),
  ...header,
  ...new Uint8Array(numbers.buffer),
]);
const even = (/** @type {any} */ _, /** @type {number} */ at) => at % 2 === 0;
const odd = (/** @type {any} */ _, /** @type {number} */ at) => at % 2 === 1;
const planes = new Uint8Array([...file.filter(even), ...file.filter(odd)]);
/** @type {(bytes: Uint8Array, length: number) => Uint8Array[]} */
const cut = (bytes, length) =>
  Array.from({ length: Math.ceil(bytes.length / length) }, (_, at) =>
    bytes.subarray(at * length, (at + 1) * length),
  );

for (const [said, bytes, inPlanes] of /** @type {const} */ ([
  ["as they are", file, false],
  ["in planes", planes, true],
]))
  test(`weights ${said} are the same in parts of any length`, async () => {
    for (const length of [1, 7, 64, file.length]) {
      const kernel = await Kernel.from(kernelBytes());
      const weights = new Weights(kernel);
      await weights.add({ size: file.length, parts: cut(bytes, length), inPlanes });
      const values = ["first", "second"].flatMap((name) => {
        const { address, shape } = weights.get(name);
        assert.equal(address % 16, 0);
        return [...new Uint16Array(kernel.memory.buffer, address, shape[0] * shape[1])];
      });
      assert.deepEqual(values, [...numbers]);
    }
  });

test("a file of weights that ends early is refused", async () => {
  const weights = new Weights(await Kernel.from(kernelBytes()));
  const parts = [file.subarray(0, -1)];
  await assert.rejects(weights.add({ size: file.length, parts }), /weights/);
});
