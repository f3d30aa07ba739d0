// The tour, the lessons and a class: which card is shown, what it asks and grades, and what the class has said.
import assert from "node:assert/strict";
import test, { afterEach } from "node:test";

import { chance } from "../kit/chance.js";
import { fire, place, press, settled } from "../kit/dom.js";
import * as site from "./server.js";

const CARDS = [
  { title: "One", says: "First.", state: { tab: "attention", head: 1 } },
  { title: "Two", says: "Write.", types: true, state: {} },
  { title: "Three", says: "Last.", presses: true, state: { tab: "masks", scale: "log" } },
];
const step = (/** @type {string} */ title, more = {}) => ({
  title,
  says: [title],
  state: { text: "a text" },
  ...more,
});
/** @type {Record<string, any>} */
const LESSONS = {
  first: {
    title: "First lesson",
    steps: [
      step("Guess", {
        guess: "Which?",
        guesses: ["a", "b", "c"],
        guessed: 1,
        ordered: { guesses: true, options: true },
      }),
      step("Choose", {
        ...{
          task: "Choose it.",
          check: "choose",
          options: ["x", "y", "z"],
          ordered: { guesses: true, options: false },
        },
        ...{
          hints: ["hint one", "hint two"],
          explains: ["Because."],
          state: { text: "a text", tab: "masks" },
        },
      }),
      step("Number", { task: "How much?", check: "number", state: {} }),
      step("Token", { task: "Click it.", check: "token", types: true, state: { more: "curves" } }),
    ],
  },
  second: { title: "Second lesson", steps: [step("Only", { task: "Do it.", check: "run" })] },
};
/** @type {Map<string, string>} */
const store = new Map([["solved-lessons", '["first.3", 7, "other.2"]']]);
Object.assign(globalThis, {
  localStorage: {
    getItem: (/** @type {string} */ name) => store.get(name) ?? null,
    setItem: (/** @type {string} */ name, /** @type {string} */ text) => void store.set(name, text),
    removeItem: (/** @type {string} */ name) => void store.delete(name),
  },
});
site.write({ cards: CARDS, lessons: Object.keys(LESSONS) });

const { answerFrom } = await import("../../transformer/web/ask.js");
/** @type {{ name: string, data: any }[]} */
const questions = [];
/** @type {Record<string, (data: any) => any>} */
const replies = {
  lesson: ({ name }) => LESSONS[name],
  lessons: () => ({
    lessons: Object.keys(LESSONS).map((name) => ({
      name,
      title: name,
      about: "",
      minutes: 5,
      checks: name === "first" ? 3 : 1,
    })),
  }),
};
const { html, render } = await import("../../transformer/web/preact.js");
const { cardState, inOrder, OF_CLASS } = await import("../../transformer/web/card.js");
const { page, setQuery } = await import("../../transformer/web/store.js");
const { fields } = await import("../../transformer/web/fields.js");
await import("../../transformer/web/selection.js");
const { apply, isOpening } = await import("../../transformer/server/static/link.js");
const tour = await import("../../transformer/server/static/tour.js");
const { mount: guide } = await import("../../transformer/server/static/guide.js");
const { Class } = await import("../../transformer/server/static/class.js");

answerFrom(
  new Proxy(/** @type {any} */ ({ ...site.answers }), {
    get: (own, /** @type {string} */ name) =>
      own[name] ??
      (async (/** @type {any} */ data) => {
        questions.push({ name, data });
        if (!(name in replies))
          throw Object.assign(new Error(`${name} is refused`), { status: 404 });
        return replies[name](data);
      }),
  }),
  () => true,
);

const { body } = globalThis.document;
const ready = () => settled(body, () => !isOpening() && cardState.linked === 0);
const card = place();
card.append(globalThis.document.createElement("div"));
guide({ element: card, props: {}, trigger: () => {} });
apply({ text: "before" });
await ready();
/** @type {(selector: string) => string[]} */
const texts = (selector) =>
  card
    .querySelectorAll(selector)
    .map((/** @type {any} */ each) => each.textContent.replace(/\s+/g, " ").trim());
const shown = () => (cardState.place === null ? null : [cardState.deck.name, cardState.place]);
const looks = () =>
  ["touring", "typing", "pressing", "guessing", "asking"].filter((name) =>
    body.classList.contains(name),
  );
const key = (/** @type {string} */ name, more = {}) =>
  fire(body, "keydown", { key: name, ...more });

