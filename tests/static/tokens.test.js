// The text as tokens: how each looks, what a press or a key chooses, and the arcs to what is read.
import assert from "node:assert/strict";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { fire, settled } from "../kit/dom.js";
import { vectors } from "./vectors.js";
import { drawn, prepare, show, texts, valuesOf } from "./drawn.js";
import { Arcs } from "../../transformer/web/arcs.js";
import { effects } from "../../transformer/web/effects.js";
import { html } from "../../transformer/web/preact.js";
import { emit, page, setHead, setQuery } from "../../transformer/web/store.js";
import { readFrom } from "../../transformer/web/text.js";
import { Text } from "../../transformer/web/tokens.js";

/** @type {any} */
const proto = Object.getPrototypeOf(globalThis.document.body);
globalThis.DOMRect = /** @type {any} */ (
  class {
    constructor(
      /** @type {number} */ x,
      /** @type {number} */ y,
      /** @type {number} */ width,
      /** @type {number} */ height,
    ) {
      Object.assign(this, {
        x,
        y,
        width,
        height,
        left: x,
        top: y,
        right: x + width,
        bottom: y + height,
      });
    }
  }
);
// What is observed is measured at once, as in a browser.
globalThis.ResizeObserver = /** @type {any} */ (
  class {
    constructor(/** @type {Function} */ measure) {
      this.measure = measure;
    }
    observe() {
      this.measure();
    }
    disconnect() {}
  }
);
const LINE = 5; // tokens in a line
// Where a token is; the source is above the text.
const placeOf = (/** @type {string} */ stack, /** @type {number} */ index) => ({
  x: 60 * (index % LINE) + 7 * index,
  y: (stack === "encoder" ? 0 : 300) + 40 * Math.floor(index / LINE),
  width: 30 + index,
  height: 20,
});
proto.getBoundingClientRect = function box() {
  const index = this.getAttribute("data-index");
  if (index === null) return new globalThis.DOMRect(0, 0, 800, 10_000);
  const { x, y, width, height } = placeOf(
    this.closest("[data-stack]").getAttribute("data-stack"),
    Number(index),
  );
  return new globalThis.DOMRect(x, y, width, height);
};
const KINDS = [
  { stack: "encoder", kind: "self", n_layers: 1 },
  { stack: "decoder", kind: "self", n_layers: 1 },
  { stack: "decoder", kind: "cross", n_layers: 1 },
];
const drawnText = async (/** @type {boolean} */ isStory = false) => {
  const element = await drawn(
    () =>
      page.run && html`<${Text} facts=${page.writing ?? page.run} Arcs=${isStory ? Arcs : null} />`,
  );
  return { element, tokens: () => element.querySelectorAll(".text-tokens .token") };
};
const hears = (/** @type {any} */ element, /** @type {string} */ type, more = {}) =>
  fire(element, type, { detail: 1, ...more });
const isPressed = (/** @type {any[]} */ tokens) =>
  tokens.map((each) => each.getAttribute("aria-pressed") === "true");
/** @type {(weights: number[], more?: any) => void} a token reads with these weights, whichever it is */
const reads = (weights, { keys = "decoder", stack = "decoder" } = {}) => {
  const rows = 10;
  const { answer } = vectors.head;
  prepare({
    heatmap: () => ({
      ...{
        figure: {
          ...answer.figure,
          layout: {
            ...answer.figure.layout,
            meta: {
              ...answer.figure.layout.meta,
              query_labels: Array(rows).fill("q"),
              key_labels: weights.map(() => "k"),
            },
          },
        },
      },
      ...{
        shape: [rows, weights.length],
        allowed: new Uint8Array(Math.ceil((rows * weights.length) / 8)).fill(255),
      },
      weights: Float32Array.from(Array(rows).fill(weights).flat()),
    }),
  });
  readFrom((token) =>
    token.stack === stack
      ? { name: "heatmap", data: { run: page.run.run }, whose: "The head", stacks: { keys } }
      : null,
  );
};
const nothing = () => {
  readFrom(() => null);
  if (page.run) setQuery(null); // which would stay chosen in the same text
};

