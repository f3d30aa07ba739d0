// Views that change the network: what they say of it, and what a press on them asks for.
import assert from "node:assert/strict";
import test from "node:test";

import { fire, press, settled } from "../kit/dom.js";
import { changesOf, requests, drawnView, show, texts, valuesOf } from "./drawn.js";
import { page, setQuery } from "../../transformer/web/store.js";
import { mount as ablation } from "../../transformer/views/whatif/ablation.js";
import { mount as future } from "../../transformer/views/masks/future.js";
import { mount as hidden } from "../../transformer/views/prediction/hidden_words.js";
import { mount as order } from "../../transformer/views/positions/order.js";
import { mount as patching } from "../../transformer/views/whatif/patching.js";

/** @type {(layer: number, heads: number[], more?: object) => any} */
const off = (layer, heads, more = {}) => ({
  ...{ type: "ablate", stack: "decoder", layer, heads },
  ...more,
});
const heads = [0, 1].flatMap((layer) =>
  [0, 1].map((head) => ({ layer, head, label: layer ? "copies" : "", sign: layer ? "→" : "" })),
);

test("heads are chosen in a grid and switched off together", async () => {
  show();
  const element = await drawnView(ablation, { metrics: { heads } });
  const buttons = element.querySelectorAll(".ablated");
  const says = () => texts(element, ".ablation-says")[0];
  const [apply] = element.querySelectorAll(".apply");
  assert.deepEqual(texts(element, ".ablated span"), ["0·0", "1·0 →", "0·1", "1·1 →"]);
  assert.deepEqual(texts(element, ".heads-by-label li"), ["→copies: 1·0, 1·1"]);
  assert.deepEqual(valuesOf(element, ".ablated", "tabindex"), ["0", "-1", "-1", "-1"]);
  assert.deepEqual([apply.getAttribute("aria-disabled"), says()], ["true", "0 heads switched off in the shown run."]); // prettier-ignore
  press(buttons[3]); // layer 1, head 1
  await settled(element);
  press(buttons[1]); // layer 1, head 0
  await settled(element);
  assert.deepEqual(valuesOf(element, ".ablated", "aria-pressed"), ["false", "true", "false", "true"]); // prettier-ignore
  assert.deepEqual(valuesOf(element, ".ablated", "tabindex"), ["-1", "0", "-1", "-1"]);
  assert.equal(says(), "2 heads chosen, not yet applied; 0 heads switched off in the shown run.");
  press(apply);
  assert.deepEqual(requests[0].interventions, [off(1, [0, 1])]);
  fire(buttons[1], "keydown", { key: "ArrowDown" });
  await settled(element);
  assert.deepEqual(valuesOf(element, ".ablated", "tabindex"), ["-1", "-1", "-1", "0"]);
});

test("what is switched off is chosen, and switched on again", async () => {
  const patch = { type: "patch" };
  show({ interventions: changesOf(off(0, [1]), patch) });
  const element = await drawnView(ablation, { metrics: { heads } });
  const [apply] = element.querySelectorAll(".apply");
  assert.deepEqual(valuesOf(element, ".ablated", "aria-pressed"), ["false", "false", "true", "false"]); // prettier-ignore
  assert.deepEqual(texts(element, ".ablation-says"), ["1 head switched off in the shown run."]);
  assert.equal(apply.textContent, "Switch off the chosen heads");
  press(element.querySelector(".none"));
  await settled(element);
  assert.equal(apply.textContent, "Switch all heads on again");
  press(apply);
  assert.deepEqual(requests[0].interventions, [patch]);
});

test("the head that matters most is named, and coloured by its effect", async () => {
  show();
  const most = { stack: "decoder", kind: "self", layer: 1, head: 0, before: 0.5, after: 0.125 };
  const importance = {
    ...{ most, label: "␣fox", log_probability: Math.log(0.5), limit: 2 },
    change: [[0, 2], [-2, 0]], // [layer][head]
    figure: { data: [], layout: {} },
  }; // prettier-ignore
  const element = await drawnView(ablation, { metrics: { heads }, importance });
  press(element.querySelector(".matter"));
  await settled(element, () => element.querySelector(".matter-title") !== null);
  assert.match(
    texts(element, ".matter-most")[0],
    /^Layer 1, head 0 \(copies\) has the largest .* “␣fox” goes from 50.0 % to 12.5 %/,
  );
  assert.match(texts(element, ".matter-says")[0], /p = 0\.5000\..*from -2\.00 to 2\.00/);
  const colours = element
    .querySelectorAll(".ablated i")
    .map((/** @type {any} */ strip) => strip.style.background);
  // [head][layer]: none, the last of the colours, the first, none
  assert.deepEqual(colours, ["rgb(244, 244, 244)", "rgb(94, 43, 151)", "rgb(166, 54, 3)", "rgb(244, 244, 244)"]); // prettier-ignore
  press(element.querySelector(".ablation-most"));
  assert.deepEqual(requests[0].interventions, [off(1, [0])]);
});