test("the tour's cards are walked, each with its page, and end where they began", async () => {
  const opener = site.element("", "", "button");
  tour.opener.current = opener;
  tour.goToTour(0);
  await ready();
  assert.deepEqual(
    [shown(), texts(".card-title"), texts(".card-count")],
    [["", 0], ["One"], ["1 of 3"]],
  );
  assert.deepEqual(
    [fields.tab, fields.head, fields.tour, page.run.text],
    ["attention", 1, "1", "example of tiny"],
  );
  assert.equal(globalThis.document.activeElement, card.querySelector(".card-title"));
  assert.deepEqual(looks(), ["touring"]);
  press(card.querySelector(".card-next"));
  await ready();
  assert.deepEqual([shown(), fields.tour, looks()], [["", 1], "2", ["typing"]]);
  assert.equal(fields.tab, "attention"); // it asks for no other page
  press(card.querySelector(".card-next"));
  await ready();
  assert.deepEqual([fields.tab, fields.scale, looks()], ["masks", "log", ["touring", "pressing"]]);
  assert.equal(texts(".card-next")[0], "Lessons ›"); // after the last card
  press(card.querySelector(".card-next"));
  await ready();
  assert.deepEqual([shown(), cardState.isChoosing, looks()], [null, true, []]);
  cardState.isChoosing = false;
  tour.opener.current = opener;
  tour.goToTour(2);
  await ready();
  fire(card.querySelector(".card"), "keydown", { key: "ArrowLeft" });
  await ready();
  assert.deepEqual(shown(), ["", 1]);
  fire(card.querySelector(".card"), "keydown", { key: "Escape" });
  await ready();
  assert.deepEqual([shown(), fields.tour], [null, ""]);
  assert.equal(globalThis.document.activeElement, opener);
});

test("projected, a presenter's keys leaf, unless a control or a box has the focus", async () => {
  const draw = chance(4);
  const button = site.element("", "", "button");
  const box = site.element("", "", "input");
  tour.goToTour(0);
  await ready();
  let at = 0;
  for (let round = 0; round < 60; round += 1) {
    const isProjected = draw.is(0.8);
    page.projector = isProjected;
    const focus = draw.one([body, body, button, box]);
    focus.focus();
    const name = draw.one([
      "PageDown",
      "PageUp",
      "ArrowRight",
      "ArrowDown",
      "ArrowLeft",
      "ArrowUp",
      "Home",
    ]);
    const held = draw.is(0.2)
      ? { [draw.one(["ctrlKey", "altKey", "metaKey", "shiftKey"])]: true }
      : {};
    const event = key(name, held);
    await ready();
    const isRemote = name.startsWith("Page");
    const moves =
      isProjected &&
      !Object.keys(held).length &&
      focus !== box &&
      name !== "Home" &&
      (isRemote || focus === body);
    const by = /Down|Right/.test(name) ? 1 : -1;
    const says = JSON.stringify([name, held, isProjected, focus.localName, at]);
    assert.equal(event.defaultPrevented, moves, says);
    if (moves) at = Math.min(2, Math.max(0, at + by));
    assert.deepEqual(shown(), ["", at], says);
  }
  page.projector = false;
  tour.endTour();
  page.projector = true;
  body.focus();
  assert.equal(key("PageDown").defaultPrevented, false);
  page.projector = false;
  await ready();
});

test("a link leads to a card; a lesson's alone opens what the step shows", async () => {
  site.type("tour=3");
  await ready();
  assert.deepEqual([shown(), fields.tab], [["", 2], "journey"]);
  site.type("lesson=first.2");
  await ready();
  assert.deepEqual([shown(), page.run.text, fields.tab], [["first", 1], "a text", "masks"]);
  assert.equal(fields.lesson, "first.2");
  assert.equal(fields.tour, "");
  site.type("lesson=first.1&text=another&tab=learn");
  await ready();
  assert.deepEqual([shown(), page.run.text, fields.tab], [["first", 0], "another", "learn"]);
  site.type("text=another");
  await ready();
  assert.deepEqual([shown(), fields.lesson], [null, ""]);
  for (const [hash, says] of [
    ["tour=9", /tour must be a whole number from 1 to 3; got 9/],
    ["lesson=third.1", /lesson must be one of first, second; got third/],
    ["lesson=first.0", /lesson must be .* from 1 to 4; got 0/],
  ]) {
    site.type(/** @type {string} */ (hash));
    await ready();
    await settled(body, () => page.status.kind === "error");
    assert.match(page.status.text, /** @type {RegExp} */ (says));
    assert.equal(shown(), null);
  }
});

