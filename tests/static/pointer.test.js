// A pressed control stays under the pointer while the page around it changes, until the visitor goes on.
import assert from "node:assert/strict";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { place } from "../kit/dom.js";

// A page of which a control is so far from the top, in a window that is scrolled.
const at = { control: 0, scroll: 0, height: 0 };
const WINDOW = 800;
const frames = /** @type {Function[]} */ ([]);
/** @type {Record<string, { hear: Function, signal?: AbortSignal }[]>} */
const listeners = {};
/** @type {Function[]} */
let watchers = [];
const most = () => Math.max(0, root.scrollHeight - WINDOW);
const { document } = globalThis;
const { body, documentElement: root } = document;
class Watcher {
  constructor(/** @type {Function} */ hear) {
    this.hear = hear;
  }
  observe() {
    watchers.push(this.hear);
  }
  disconnect() {
    watchers = watchers.filter((each) => each !== this.hear);
  }
}
Object.assign(globalThis, {
  requestAnimationFrame: (/** @type {Function} */ draw) => frames.push(draw),
  addEventListener: (
    /** @type {string} */ type,
    /** @type {Function} */ hear,
    { signal } = /** @type {any} */ ({}),
  ) => void (listeners[type] ??= []).push({ hear, signal }),
  scrollBy: (/** @type {any} */ { top }) =>
    void (at.scroll = Math.min(most(), Math.max(0, at.scroll + top))),
  ...{ MutationObserver: Watcher, ResizeObserver: Watcher },
  getComputedStyle: (/** @type {any} */ element) => ({
    position: element.style.position ?? "static",
  }),
});
Object.defineProperty(globalThis, "scrollY", { configurable: true, get: () => at.scroll });
Object.defineProperty(root, "scrollHeight", {
  configurable: true,
  get: () => Math.max(at.height, parseFloat(body.style.minHeight) || 0),
});
const { setTimeout: later } = globalThis;
globalThis.setTimeout = /** @type {any} */ (
  (/** @type {any} */ work, /** @type {number} */ ms) => (ms > 1000 ? 0 : later(work, ms))
);
const { followPointer, forgetPressed, hasMoved, letPressedGo } =
  await import("../../transformer/web/pointer.js");
followPointer();
/** @type {(type: string, event?: any) => void} */
const happens = (type, event = {}) => {
  for (const { hear, signal } of listeners[type] ?? []) if (!signal?.aborted) hear(event);
};
const control = place().appendChild(document.createElement("button"));
const inner = control.appendChild(document.createElement("b"));
Object.assign(control, { getBoundingClientRect: () => ({ top: at.control - at.scroll }) });
/** @type {(target?: any, detail?: number) => void} */
const click = (target = inner, detail = 1) => happens("click", { target, detail });
const draw = () => {
  for (let round = 0; frames.length && round < 200; round += 1)
    for (const frame of frames.splice(0)) frame();
};
// Something changes, and is drawn.
const change = (/** @type {Partial<typeof at>} */ now = {}) => {
  Object.assign(at, now);
  for (const watch of watchers) watch();
  draw();
};
const top = () => at.control - at.scroll;
const begin = (/** @type {Partial<typeof at>} */ now) => {
  forgetPressed();
  Object.assign(at, { control: 1000, scroll: 600, height: 3000, ...now });
  click();
  draw();
};

test("whatever grows or shrinks above it, a pressed control stays where it is", () => {
  const chances = chance(51);
  for (let round = 0; round < 30; round += 1) {
    begin({});
    assert.equal(/** @type {any} */ (root.style).overflowAnchor, "none");
    for (let times = 0; times < 4; times += 1) {
      const by = chances.whole(-300, 500);
      change({ control: Math.max(500, at.control + by), height: Math.max(1900, at.height + by) });
      assert.equal(top(), 400);
    }
    letPressedGo();
    assert.equal(/** @type {any} */ (root.style).overflowAnchor, "");
    assert.deepEqual(watchers, []);
    change({ control: at.control + 50 });
    assert.equal(top(), 450);
  }
});

test("a page that is too short is given the room, until what was pressed is forgotten", () => {
  begin({ height: 1450 }); // scrolled by 600 of 650
  change({ control: 1200 });
  assert.equal(body.style.minHeight, `${600 + WINDOW + 200}px`);
  assert.equal(root.scrollHeight, 1600);
  assert.equal(top(), 400);
  forgetPressed();
  assert.equal(body.style.minHeight, "");
  body.style.minHeight = "2000px";
  at.scroll = 0;
  click(); // at the top the room is not needed any more
  assert.equal(body.style.minHeight, "");
});

test("where the visitor scrolls, or does anything else, it is let go", () => {
  begin({});
  change({ scroll: 500 }); // by the visitor: the control is where it was in the document
  change({ control: 1100 });
  assert.equal(top(), 600);
  for (const leaves of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    begin({});
    happens(leaves, { clientX: 0, clientY: 0 });
    change({ control: 1100 });
    assert.equal(top(), 500, leaves);
  }
  for (const [event, isLeft] of /** @type {[any, boolean][]} */ ([
    [{ pointerType: "mouse", target: body }, true],
    [{ pointerType: "mouse", target: inner }, false],
    [{ pointerType: "touch", target: body }, false],
  ])) {
    begin({});
    happens("pointermove", { clientX: 1, clientY: 1, ...event });
    change({ control: 1100 });
    assert.equal(top(), isLeft ? 500 : 400);
  }
  // A document that has become shorter has scrolled it itself: that is no visitor.
  begin({ height: 1420 }); // scrolled by 600 of 620
  change({ height: 1390, scroll: 590 });
  assert.equal(top(), 400);
  begin({});
  control.remove();
  change({ control: 1100 });
  assert.deepEqual(watchers, []);
  body.appendChild(control);
});

test("a key's press, what is no control and what is fixed hold nothing", () => {
  for (const begins of [() => click(inner, 0), () => click(body), () => click(null)]) {
    letPressedGo();
    begins();
    assert.deepEqual(watchers, []);
  }
  control.style.position = "fixed";
  click();
  assert.deepEqual(watchers, []);
  control.style.position = "static";
  click();
  assert.equal(watchers.length, 2);
});

test("the pointer points at what it has moved onto, not at what comes under it", () => {
  for (const type of ["pointermove", "pointerdown"]) {
    happens(type, { clientX: 7, clientY: 8 });
    const moved = [
      [7, 8],
      [6, 8],
      [7, 9],
    ].map(([clientX, clientY]) => hasMoved(/** @type {any} */ ({ clientX, clientY })));
    assert.deepEqual(moved, [false, true, true]);
    happens(type, { clientX: 0, clientY: 0 });
  }
});