test("tokens are grouped into words, each told with its place and how it came about", async () => {
  const draw = chance(41);
  nothing();
  const { element, tokens } = await drawnText();
  for (let round = 0; round < 25; round += 1) {
    const count = draw.whole(2, 9);
    const labels = Array.from({ length: count }, () =>
      draw.one(["␣fox", "es", ".", "␣the", "⏎", "<s>"]),
    );
    const special = [...labels.keys()].filter((at) => labels[at] === "<s>");
    const start = draw.whole(0, count);
    const probabilities = labels.slice(start).map(() => draw.whole(0, 8) / 8);
    show({ labels, special, n_prompt: start, probabilities, last_read: count - 1 });
    await settled(element);
    assert.equal(tokens().length, count);
    const groups = element
      .querySelectorAll(".text-tokens .word")
      .map((/** @type {any} */ word) => valuesOf(word, ".token", "data-index").map(Number));
    assert.deepEqual(groups.flat(), [...labels.keys()], "each once, in order");
    for (const [first, ...more] of groups) {
      const begins = (/** @type {number} */ at) =>
        at === 0 ||
        labels[at].startsWith("␣") ||
        labels[at] === "⏎" ||
        special.includes(at) ||
        special.includes(at - 1);
      if (labels[first] !== "⏎") assert.ok(begins(first), `${labels} begins a word at ${first}`);
      for (const at of more)
        assert.ok(
          !labels[at].startsWith("␣") && !special.includes(at) && !special.includes(at - 1),
          `${labels} goes on at ${at}`,
        );
    }
    for (const [at, token] of tokens().entries()) {
      const isWritten = at >= start;
      const how = isWritten
        ? `generated, probability ${probabilities[at - start].toFixed(3)}`
        : "given";
      assert.equal(token.getAttribute("aria-label"), `Token ${at}: ${labels[at]}, ${how}`);
      const has = (/** @type {string} */ look) => token.classList.contains(look);
      assert.deepEqual(
        [has("generated"), has("special"), has("last-read"), has("many")],
        [isWritten, special.includes(at), at === count - 1, false],
      );
      assert.equal(token.style["--p"], isWritten ? probabilities[at - start].toFixed(3) : "0");
      assert.equal(token.getAttribute("title"), special.includes(at) ? "<s>" : null);
    }
    assert.deepEqual(valuesOf(element, ".text-tokens [tabindex=0]", "data-index"), ["0"]);
    const breaks = labels.filter((label, at) => label === "⏎" && labels[at + 1] !== "⏎").length;
    assert.equal(element.querySelectorAll(".break").length, breaks);
  }
});

test("a press chooses a token, a second one lets it go; keys walk through the text", async () => {
  nothing();
  const draw = chance(42);
  show({ kinds: KINDS, source_labels: ["␣un", "␣deux"] });
  setHead({ stack: "decoder", kind: "self", layer: 0, head: 0 });
  const { element, tokens } = await drawnText();
  let at = -1;
  for (let round = 0; round < 40; round += 1) {
    const here = draw.whole(0, 5);
    const says = JSON.stringify([round, at, here]);
    if (draw.is()) {
      const detail = draw.one([0, 1, 2]);
      hears(tokens()[here], "click", { detail });
      at = here === at && detail === 1 ? -1 : here;
    } else {
      const key = draw.one(["ArrowRight", "ArrowLeft", "Home", "End", "a"]);
      const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: 5, a: -1 }[key] ?? -1;
      const { defaultPrevented } = hears(tokens()[here], "keydown", { key });
      const isMove = to >= 0 && to <= 5;
      assert.equal(defaultPrevented, isMove, says);
      if (isMove) at = to;
      if (isMove) assert.equal(globalThis.document.activeElement, tokens()[to]);
    }
    await settled(element);
    assert.deepEqual(page.query, at < 0 ? null : { stack: "decoder", index: at }, says);
    assert.deepEqual(
      isPressed(tokens()),
      [0, 1, 2, 3, 4, 5].map((index) => index === at),
      says,
    );
    assert.deepEqual(valuesOf(element, ".text-tokens [tabindex=0]", "data-index"), [
      String(Math.max(0, at)),
    ]);
  }
  // A token of the source is read by the encoder's heads.
  hears(element.querySelectorAll(".source-tokens .token")[1], "click");
  await settled(element);
  assert.deepEqual([page.query, page.head.stack], [{ stack: "encoder", index: 1 }, "encoder"]);
  assert.equal(
    valuesOf(element, ".source-tokens .token", "aria-label")[1],
    "Source token 1: ␣deux, given",
  );
  // Of a text that is being written nothing can be chosen.
  page.writing = /** @type {any} */ ({ ...page.run, run: null, state: "running" });
  setQuery(null);
  await settled(element);
  hears(tokens()[2], "click");
  assert.equal(page.query, null);
  page.writing = null;
  await settled(element);
});