test("of lessons that are pressed one after another the last opens; one that fails is asked for again", async () => {
  const { lesson } = replies;
  /** @type {(() => void)[]} */
  const releases = [];
  delete replies.lesson;
  await assert.rejects(tour.goToLesson("second"), /lesson is refused/);
  replies.lesson = async (data) => {
    await new Promise((done) => releases.push(/** @type {any} */ (done)));
    return lesson(data);
  };
  const second = tour.goToLesson("second"); // asked for again
  const first = tour.goToLesson("first"); // is there already
  await first;
  await settled(body, () => releases.length > 0);
  releases[0]();
  await second;
  await ready();
  assert.deepEqual(shown(), ["first", 0]);
  await tour.goToLesson("second");
  await ready();
  assert.deepEqual(
    [shown(), questions.filter(({ name }) => name === "lesson").length],
    [["second", 0], 3],
  );
  replies.lesson = lesson;
  tour.endTour();
  await ready();
});

test("a step is guessed, answered with hints, and remembered as solved", async () => {
  /** @type {any[]} */
  const graded = [];
  replies.grade = (data) => {
    graded.push(data);
    const isRight =
      data.answer.option === 2 || data.answer.number === 0.25 || data.answer.token === 4;
    return { right: isRight, says: isRight ? "Well read." : "Look again." };
  };
  await tour.goToLesson("first");
  await ready();
  assert.deepEqual(looks(), ["touring", "guessing"]);
  assert.deepEqual(texts(".card-guess label"), ["a", "b", "c"]);
  fire(card.querySelectorAll(".card-guess input")[2], "change");
  await ready();
  assert.deepEqual([looks(), texts(".card-guessed")], [["touring"], ["Your guess: c · right: b"]]);
  press(card.querySelector(".card-next"));
  await ready();
  assert.deepEqual([looks(), texts(".card-explains")], [["touring", "asking"], [""]]);
  // Options are drawn once in an order, in which they stay.
  const order = inOrder(
    "first.1",
    { title: "", says: [], state: {}, ...LESSONS.first.steps[1] },
    "options",
  );
  assert.deepEqual([...order].sort(), [0, 1, 2]);
  assert.deepEqual(
    texts(".card-form label"),
    order.map((at) => "xyz"[at]),
  );
  const hint = card.querySelector(".card-hint");
  for (const [n, hints] of [
    ["1", []],
    ["2", ["hint one"]],
  ].entries()) {
    assert.deepEqual(
      [hint.textContent, texts(".card-hints li")],
      [`Hint ${hints[0]} of 3`, hints[1]],
      String(n),
    );
    press(hint);
    await ready();
  }
  assert.equal(texts(".card-solve")[0], "Show me the answer");
  fire(card.querySelector('input[value="0"]'), "change");
  await ready();
  assert.deepEqual(graded.at(-1), {
    name: "first",
    step: 2,
    run: page.run.run,
    answer: { option: 0 },
  });
  assert.deepEqual(
    [texts(".card-verdict"), texts(".card-explains")],
    [["Not yet. Look again."], [""]],
  );
  fire(card.querySelector('input[value="2"]'), "change");
  await ready();
  assert.deepEqual(
    [texts(".card-verdict"), texts(".card-explains"), looks()],
    [["Right. Well read."], ["Because."], ["touring"]],
  );
  // Those of an earlier visit are kept; what is no name is left out.
  assert.deepEqual(JSON.parse(store.get("solved-lessons") ?? ""), [
    "first.3",
    "other.2",
    "first.2",
  ]);

  press(card.querySelector(".card-next"));
  await ready();
  const form = card.querySelector(".card-form");
  fire(card.querySelector(".card-form input"), "input", { target: { value: "many" } });
  await ready();
  fire(form, "submit");
  await ready();
  assert.deepEqual([texts(".card-verdict"), graded.length], [["Give a number, such as 0.25."], 2]);
  fire(card.querySelector(".card-form input"), "input", { target: { value: "25 %" } });
  await ready();
  fire(form, "submit");
  await ready();
  assert.deepEqual(
    [graded.at(-1).answer, texts(".card-verdict")],
    [{ number: 0.25 }, ["Right. Well read."]],
  );
});

