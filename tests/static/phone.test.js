// A class's phone: what it shows of what is asked, what it sends, and how it goes on after what fails.
import assert from "node:assert/strict";
import test from "node:test";

import { fire, settled } from "../kit/dom.js";
import * as site from "./server.js";

const box = site.element("phone");
box.setAttribute("data-code", "ABC");
/** @type {Map<string, string>} */
const store = new Map([["viz-phone", "OLD.before"]]);
Object.assign(globalThis, {
  localStorage: {
    getItem: (/** @type {string} */ name) => store.get(name) ?? null,
    setItem: (/** @type {string} */ name, /** @type {string} */ text) => void store.set(name, text),
    removeItem: (/** @type {string} */ name) => void store.delete(name),
  },
});
const { document } = globalThis;
const { body } = document;
const { answerFrom } = await import("../../transformer/web/ask.js");

/** @typedef {{ name: string, data: any, done: (answer: any) => void, fail: (message: string, status?: number) => void }} Question */
/** @type {Question[]} */
const questions = [];
answerFrom(
  new Proxy(/** @type {any} */ ({}), {
    get: (_, /** @type {string} */ name) => (/** @type {any} */ data) =>
      new Promise((done, reject) => {
        const fail = (/** @type {string} */ message, status = 503) =>
          reject(Object.assign(new Error(message), { status }));
        questions.push({ name, data, done, fail });
      }),
  }),
);
/** @type {(name: string) => Promise<Question>} the next question of this name */
const asked = async (name) => {
  const at = () => questions.findIndex((each) => each.name === name);
  await settled(body, () => at() >= 0);
  return questions.splice(at(), 1)[0];
};
const poll = (/** @type {number} */ rev, more = {}) => ({
  ...{
    rev,
    name: "first.1.task",
    title: "First",
    question: "Which *one*?",
    kind: "options",
    look: "list",
    stack: "own",
  },
  ...{
    over: false,
    best: null,
    options: [
      { at: 0, text: "a" },
      { at: 4, text: "b" },
    ],
    answer: null,
    right: null,
    explains: [],
    text: "",
  },
  ...more,
});
/** @type {(selector: string) => string[]} */
const texts = (selector) =>
  box
    .querySelectorAll(selector)
    .map((/** @type {any} */ each) => each.textContent.replace(/\s+/g, " ").trim());
const problem = () =>
  box.querySelector(".problem").hasAttribute("hidden") ? "" : texts(".problem")[0];
const marked = () =>
  box
    .querySelectorAll(".option")
    .map(
      (/** @type {any} */ each) => each.querySelector("input").getAttribute("checked") === "true",
    );
await import("../../transformer/server/static/phone.js");
/** @type {(next: any) => Promise<any>} the next poll, once this one is shown */
const show = async (next) => {
  waiting.done(next);
  await settled(body, () => questions.some(({ name }) => name === "class/asked"));
  waiting = await asked("class/asked");
  return waiting;
};
let waiting = await asked("class/asked");

test("a phone is the same one as long as its class lasts, and another in another", async () => {
  const { code, phone, seen } = waiting.data;
  assert.deepEqual([code, seen, texts(".code")], ["ABC", 0, ["Class ABC"]]);
  assert.match(phone, /^[0-9a-f]{32}$/);
  assert.equal(store.get("viz-phone"), `ABC.${phone}`);
  assert.match(texts("p[role=status]")[0], /^Look at the screen/);
});

test("an option that is tapped is sent, can be changed, and is judged once it is over", async () => {
  await show(poll(1));
  assert.deepEqual(
    [texts("h1"), texts("legend"), texts(".option")],
    [["First"], ["Which one?"], ["a", "b"]],
  );
  assert.deepEqual([marked(), texts(".says")], [[false, false], [""]]);
  assert.equal(waiting.data.seen, 1);
  fire(box.querySelectorAll(".option input")[1], "change");
  await settled(body);
  assert.deepEqual(marked(), [false, true]); // before the server has answered
  const sent = await asked("class/answer");
  assert.deepEqual(sent.data, {
    code: "ABC",
    phone: waiting.data.phone,
    name: "first.1.task",
    answer: 4,
  });
  sent.done(poll(2, { answer: 4 }));
  await settled(body);
  assert.deepEqual(texts(".says"), ["Sent. You can still change it."]);
  fire(box.querySelectorAll(".option input")[0], "change");
  (await asked("class/answer")).fail("Too late.");
  await settled(body);
  assert.equal(problem(), "Too late.");
  for (const [right, says] of /** @type {[boolean, string][]} */ ([
    [true, "Right."],
    [false, "Not yet."],
  ])) {
    await show(
      poll(right ? 3 : 4, { over: true, best: 0, answer: 4, right, explains: ["Since *so*."] }),
    );
    assert.deepEqual(
      [texts(".says"), texts("p:not(.says):not(.code):not(.privacy):not(.problem)")],
      [[says], ["Since so."]],
    );
    // The best one is marked, and the own one where it is right, too.
    assert.deepEqual(texts(".option.right"), right ? ["a ✓", "b ✓"] : ["a ✓"]);
    assert.equal(box.querySelector("fieldset").getAttribute("disabled"), "true");
    assert.equal(problem(), "");
  }
});