test("a text is played from the last token that was given to the one before its end", async () => {
  nothing();
  const draw = chance(45);
  /** @type {(() => void)[]} */
  const clocks = [];
  const { setInterval: every, clearInterval: clear } = globalThis;
  globalThis.setInterval = /** @type {any} */ (
    (/** @type {() => void} */ step) => clocks.push(step) - 1
  );
  globalThis.clearInterval = /** @type {any} */ (
    (/** @type {number} */ at) => void (clocks[at] = () => {})
  );
  const tick = async () => {
    clocks.at(-1)?.();
    await settled(element);
  };
  show(); // of six tokens, of which three were given
  const { element, tokens } = await drawnText();
  const [back, play, on] = ["play-back", "play", "play-on"].map((name) =>
    element.querySelector(`.${name}`),
  );
  const unwritten = () =>
    tokens().filter((/** @type {any} */ each) => each.classList.contains("unwritten")).length;
  let at = -1;
  for (let round = 0; round < 20; round += 1) {
    if (draw.is(0.2)) {
      at = draw.whole(0, 5);
      setQuery({ stack: "decoder", index: at });
    } else {
      const by = draw.one([-1, 1]);
      hears(by < 0 ? back : on, "click");
      at = at >= 2 && at <= 4 ? Math.min(4, Math.max(2, at + by)) : 2;
      await settled(element);
      assert.equal(unwritten(), 5 - at);
    }
    assert.equal(page.query.index, at, `${round}`);
  }
  for (const [from, begins] of [
    [1, 2],
    [3, 3],
    [4, 2],
    [5, 2],
  ]) {
    setQuery({ stack: "decoder", index: from });
    await settled(element);
    hears(play, "click");
    await settled(element);
    assert.deepEqual(
      [page.query.index, play.textContent, unwritten()],
      [begins, "Pause", 5 - begins],
    );
    for (let next = begins + 1; next <= 4; next += 1) {
      await tick();
      assert.deepEqual([page.query.index, unwritten(), page.playing], [next, 5 - next, true]);
    }
    await tick();
    assert.deepEqual(
      [page.query.index, unwritten(), page.playing, play.textContent],
      [4, 0, false, "Play"],
    );
  }
  hears(play, "click");
  await settled(element);
  setQuery({ stack: "decoder", index: 0 }); // the visitor chooses: it ends
  await settled(element);
  assert.deepEqual([page.playing, unwritten()], [false, 0]);
  hears(play, "click");
  await settled(element);
  hears(play, "click");
  await settled(element);
  assert.equal(page.playing, false);
  Object.assign(globalThis, { setInterval: every, clearInterval: clear });
});

test("two tokens are asked about one after the other, until something else is shown", async () => {
  nothing();
  show();
  const { element, tokens } = await drawnText();
  assert.equal(element.querySelector(".who-reads"), null);
  hears(tokens()[4], "click");
  await settled(element);
  const button = () => element.querySelector(".who-reads");
  const says = () => [button().textContent, button().getAttribute("aria-pressed")];
  assert.deepEqual(says(), ["Who reads what?", "false"]);
  hears(button(), "click");
  await settled(element);
  assert.deepEqual(says(), ["Now choose a second token", "true"]);
  hears(tokens()[4], "keydown", { key: "ArrowLeft" }); // walks, and chooses nothing yet
  assert.equal(page.query.index, 4);
  hears(tokens()[1], "click");
  await settled(element);
  assert.deepEqual(
    [page.query.index, page.key, page.asksKey],
    [4, { stack: "decoder", index: 1 }, false],
  );
  assert.deepEqual(valuesOf(element, ".is-key", "data-index"), ["1"]);
  hears(button(), "click"); // another second one
  await settled(element);
  assert.deepEqual([page.key, page.asksKey], [null, true]);
  emit("escape");
  assert.equal(page.asksKey, false);
  for (const end of [() => setQuery({ stack: "decoder", index: 2 }), () => show()]) {
    page.asksKey = true;
    end();
    assert.equal(page.asksKey, false);
  }
});