test("what is chosen on the page answers a step, once it is ready; the solution brings the page to it", async () => {
  /** @type {any[]} */
  const graded = [];
  replies.grade = async (data) => {
    graded.push(data.answer);
    return { right: data.answer.token === 4, says: "So." };
  };
  tour.goToCard(3, cardState.deck);
  await ready();
  await settled(body, () => Boolean(card.querySelector(".card-write")));
  assert.deepEqual(graded, []); // what was chosen before is no answer
  setQuery({ stack: "decoder", index: 1 });
  fire(body, "pointerup");
  await settled(body, () => graded.length === 1 && texts(".card-verdict")[0] !== "");
  assert.deepEqual(
    [graded[0], texts(".card-verdict")],
    [{ stack: "own", token: 1 }, ["Not yet. So."]],
  );
  await ready();
  replies.solve = () => ({ state: { read: 4, tab: "masks" } });
  press(card.querySelector(".card-solve"));
  await ready();
  await settled(body, () => graded.length > 1 && /Right/.test(texts(".card-verdict")[0]));
  assert.deepEqual([fields.read, fields.tab, fields.more], ["4", "masks", "curves"]);
  assert.deepEqual(shown(), ["first", 3]);
  assert.equal(fields.lesson, "first.4");

  tour.goToCard(2);
  await ready();
  replies.solve = () => ({ number: 0.123456 });
  replies.grade = (data) => ({ right: data.answer.number === 0.12, says: "It is." });
  press(card.querySelector(".card-solve"));
  await settled(body, () => texts(".card-verdict")[0] === "Right. It is.");
  assert.equal(card.querySelector(".card-form input").getAttribute("value"), "0.12");
  delete replies.grade;
  fire(card.querySelector(".card-form"), "submit");
  await settled(body, () => texts(".card-verdict")[0] === "grade is refused");
});

test("the list of lessons says what is solved, and forgets it where it is not to be kept", async () => {
  cardState.isChoosing = true;
  await ready();
  await settled(body, () => texts(".lesson").length === 2);
  const list = card.querySelector(".lesson-list");
  assert.deepEqual(
    [list.hasAttribute("hidden"), body.classList.contains("choosing-lesson")],
    [false, true],
  );
  assert.deepEqual(texts(".lesson"), ["first", "second"]);
  const facts = texts(".lesson-facts");
  assert.match(facts[0], /^5 minutes · 3 of 3 solved · For the teacher$/);
  assert.match(facts[1], /^5 minutes · For the teacher$/);
  assert.deepEqual(
    card
      .querySelectorAll(".lessons li")
      .map((/** @type {any} */ each) => each.getAttribute("class")),
    ["solved", ""],
  );
  const box = card.querySelector(".lessons-keep input");
  fire(box, "change", { target: { checked: false } });
  assert.equal(store.has("solved-lessons"), false);
  fire(box, "change", { target: { checked: true } });
  assert.ok(JSON.parse(store.get("solved-lessons") ?? "").includes("first.4"));
  press(card.querySelectorAll(".lesson")[1]);
  await ready();
  assert.deepEqual([shown(), cardState.isChoosing], [["second", 0], false]);
  assert.deepEqual(
    [list.hasAttribute("hidden"), body.classList.contains("choosing-lesson")],
    [true, false],
  );
  assert.equal(card.querySelector(".card-next").hasAttribute("hidden"), false);
  assert.equal(texts(".card-next")[0], "Lessons ›"); // the last lesson
  tour.goToCard(0, { name: "first", title: "", cards: [{ title: "", says: [], state: {} }] });
  await ready();
  assert.equal(texts(".card-next")[0], "Next lesson ›");
  press(card.querySelector(".card-next"));
  await ready();
  assert.deepEqual(shown(), ["second", 0]);
  press(card.querySelector(".card-end"));
  await ready();
  assert.equal(shown(), null);
});

// ---- a class ----

