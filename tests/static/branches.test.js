// What-if › Another token: the tree of a prompt's texts and the candidates of a step.
import assert from "node:assert/strict";
import test from "node:test";

import { fire, press, settled } from "../kit/dom.js";
import { changesOf, drawnView, requests, show, texts, valuesOf } from "./drawn.js";
import { compared, pastRuns } from "../../transformer/web/runs.js";
import { page, setQuery, shell } from "../../transformer/web/store.js";
import { mount } from "../../transformer/views/runs/branches.js";

const CANDIDATES = {
  ...{ ids: [1, 7, 9], labels: ["␣on", "␣by", "␣in"], probabilities: [0.5, 0.25, 0.0625] },
  ...{ taken: 1, searched: false },
};
/** @type {any} every run that was asked for is kept but for those of `lost` */
const kept = (/** @type {{ runs: string[] }} */ { runs }) => ({
  kept: runs.map((run) => !lost.includes(run)),
});
/** @type {string[]} */
const lost = [];
/** @type {(element: any) => any[]} */
const linesOf = (element) => element.querySelectorAll(".branch");
/** @type {(element: any) => (string | null)[]} */
const stopsOf = (element) => valuesOf(element, ".branch", "tabindex");

test("a prompt's texts are a tree in which each leaves the one it shares most with", async () => {
  pastRuns.splice(0);
  const text = "a tree";
  show({ text: "of another prompt" });
  const first = show({ text }); // 1 2 3 | 4 1 2
  const second = show({ text, ids: [1, 2, 3, 4, 5, 6], labels: ["a", "b", "c", "d", "␣x", "y"] });
  const third = show({ text, ids: [1, 2, 3, 4, 5], labels: ["a", "b", "c", "d", "␣x"] });
  const other = show({ text, ids: [1, 2, 3, 9, 9], how: "sampled", interventions: changesOf({}) });
  const element = await drawnView(mount, { choices: CANDIDATES, kept });
  assert.deepEqual(valuesOf(element, ".branch", "data-run"), [first, second, third, other]);
  assert.deepEqual(valuesOf(element, ".branch", "aria-level"), ["1", "2", "3", "2"]);
  assert.deepEqual(valuesOf(element, ".branch", "aria-expanded"), ["true", "true", null, null]);
  assert.deepEqual(valuesOf(element, ".branch", "aria-selected"), [
    ...["false", "false", "false", "true"],
  ]);
  const numbers = pastRuns.slice(1).map(({ number }) => number);
  assert.deepEqual(valuesOf(element, ".branch", "aria-label"), [
    `Text ${numbers[0]}:  on the fox, greedy`,
    `Text ${numbers[1]}: at 4,  xy`,
    `Text ${numbers[2]}: at 5, the same text`,
    `Text ${numbers[3]}: at 3,  on the fox, sampled; it is altered`,
  ]);
  assert.deepEqual(texts(element, ".branch-text em"), ["ended here"]); // of what goes on in the second
  assert.deepEqual(texts(element, ".branch-how"), ["greedy", "sampled; it is altered"]);
  assert.deepEqual(stopsOf(element), ["-1", "-1", "-1", "0"]);

  // Arrow keys move through it, and nothing is shown by them.
  const lines = linesOf(element);
  /** @type {(line: any, key: string) => Promise<number>} */
  const move = async (line, key) => {
    let isOurs = false;
    fire(line, "keydown", { key, preventDefault: () => (isOurs = true) });
    await settled(element);
    assert.ok(isOurs || key === "ArrowUp"); // else the page would scroll, too
    return stopsOf(element).indexOf("0");
  };
  assert.equal(await move(lines[3], "Home"), 0);
  assert.equal(await move(lines[0], "ArrowRight"), 1);
  assert.equal(globalThis.document.activeElement, lines[1]);
  assert.equal(await move(lines[1], "ArrowDown"), 2);
  assert.equal(await move(lines[2], "ArrowLeft"), 1);
  assert.equal(await move(lines[1], "ArrowUp"), 0);
  assert.equal(await move(lines[0], "ArrowUp"), 0); // there is none above
  assert.equal(await move(lines[0], "End"), 3);
  assert.equal(page.run.run, other);
  // One that goes on where another ended, and one that is the same as another.
  const longer = show({
    text,
    ids: [1, 2, 3, 4, 5, 6, 7],
    labels: ["a", "b", "c", "d", "e", "f", "g"],
  });
  const same = show({
    text,
    ids: [1, 2, 3, 4, 5, 6, 7],
    labels: ["a", "b", "c", "d", "e", "f", "g"],
  });
  await settled(element);
  const at = [second, third, longer, same].map((run) =>
    texts(element.querySelector(`.branch[data-run=${run}]`), ".branch-line")[0].replace(
      / ?compare$/,
      "",
    ),
  );
  assert.deepEqual(at, [
    `${numbers[1]}at 4 xy`,
    `${numbers[2]}at 5 ended here`,
    `${numbers[3] + 1}at 6 g`,
    `${numbers[3] + 2}at 7 the same text`,
  ]);
  assert.equal(valuesOf(element, ".branch", "aria-level").at(-2), "4");
});