test("a token's weights shade the text, its own, the pointed one's or the chosen one's", async () => {
  const draw = chance(43);
  const weights = [0.5, 0.0625, 0, 0.25, 0.125, 0.0625];
  nothing();
  reads(weights);
  show();
  const { element, tokens } = await drawnText();
  assert.ok(!tokens()[0].style["--read"]); // none is chosen
  for (let round = 0; round < 8; round += 1) {
    const index = draw.whole(0, 5);
    setQuery({ stack: "decoder", index });
    await settled(element);
    assert.deepEqual(
      tokens().map((/** @type {any} */ each) => each.style["--read"]),
      weights.map((weight) => (weight ** (2 / 3)).toFixed(3)),
    );
    assert.deepEqual(valuesOf(element, ".asks", "data-index"), [String(index)]);
    assert.match(
      texts(element, ".token-says")[0],
      index === 0
        ? /The head reads ␣the itself most \(0\.50\)/
        : index === 4
          ? /The head reads ␣the most \(0\.50\)/
          : /The head reads ␣the/,
    );
    assert.equal(
      element.querySelector(".whole-text").getAttribute("data-reads"),
      `decoder.${index}`,
    );
  }
  setQuery({ stack: "decoder", index: 3 });
  hears(tokens()[1], "pointerover", { clientX: 3, clientY: 4 });
  await settled(element);
  assert.deepEqual(
    [page.pointed, valuesOf(element, ".asks", "data-index")],
    [{ stack: "decoder", index: 1 }, ["1"]],
  );
  fire(element.querySelector(".text-tokens"), "pointerleave");
  await settled(element);
  assert.deepEqual([page.pointed, valuesOf(element, ".asks", "data-index")], [null, ["3"]]);
  page.lit = { query: { stack: "decoder", index: 5 }, key: { stack: "decoder", index: 0 } };
  page.votes = { stack: "decoder", tokens: { 2: "3 ✓" }, heads: [] };
  await settled(element);
  assert.deepEqual(
    [valuesOf(element, ".is-query", "data-index"), valuesOf(element, ".is-key", "data-index")],
    [["5"], ["0"]],
  );
  assert.deepEqual(valuesOf(element, ".text-tokens .token", "data-votes"), [
    null,
    null,
    "3 ✓",
    null,
    null,
    null,
  ]);
  page.lit = null;
  show({ trace_start: 2, labels: [..."abcdef"].map((label) => `␣${label}`) });
  setQuery({ stack: "decoder", index: 1 });
  await settled(element);
  assert.match(
    texts(element, ".token-says")[0],
    /^It read tokens 1 to 4; earlier ones no longer fit/,
  );
});

test("of a story, what would follow its end is seen behind it, and what fills its gaps in them", async () => {
  nothing();
  for (const [labels, short] of /** @type {[string[], boolean][]} */ ([
    [["␣sat", "␣on"], true],
    [["es", "␣and"], true],
    [["thirteensigns", "␣x"], false],
  ])) {
    prepare({ continuation: { labels } });
    show({ last_read: 5 });
    const { element } = await drawnText(true);
    await settled(element, () => element.querySelector(".ghost") !== null);
    assert.equal(texts(element, ".ghost").length, 2);
    assert.equal(
      element
        .querySelectorAll(".ghost")
        .map((/** @type {any} */ each) => each.textContent)
        .join(""),
      labels.join("").replaceAll("␣", " "),
    );
    assert.equal(element.querySelectorAll(".goes-on .ghost").length, Number(short), labels.join());
  }
  let release = () => {};
  const held = new Promise((done) => (release = /** @type {any} */ (done)));
  prepare({ continuation: async () => (await held, { labels: ["␣mat"] }) });
  show({ last_read: 5, example: true });
  const awaited = drawnText(true);
  await settled(
    globalThis.document.head,
    () => globalThis.document.querySelectorAll(".ghost.awaited").length > 0,
  );
  release();
  const { element } = await awaited;
  assert.equal(element.querySelectorAll(".awaited").length, 0);
  assert.equal(texts(element, ".ghost").join(""), "mat");

  /** @type {any[]} */
  const asked = [];
  prepare({
    masked: (/** @type {any} */ data) => (
      asked.push(data.position),
      { position: data.position, labels: [`␣w${data.position}`] }
    ),
  });
  show({
    stack: "encoder",
    hidden: [1, 3],
    kinds: [{ stack: "encoder", kind: "self", n_layers: 1 }],
  });
  const gaps = await drawnText(true);
  await settled(gaps.element, () => gaps.element.querySelectorAll(".guessed").length === 2);
  assert.deepEqual(
    [asked, texts(gaps.element, ".guessed"), valuesOf(gaps.element, ".gap", "data-index")],
    [
      [1, 3],
      ["␣w1", "␣w3"],
      ["1", "3"],
    ],
  );
});

