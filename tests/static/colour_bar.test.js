// The values beside a heatmap's colours.
import assert from "node:assert/strict";
import test from "node:test";

import { roundValues } from "../../transformer/ui/static/colour_bar.js";

test("round values lie within the colours, as many as there is room for", () => {
  assert.deepEqual(roundValues(-9.3, 9.3, 10), [
    [-8, -6, -4, -2, 0, 2, 4, 6, 8],
    ["−8", "−6", "−4", "−2", "0", "2", "4", "6", "8"],
  ]);
  assert.deepEqual(roundValues(-9.3, 9.3, 3)[1], ["0"]);
  assert.deepEqual(roundValues(-1, 1, 4)[1], ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
  assert.deepEqual(roundValues(-0.03, 0.03, 6)[1].at(-1), "0.03");
  for (const bound of [1e-6, 0.007, 0.5, 3, 42, 1e5]) {
    for (const count of [0.5, 2, 7, 12]) {
      const [values] = roundValues(-bound, bound, count);
      assert.ok(values.includes(0), `${bound} ${count}`);
      assert.ok(values.length <= count + 1);
      assert.ok(values.every((value) => Math.abs(value) <= bound * 1.000001));
    }
  }
});
