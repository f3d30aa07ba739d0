// Edits of a mask: clicks, plans, and their plain values, which Python checks.
import assert from "node:assert/strict";
import test from "node:test";

import {
  editCell,
  editLine,
  maskOf,
  noEdits,
  planOf,
} from "../../transformer/views/masks/mask_edits.js";
import { hand, vectors } from "./vectors.js";

const SITE = { stack: "decoder", kind: "self", layer: null };
/** @type {(size: number, of: (query: number, key: number) => boolean) => boolean[][]} */
const table = (size, of) =>
  Array.from({ length: size }, (_, query) =>
    Array.from({ length: size }, (_, key) => of(query, key)),
  );

test("a click on a cell always turns it round", () => {
  const made = vectors.clicks.map((/** @type {any} */ { size, clicks }) => {
    const edits = noEdits();
    for (const click of clicks) {
      const [query, key] = click.split(",").map(Number);
      if (click.includes("*")) {
        editLine(edits, click);
        continue;
      }
      const { planned, before } = planOf([edits], true);
      const was = planned(query, key);
      editCell(edits, query, key, before(query, key), { queries: size, keys: size });
      assert.equal(planOf([edits], true).planned(query, key), !was, click);
    }
    return { size, mask: maskOf(SITE, edits), allowed: table(size, planOf([edits], true).planned) };
  });
  hand("masks", made); // Python: the network's mask with these edits is the same
});

test("a window hides what is too far away, until the whole mask is taken away", () => {
  const shown = (/** @type {any} */ edits, /** @type {boolean} */ isCausal) =>
    table(4, planOf([edits], isCausal, 2).planned).map((row) => row.map(Number).join(""));
  assert.deepEqual(shown(noEdits(), true), ["1000", "1100", "0110", "0011"]);
  assert.deepEqual(shown(noEdits(), false), ["1100", "1110", "0111", "0011"]);
  const open = { ...noEdits(), without: new Set(["causal"]) };
  assert.deepEqual(new Set(shown(open, true)), new Set(["1111"]));
});