/** @type {any} */
let tally = null;
/** @type {any[]} */
const guesses = [];
/** @type {any} */
let solves = 0;
/** @type {any[]} */
const rooms = [];
afterEach(() => {
  for (const room of rooms.splice(0)) render(null, room);
});
/** @type {(more?: object) => Promise<any>} */
const drawnClass = async (more = {}) => {
  const element = place();
  rooms.push(element);
  const state = {
    guess: null,
    solved: false,
    set: (/** @type {any} */ change) => guesses.push(change),
  };
  const props = {
    ...{
      left: null,
      lesson: "first",
      step: 2,
      words: LESSONS.first.steps[1],
      state,
      solve: () => void (solves += 1),
    },
    ...{ bringPicture: () => () => {}, end: () => render(null, element), ...more },
  };
  const draw = (/** @type {any} */ next) =>
    render(html`<${Class} ...${{ ...props, ...next }} />`, element);
  draw({});
  await settled(element);
  return {
    element,
    draw,
    says: (/** @type {string} */ selector) =>
      element
        .querySelectorAll(selector)
        .map((/** @type {any} */ each) => each.textContent.replace(/\s+/g, " ").trim()),
  };
};
const shownSteps = () =>
  questions.filter(({ name }) => name === "show_step").map(({ data }) => data);
const tallyOf = (/** @type {any} */ more) => ({
  ...{
    name: "first.2.task",
    kind: "options",
    look: "list",
    stack: "own",
    over: false,
    best: null,
    right: null,
  },
  ...{ options: [], counts: [], phones: 0, answered: 0, ...more },
});

test("a class's phones are shown each step in its phase, one request after the other", async () => {
  const element = globalThis.document.createElement("dialog");
  Object.assign(Object.getPrototypeOf(element), { showModal: () => {}, close: () => {} });
  replies["class/open"] = () => ({ code: "ABC", key: "secret" });
  replies["class/tally"] = () => tally ?? tallyOf({ kind: "" });
  replies.show_step = () => ({});
  replies.code = () => ({ picture: "data:", address: "http://a/class/ABC" });
  questions.splice(0);
  const { draw, says, element: room } = await drawnClass();
  await settled(room, () => shownSteps().length === 1);
  const [order] = [inOrder("first.1", /** @type {any} */ (LESSONS.first.steps[1]), "options")];
  const held = { code: "ABC", key: "secret" };
  assert.deepEqual(shownSteps(), [
    { ...held, name: "first", step: 2, phase: "task", order, run: page.run.run },
  ]);
  assert.deepEqual([says("h3"), body.classList.contains("teaching")], [["Class ABC"], true]);
  const [guessing] = LESSONS.first.steps;
  draw({ step: 1, words: guessing });
  await settled(room, () => shownSteps().length === 2);
  assert.deepEqual([shownSteps()[1].phase, shownSteps()[1].order], ["guess", [0, 1, 2]]);
  press(room.querySelector(".class-open"));
  assert.deepEqual(guesses, [{ guess: OF_CLASS }]);
  const solved = { guess: 0, solved: true, set: () => {} };
  draw({ step: 2, state: solved });
  await settled(room, () => shownSteps().length === 3);
  assert.equal(shownSteps()[2].phase, "shown");
  assert.equal(room.querySelector(".class-solve"), null);
  draw({ words: null, lesson: "", step: 1, state: solved });
  await settled(room, () => shownSteps().length === 4);
  assert.deepEqual(shownSteps()[3], held); // nothing is asked
  replies["class/end"] = () => ({});
  press(room.querySelector(".class-end"));
  await settled(body, () => !body.classList.contains("teaching"));
  assert.deepEqual(
    questions.filter(({ name }) => name === "class/end").map(({ data }) => data),
    [held],
  );
});