test("words that matter are marked by their effect, and a press leaves one out", async () => {
  nothing();
  prepare({ continuation: { labels: [] } });
  const run = show();
  const { element, tokens } = await drawnText(true);
  /** @type {number[]} */
  const chosen = [];
  effects.value = {
    run,
    stack: "decoder",
    shares: [0.5, -0.25, 0],
    left: [1],
    choose: (at) => void chosen.push(at),
  };
  await settled(element);
  assert.deepEqual(
    [
      valuesOf(element, ".helps", "data-index"),
      valuesOf(element, ".hinders", "data-index"),
      valuesOf(element, ".left", "data-index"),
    ],
    [["0"], ["1"], ["1"]],
  );
  assert.deepEqual(
    tokens().map((/** @type {any} */ each) => each.style["--effect"] || null),
    ["0.500", "0.250", null, null, null, null],
  );
  for (const at of [1, 2, 4]) hears(tokens()[at], "click");
  assert.deepEqual([chosen, page.query], [[1, 2], { stack: "decoder", index: 4 }]); // what has no effect is chosen
  effects.value = null;
});

test("arcs lead from a token to the most that it reads, none across another of a source", async () => {
  const draw = chance(44);
  prepare({ continuation: { labels: [] } });
  const numbersIn = (/** @type {string} */ path) => (path.match(/-?[\d.]+/g) ?? []).map(Number);
  for (let round = 0; round < 12; round += 1) {
    const isCross = draw.is();
    const weights = Array.from({ length: isCross ? 5 : 6 }, () => draw.whole(0, 16) / 64);
    const index = draw.whole(0, 4);
    show({ kinds: KINDS, source_labels: ["␣a", "␣b", "␣c", "␣d", "␣e"], last_read: 5 });
    setHead({ stack: "decoder", kind: isCross ? "cross" : "self", layer: 0, head: 0 });
    reads(weights, { keys: isCross ? "encoder" : "decoder" });
    setQuery({ stack: "decoder", index });
    const { element } = await drawnText(true);
    await settled(element, () => element.querySelector(".arcs") !== null);
    const paths = valuesOf(element, ".arcs path", "d").map((path) => numbersIn(path ?? ""));
    const stack = isCross ? "encoder" : "decoder";
    const wanted = weights
      .map((weight, place) => ({ weight, place, ...placeOf(stack, place) }))
      .filter(({ weight, place }) => weight >= 0.08 && (isCross || place !== index))
      .sort((a, b) => b.weight - a.weight)
      .slice(0, 4);
    const says = JSON.stringify([isCross, weights, index]);
    assert.equal(paths.length, wanted.length, says);
    // It begins at the token, or where the next one is written.
    const from = placeOf("decoder", isCross ? index + 1 : index);
    const starts = paths.map(([x, y]) => [x, y]);
    for (const [at, { x, width, y, height, weight }] of wanted.entries()) {
      assert.deepEqual(paths[at].slice(-2), [x + width / 2, isCross ? y + height : y], says);
      const [startX, startY] = starts[at];
      assert.equal(startY, from.y);
      if (isCross) assert.ok(startX > from.x && startX < from.x + from.width);
      else assert.equal(startX, from.x + from.width / 2);
      const [, , , bend] = paths[at];
      if (isCross) assert.ok(bend > y + height && bend < from.y, says);
      else assert.equal(bend, Math.min(from.y, y) - 30);
      assert.equal(valuesOf(element, ".arcs path", "stroke-width")[at], String(2 + 8 * weight));
    }
    if (isCross) {
      // Side by side in the order of their ends; of two on one side the farther bends lower.
      const order = [...paths.keys()].sort(
        (a, b) => (paths[a].at(-2) ?? 0) - (paths[b].at(-2) ?? 0),
      );
      assert.deepEqual(
        [...order].sort((a, b) => starts[a][0] - starts[b][0]),
        order,
        says,
      );
      const center = from.x + from.width / 2;
      const far = (/** @type {number} */ at) => Math.abs((paths[at].at(-2) ?? 0) - center);
      for (const a of paths.keys())
        for (const b of paths.keys())
          if (far(a) < far(b)) assert.ok(paths[a][3] < paths[b][3], says);
    }
    const shares = element.querySelectorAll(".arcs text");
    const told = shares.map((/** @type {any} */ each) => ({
      text: each.textContent,
      x: Number(each.getAttribute("x")),
      y: Number(each.getAttribute("y")),
    }));
    for (const [at, { text, x, y }] of told.entries()) {
      const near = told
        .slice(0, at)
        .some(
          (/** @type {any} */ other) => Math.abs(other.y - y) <= 8 && Math.abs(other.x - x) <= 40,
        );
      assert.equal(text === "", near, says);
      if (text)
        assert.ok(Math.abs(parseFloat(text) - 100 * wanted[at].weight) < 1, `${text} of ${says}`);
      assert.ok(x >= 0 && x <= 800);
    }
  }
});