test("a text of the tree is shown again or compared, and a lost one is said to be", async () => {
  pastRuns.splice(0);
  const text = "kept and lost";
  const first = show({ text });
  const second = "lost"; // nothing is remembered of how it was asked for
  pastRuns.push({ number: 70, facts: { ...page.run, run: second, ids: [1, 2, 3, 9] } });
  lost.push(second);
  const third = show({ text, ids: [1, 2, 3, 8] });
  /** @type {any[]} */
  const applied = [];
  shell.apply = (/** @type {any} */ _, /** @type {any} */ facts) => void applied.push(facts.run);
  const element = await drawnView(mount, { choices: CANDIDATES, kept });
  assert.deepEqual(valuesOf(element, ".branch", "aria-disabled"), [null, "true", null]);
  assert.equal(texts(element, ".branch-how")[1], "no longer kept by the server");
  const buttons = element.querySelectorAll(".branch-compare");
  assert.equal(buttons.length, 1); // neither of the lost text nor of the shown one
  press(buttons[0]);
  assert.equal(compared.run, first);
  assert.deepEqual(applied, []); // the line below the button is not pressed with it
  const lines = element.querySelectorAll(".branch-line");
  press(lines[2]); // it is shown already
  press(lines[1]);
  await settled(element);
  assert.deepEqual(applied, []);
  assert.match(page.status.text, /no longer/);
  press(lines[0]);
  fire(linesOf(element)[0], "keydown", { key: "Enter" });
  fire(linesOf(element)[0], "keydown", { key: " " });
  fire(linesOf(element)[0], "keydown", { key: "x" });
  assert.deepEqual(applied, [first, first, first]);
  assert.equal(page.run.run, third);
  await settled(element);
  assert.deepEqual(stopsOf(element), ["0", "-1", "-1"]); // the text that was pressed last
});

test("a candidate of the step after the chosen token is gone on with", async () => {
  pastRuns.splice(0);
  /** @type {any[]} */
  const asked = [];
  const choices = (/** @type {any} */ data) => {
    asked.push(data.step);
    return { ...CANDIDATES, searched: data.step === 2 };
  };
  const run = show({ ids: [1, 2, 3, 7, 1, 9] });
  const element = await drawnView(mount, { choices, kept });
  const title = () => texts(element, ".branch-title")[0];
  const ends = () => valuesOf(element, ".step-head button", "aria-disabled");
  assert.equal(title(), "Token 3 is “␣on”. It could have been:");
  assert.deepEqual(texts(element, ".choice .value"), ["50.0 % ✓", "25.0 %", "6.3 %"]);
  assert.deepEqual(valuesOf(element, ".choice", "aria-label"), [
    "␣on, 0.5000: the text goes on with it",
    "␣by, 0.2500: go on with it instead",
    "␣in, 0.0625: go on with it instead",
  ]);
  assert.deepEqual(ends(), ["true", "false"]);
  press(element.querySelectorAll(".choice")[2]);
  assert.deepEqual(requests.splice(0)[0].forced_tokens, [9]);
  press(element.querySelector(".next"));
  await settled(element);
  assert.deepEqual(page.query, { stack: "decoder", index: 3 });
  assert.equal(title(), "Token 4 is “␣on”. It could have been:");
  assert.deepEqual(ends(), ["false", "false"]);
  press(element.querySelectorAll(".choice")[1]);
  assert.deepEqual(requests[0].forced_tokens, [7, 7]); // the first that was written, then the other
  press(element.querySelector(".next"));
  await settled(element);
  assert.deepEqual(ends(), ["false", "true"]);
  assert.match(texts(element, ".branch-note")[0], /A branch of a beam search continues greedily\./);
  setQuery({ stack: "decoder", index: 0 }); // of the prompt: the step stays
  await settled(element);
  assert.equal(title(), "Token 5 is “␣on”. It could have been:");
  press(element.querySelector(".previous"));
  await settled(element);
  assert.deepEqual(asked, [0, 1, 2, 1]);
  assert.equal(page.run.run, run);
  setQuery({ stack: "decoder", index: 2 }); // the last of the prompt
  await settled(element);
  assert.equal(title(), "Token 3 is “␣on”. It could have been:");
  setQuery({ stack: "decoder", index: 5 }); // nothing was written after it
  await settled(element);
  assert.equal(title(), "Token 3 is “␣on”. It could have been:");
  show({ probabilities: [] });
  await settled(element);
  assert.equal(title(), "Nothing was generated, so there is no token to change.");
});