test("answers are bars as long as they are many, all options or those that were given most", async () => {
  const draw = chance(6);
  const { element, says } = await drawnClass({ left: '{"code":"X","key":"k"}' });
  /** @type {(more: object) => Promise<void>} */
  const showing = async (more) => {
    tally = tallyOf(more);
    const { answered, phones } = tally;
    await settled(
      element,
      () => says(".class-count")[0] === `Phones that have answered: ${answered} of ${phones}.`,
    );
  };
  const wide = () =>
    element
      .querySelectorAll(".class-track span")
      .map((/** @type {any} */ bar) => parseFloat(bar.style.width));
  for (let round = 1; round < 12; round += 1) {
    const isList = draw.is();
    const size = isList ? draw.whole(2, 5) : draw.whole(1, 14);
    const all = Array.from({ length: size }, (_, at) => at * 3);
    const counts = all.filter(() => draw.is(0.8)).map((at) => [at, draw.whole(1, 9)]);
    const options = all.map((at) => ({ at, text: `o${at}` }));
    const best = draw.is() ? draw.one(all) : null;
    const right = best === null ? null : [best];
    await showing({
      ...{ look: isList ? "list" : "tokens", options, counts, best, right },
      answered: round,
      phones: 20 + round,
    });
    const votes = new Map(/** @type {any} */ (counts));
    const names = says(".class-option");
    const places = names.map((/** @type {string} */ name) => Number(/\d+/.exec(name)?.[0]));
    const said = JSON.stringify(tally);
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
      said,
    );
    assert.deepEqual(
      says(".class-votes").map(Number),
      places.map((/** @type {number} */ at) => votes.get(at) ?? 0),
      said,
    );
    assert.deepEqual(
      names.filter((/** @type {string} */ name) => name.includes("✓")),
      best === null ? [] : [`o${best} ✓`],
      said,
    );
    const most = Math.max(1, ...counts.map(([, count]) => count));
    assert.deepEqual(
      wide().map(Math.round),
      places.map((/** @type {number} */ at) => Math.round((100 * (votes.get(at) ?? 0)) / most)),
      said,
    );
    if (isList) assert.deepEqual(places, all, said);
    else {
      const left = counts.filter(([at]) => !places.includes(at)).map(([, count]) => count);
      const kept = places
        .filter((/** @type {number} */ at) => at !== best)
        .map((/** @type {number} */ at) => votes.get(at) ?? 0);
      assert.ok(Math.max(0, ...left) <= Math.min(99, ...kept), said);
      assert.ok(places.length <= 9 && kept.length >= Math.min(7, counts.length - 1), said);
    }
  }
  await showing({
    kind: "number",
    look: "",
    counts: [
      [0.333333, 2],
      [-1.5, 1],
    ],
    answered: 1,
    phones: 50,
  });
  assert.deepEqual(says(".class-option"), ["-1.5", "0.33"]);
  const line = (/** @type {string} */ text, right = false) => ({ text, said: `${text}!`, right });
  await showing({
    kind: "text",
    look: "",
    texts: [line("no"), line("yes", true)],
    guessed: { right: 1, all: 4, text: "a *b*" },
    answered: 2,
    phones: 51,
  });
  assert.deepEqual(says(".class-bars"), []);
  assert.match(element.textContent, /Right: 1 of 2\./);
  assert.deepEqual(
    [says(".class-guessed"), says("ul.class-texts")],
    [["1 of 4 guessed it: a b"], []],
  );
  press(element.querySelector("button.class-texts"));
  await settled(element);
  assert.deepEqual(says(".class-texts li"), ["yes yes! ✓", "no no!"]);
  tally = tallyOf({ name: "first.3.task", answered: 3, phones: 52 }); // of another step
  await settled(element, () => says(".class-room > p")[0] === "Everybody looks at the screen.");
});

test("what a class said is shown at the tokens or heads, once the answer is", async () => {
  const none = page.votes;
  let ended = 0;
  const { element } = await drawnClass({
    left: '{"code":"X","key":"k"}',
    end: () => void (ended += 1),
  });
  const tokens = {
    look: "tokens",
    stack: "own",
    options: [0, 1, 2].map((at) => ({ at, text: `t${at}` })),
    counts: [[1, 3]],
    right: [2],
    best: 2,
  };
  tally = tallyOf({ ...tokens, over: false });
  await settled(element, () => element.querySelector(".class-bars") !== null);
  assert.equal(page.votes, none);
  tally = tallyOf({ ...tokens, over: true });
  await settled(element, () => page.votes !== none);
  assert.deepEqual(page.votes, { ...none, stack: "decoder", tokens: { 1: "3", 2: "0 ✓" } });
  tally = tallyOf({
    ...tokens,
    look: "heads",
    options: [
      { at: 0, text: "0·1" },
      { at: 1, text: "3·2" },
    ],
    counts: [
      [0, 1],
      [1, 4],
    ],
    right: [1],
    over: true,
  });
  await settled(element, () => page.votes.heads.length > 0);
  assert.deepEqual(page.votes.heads, [
    { layer: 0, head: 1, sign: "1", label: "1" },
    { layer: 3, head: 2, sign: "4 ✓", label: "4 ✓" },
  ]);
  delete replies["class/tally"]; // the class is over
  await settled(body, () => ended > 0);
  assert.equal(page.status.text, "class/tally is refused");
  render(null, element);
  assert.equal(page.votes, none);
});
