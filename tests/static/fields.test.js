// The fields of the page's state: declared in Python, kept as texts, whoever shows them and when.
import assert from "node:assert/strict";
import test from "node:test";

const choice = { type: "choice", options: { a: "A", b: "B" }, default: "a", use: "control" };
const whole = { type: "int", least: 0, most: 9, default: 4, use: "place" };
const declared = {
  settings: ["seed"],
  request: ["model", "text", "seed"],
  batch: ["lines"],
  renamed: { taken: "forced_tokens" },
  page: { tab: { ...choice, use: "place" } },
  views: [
    { name: "shown", pictures: [], controls: { look: choice, "shown.n": whole } },
    {
      name: "late",
      pictures: [],
      controls: {
        many: { type: "intlist", default: [1, 2], use: "control" },
        none: { ...choice, default: null, optional: true },
      },
    },
  ],
};
const schema = { textContent: JSON.stringify(declared) };
globalThis.document = /** @type {any} */ ({
  getElementById: (id) => (id === "view-schema" ? schema : null),
});
const { declaredFields, fieldText, keptBy, lookFields, setFields, showFields, shownFields } =
  await import("../../transformer/web/fields.js");
const { effect } = await import("../../transformer/web/preact.js");
const { page } = await import("../../transformer/web/store.js");
const { stateOf } = await import("../../transformer/web/link_text.js");

test("a view's values are those of its fields, typed, and what reads them follows", () => {
  const fields = declaredFields("shown");
  assert.deepEqual({ ...fields }, { look: "a", "shown.n": 4 });
  const seen = [];
  const stop = effect(() => void seen.push(fields["shown.n"]));
  fields["shown.n"] = 7;
  fields.look = "b";
  stop();
  assert.deepEqual(seen, [4, 7]);
  assert.deepEqual(shownFields(), { look: "b", "shown.n": "7" });
  assert.deepEqual(lookFields(), { look: "b" }); // without places in the run
});

test("a field waits for the part that shows it, which then hears of it", () => {
  assert.deepEqual(showFields({ many: "3,5", none: "b" }), []);
  assert.deepEqual(shownFields(), { many: "3,5", none: "b" });
  const heard = [];
  const fields = declaredFields("late", ({ many }, { none }) => heard.push([many, none]));
  assert.deepEqual(heard, [[[3, 5], "b"]]);
  setFields({ many: "" });
  assert.deepEqual([fields.many, heard.length], [[], 2]);
  setFields({ look: "b" });
  assert.equal(heard.length, 2); // no field of its own
});

test("what cannot be had is a sentence, and the field as it is at first", () => {
  assert.match(
    showFields({ look: "c", "shown.n": "12" }).join(" "),
    /look.*got c.*shown\.n.*got 12/,
  );
  assert.deepEqual(shownFields(), {});
  declaredFields("late", ({ none }) => {
    if (none) throw new Error("Not here.");
  });
  assert.deepEqual(setFields({ none: "a" }), ["Not here."]);
  assert.equal(fieldText("none"), "");
});

test("a run's opening is how its fields are at first, and a field may stand elsewhere", () => {
  page.run = /** @type {any} */ ({ opening: { look: "b" } });
  showFields({});
  assert.deepEqual([fieldText("look"), shownFields()], ["b", {}]);
  let kept = "a";
  keptBy(
    "tab",
    () => kept,
    (text) => (kept = text),
  );
  setFields({ tab: "b" });
  assert.deepEqual([kept, shownFields()], ["b", { tab: "b" }]);
});

test("a name of a link of before is the one that it has now", async () => {
  assert.deepEqual(await stateOf("taken=4,5"), { forced_tokens: "4,5" });
});
