// Edits of a mask: clicks, plans, and their plain values, which Python checks.
import assert from "node:assert/strict";
import test from "node:test";

import {
  editCell,
  editLine,
  editsByPlace,
  isEdited,
  maskOf,
  masksOf,
  noEdits,
  planOf,
} from "../../transformer/views/edit_mask/mask_edits.js";
import { isAblated, ablationOf, withAblation } from "../../transformer/ui/static/interventions.js";
import { hand, vectors } from "./vectors.js";

const SITE = { stack: "decoder", kind: "self", layer: null };
const table = (size, of) =>
  Array.from({ length: size }, (_, query) =>
    Array.from({ length: size }, (_, key) => of(query, key)),
  );

test("a click on a cell always turns it round", () => {
  const made = vectors.clicks.map(({ size, clicks }) => {
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

test("a line is forbidden, then allowed, then as it was", () => {
  const edits = noEdits();
  editLine(edits, "1,*");
  assert.deepEqual(table(3, planOf([edits], true).planned)[1], [false, false, false]);
  editLine(edits, "1,*");
  assert.deepEqual(table(3, planOf([edits], true).planned)[1], [true, true, true]);
  editLine(edits, "1,*");
  assert.equal(isEdited(edits), false);
});

test("what several interventions make of a mask is what the network makes of them", () => {
  for (const { interventions, size, allowed } of vectors.masks) {
    const byPlace = editsByPlace(interventions);
    const acting = ["decoder.*.self", "decoder.0.self"].map(
      (name) => byPlace.get(name) ?? noEdits(),
    );
    assert.deepEqual(table(size, planOf(acting, true).planned), allowed);
    assert.deepEqual(editsByPlace(masksOf(byPlace)), byPlace);
  }
});

test("a mask that is taken away as a whole hides nothing", () => {
  const edits = noEdits();
  edits.without.add("causal");
  const plan = planOf([edits], true);
  assert.equal(plan.planned(0, 2), true);
  assert.deepEqual([plan.isRemoved("causal"), plan.isRemoved("padding")], [true, false]);
});

test("a silenced head is Python's plain value of it, and speaks again", () => {
  for (const { head, heads, by, plain } of vectors.ablations) {
    assert.deepEqual(ablationOf(head, heads, by), plain);
  }
  const head = { stack: "encoder", kind: "self", layer: 1, head: 2 };
  const other = { type: "break", what: "no-positions" };
  const once = withAblation(head, [other]);
  assert.equal(isAblated(head, once), true);
  assert.equal(isAblated({ ...head, head: 1 }, once), false);
  assert.deepEqual(withAblation(head, once), [other]);
  const two = withAblation({ ...head, head: 1 }, once);
  assert.equal(isAblated({ ...head, head: 1 }, two), true);
  assert.equal(isAblated(head, withAblation(head, two)), false);
  assert.equal(isAblated({ ...head, head: 1 }, withAblation(head, two)), true);
});