test("an answer to an older question does not take the place of a newer one", async () => {
  await show(poll(10));
  fire(box.querySelectorAll(".option input")[0], "change");
  const sent = await asked("class/answer");
  await show(poll(12, { name: "first.2.task", title: "Second" }));
  sent.done(poll(11, { answer: 0 }));
  await settled(body);
  assert.deepEqual([texts("h1"), marked()], [["Second"], [false, false]]);
});

test("a number is read as it is written, and told when it is over", async () => {
  await show(poll(20, { name: "first.3.task", kind: "number", options: [] }));
  const form = box.querySelector("form.number");
  const type = async (/** @type {string} */ text) => {
    fire(form.querySelector("input"), "input", { target: { value: text } });
    await settled(body);
    fire(form, "submit");
    await settled(body);
  };
  await type("a lot");
  assert.deepEqual([problem(), questions.length], ["Give a number, such as 0.25.", 0]);
  await type("12,5 %");
  const sent = await asked("class/answer");
  assert.equal(sent.data.answer, 0.125);
  sent.done(poll(21, { name: "first.3.task", kind: "number", options: [], answer: 0.125 }));
  await settled(body);
  assert.equal(problem(), "");
  await show(
    poll(22, {
      name: "first.3.task",
      kind: "number",
      options: [],
      over: true,
      answer: 0.125,
      right: false,
      best: 0.25,
    }),
  );
  assert.deepEqual(texts(".says"), ["Not yet. The answer is 0.25."]);
  await show(
    poll(23, { name: "first.3.task", kind: "number", options: [], over: true, best: 0.25 }),
  );
  assert.deepEqual(texts(".says"), ["The answer is 0.25."]); // this phone gave none
});

test("a text is tried once at a time, and judged at once", async () => {
  const of = (/** @type {number} */ rev, more = {}) =>
    poll(rev, { name: "first.4.task", kind: "text", options: [], text: "Once", ...more });
  await show(of(30));
  const form = box.querySelector("form.text");
  fire(form.querySelector("textarea"), "input", { target: { value: "Once more" } });
  await settled(body);
  fire(form, "submit");
  const sent = await asked("class_text");
  assert.deepEqual([sent.data.text, sent.data.name], ["Once more", "first.4.task"]);
  const isBusy = () => form.querySelector("button").getAttribute("aria-disabled");
  await settled(body);
  assert.equal(isBusy(), "true");
  sent.done(of(31, { text: "Once more", right: true, says: "It wrote on." }));
  await settled(body);
  assert.deepEqual([isBusy(), texts(".says")], ["false", ["Right. It wrote on."]]);
  fire(form, "submit");
  (await asked("class_text")).fail("Too long.");
  await settled(body);
  assert.equal(problem(), "Too long.");
  await show(of(32, { right: false, says: "No." }));
  assert.deepEqual([texts(".says"), problem()], [["Not yet. No."], ""]);
});

test("a guess is judged after the answer; what asks nothing says to look up", async () => {
  for (const [guessed, says] of /** @type {[any, string[]][]} */ ([
    [{ right: true, text: "x" }, ["Your guess was right."]],
    [{ right: false, text: "the *fox*" }, ["The right guess was: the fox"]],
    [{ right: null, text: "x" }, []],
  ])) {
    await show(poll(40, { over: true, best: 0, guessed }));
    assert.deepEqual(texts(".guessed"), says);
  }
  await show(poll(41, { kind: "", options: [] }));
  assert.match(texts(".says")[0], /^Look at the screen/);
  await show({ rev: 42, name: "", says: "A moment." });
  assert.deepEqual([texts("h1"), texts("p[role=status]")], [[], ["A moment."]]);
});

test("a phone asks again after a failure or a sleep, until the class is over", async () => {
  const before = waiting.data.seen;
  waiting.fail("The server is busy.");
  await settled(body, () => problem() !== "");
  assert.equal(problem(), "The server is busy.");
  waiting = await asked("class/asked");
  assert.equal(waiting.data.seen, before);
  // It slept: the connection is lost, and it asks from the beginning.
  Object.assign(document, { visibilityState: "visible" });
  fire(body, "visibilitychange");
  waiting.fail("aborted");
  waiting = await asked("class/asked");
  assert.deepEqual([waiting.data.seen, problem()], [0, "The server is busy."]);
  await show(poll(50));
  assert.equal(problem(), "");
  waiting.fail("This class is over.", 404);
  await settled(body, () => texts("h1").length === 0);
  assert.deepEqual(
    [texts("p[role=status]"), problem(), store.has("viz-phone")],
    [["This class is over."], "", false],
  );
  await settled(body);
  assert.equal(questions.length, 0);
});