test("positions are taken away and given back", async () => {
  const broken_text = (/** @type {any} */ { what }) => ({
    labels: what ? ["␣moon"] : ["␣on", "␣the"],
  });
  for (const [facts, what] of /** @type {const} */ ([
    [{ adds_positions: true, is_rotary: false }, "no-positions"],
    [{ adds_positions: false, is_rotary: true }, "no-rotation"],
  ])) {
    show(facts);
    const element = await drawnView(order, { broken_text });
    const [button] = element.querySelectorAll(".switch-off");
    assert.equal(texts(element, "p")[0], "With positions it writes “on the”, without them “moon”.");
    assert.equal(button.textContent, "Take the positions away");
    assert.equal(button.getAttribute("aria-pressed"), "false");
    press(button);
    assert.deepEqual(requests[0].interventions, [{ type: "break", what }]);
    const other = off(0, [0]);
    show({ ...facts, interventions: changesOf(other, { type: "break", what }) });
    await settled(element);
    assert.equal(button.textContent, "Give the positions back");
    assert.equal(button.getAttribute("aria-pressed"), "true");
    press(button);
    assert.deepEqual(requests[0].interventions, [other]);
  }
  show({ adds_positions: false, is_rotary: false });
  const [none] = (await drawnView(order)).querySelectorAll(".order");
  assert.ok(none.getAttribute("hidden"));
});

test("no token reads what comes later, unless the mask is taken away", async () => {
  show({ special: [0] });
  const element = await drawnView(future);
  assert.deepEqual(texts(element, "th"), ["␣fox", "␣sat", "␣on", "␣the", "␣fox"]);
  const open = () => element.querySelectorAll("tr").map((/** @type {any} */ row) => row.querySelectorAll(".may").length); // prettier-ignore
  assert.deepEqual(open(), [1, 2, 3, 4, 5]);
  assert.match(texts(element, "p")[0], /at ␣fox it is asked for ␣sat\. .*would copy ␣sat/);
  const causal = { type: "mask", stack: "decoder", without: ["causal"] };
  press(element.querySelector(".switch-off"));
  assert.deepEqual(requests[0].interventions, [causal]);
  press(element.querySelectorAll("th button")[1]);
  assert.deepEqual(page.query, { stack: "decoder", index: 2 });
  show({ interventions: changesOf(off(0, [0]), causal) });
  await settled(element);
  assert.deepEqual(open(), Array(6).fill(6));
  press(element.querySelector(".switch-off"));
  assert.deepEqual(requests[0].interventions, [off(0, [0])]);
  show({ windows: [2] }); // of every layer
  await settled(element);
  assert.deepEqual(open(), [1, 2, 2, 2, 2, 2]);
  show({ stack: "encoder", windows: [2, null] });
  await settled(element);
  assert.deepEqual(open(), Array(6).fill(6));
  assert.match(texts(element, "p")[1], /at most 3 tokens, .* In some layers it reads all\.$/);
});

test("an encoder guesses what is hidden, or would be", async () => {
  const masked = { labels: ["␣fox", "␣dog", "a", "b", "c"], probabilities: [0.8375, 0.1, 0.02] };
  show({ stack: "encoder", hidden: [2, 4], last_read: 4 });
  const element = await drawnView(hidden, { masked });
  assert.deepEqual(texts(element, ".hidden-word p"), ["Hidden at place 2:", "fox 83.8 %"]);
  assert.equal(texts(element, "li").length, 3);
  assert.equal(texts(element, "li")[0], "dog 10.0 %");
  setQuery({ stack: "encoder", index: 1 });
  await settled(element);
  assert.equal(texts(element, ".hidden-word p")[0], "If ␣fox were hidden:");
  show();
  await settled(element);
  assert.deepEqual(texts(element, ".hidden-word"), []);
});

test("a patch takes the place of an earlier one, of this text", async () => {
  const other = { variant: "the dog sat", teaching: "Tom sat" };
  const patching_of = {
    ...{ before: Math.log(0.5), other: Math.log(0.25), limit: 1, lengths: [6, 5] },
    ...{ position: 5, target: "␣dog", token: "␣fox", altered: true },
    figure: {
      data: [{ type: "heatmap", z: [[0.25, -0.5], [0, 0.125]] }],
      layout: {
        ...{ height: 300, margin: { t: 0, b: 0, l: 0, r: 0 } },
        ...{ xaxis: { ticktext: [] }, xaxis2: { ticktext: [] }, yaxis: {} },
        meta: { column_labels: ["the", "␣fox"] },
      },
    },
  }; // prettier-ignore
  /** @type {any[]} */
  const questions = [];
  show({ interventions: changesOf(off(0, [0]), { type: "patch", layer: 0 }) });
  setQuery({ stack: "decoder", index: 4 });
  const answer = (/** @type {any} */ data) => {
    questions.push(data);
    return patching_of;
  };
  const element = await drawnView(patching, { other_text: other, patching: answer });
  assert.match(texts(element, ".try-pair")[0], /Try it with “Tom sat”/);
  press(element.querySelector(".show-map"));
  await settled(element, () => element.querySelector(".patch-found") !== null);
  const { run } = page.run;
  const choice = { stack: "decoder", part: "resid_post", kind: "self", target: "other" };
  assert.deepEqual(questions, [{ run, other: "the dog sat", position: 5, ...choice }]);
  const [says] = texts(element, ".patch-says");
  assert.match(
    says,
    /^ln p is -0\.69 here \(p = 0\.50\) and -1\.39 in the other run \(p = 0\.25\)/,
  );
  assert.match(says, /have 6 and 5 tokens\..*shows the intact network\.$/);
  const box = element.querySelector("[data-picture=patching]");
  fire(box, "plotly_click", { points: [{ x: 1, y: 0 }] });
  const patch = { type: "patch", stack: "decoder", layer: 0, positions: [1], text: "the dog sat" };
  assert.deepEqual(requests[0].interventions, [off(0, [0]), { ...patch, part: "resid_post" }]);
});
