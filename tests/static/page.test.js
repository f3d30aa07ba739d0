// What is around the views: the text with its changes and seed, the header's menu, what outlives the page, its
// terms, where the focus goes, and how the page comes.
import assert from "node:assert/strict";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { dataElements, fire, place, press, settled } from "../kit/dom.js";
import * as site from "./server.js";

/** @type {(name: string) => any} */
const storage = (name) => {
  /** @type {Map<string, string>} */
  const store = new Map();
  Object.assign(globalThis, {
    [name]: {
      getItem: (/** @type {string} */ key) => store.get(key) ?? null,
      setItem: (/** @type {string} */ key, /** @type {string} */ text) => void store.set(key, text),
      removeItem: (/** @type {string} */ key) => void store.delete(key),
    },
  });
  return store;
};
const [ofVisit, lasting] = ["sessionStorage", "localStorage"].map(storage);
const narrow = { matches: false, onchange: () => {} };
Object.assign(globalThis, { matchMedia: () => narrow });
dataElements.glossary = {
  textContent: JSON.stringify({
    head: { words: ["head", "heads"], says: "One of several." },
    attention: { words: ["attention"], says: "Reading." },
  }),
};
dataElements["first-answers"] = {
  textContent: JSON.stringify([
    ["journey", { run: "r1", position: 4, head: null }, { logits: [0.5] }],
  ]),
};
// A page that was loaded again while the connection was lost, with a text that had not been run.
Object.assign(globalThis.performance, { getEntriesByType: () => [{ type: "reload" }] });
ofVisit.set("viz-kept", JSON.stringify({ typed: { text: "unfinished", seed: 4 }, lost: true }));
ofVisit.set("viz-visit", "the-same-visit");
site.write({
  cards: [{ title: "One", says: "First.", state: {} }],
  lessons: ["first"],
  settings: ["method", "temperature", "seed", "max_new_tokens"],
});

// The server, until the page's own answers are prepared.
globalThis.fetch = /** @type {any} */ (
  async (/** @type {string} */ address, /** @type {any} */ { body: data = "{}" } = {}) => {
    const answer = /** @type {any} */ (site.answers)[/(\w+)\?/.exec(address)?.[1] ?? ""];
    const lines = [];
    for await (const line of answer(JSON.parse(data))) lines.push(`${JSON.stringify(line)}\n`);
    return new Response(lines.join(""));
  }
);

const { answerFrom, answeredHere, session } = await import("../../transformer/web/ask.js");
const { html, render } = await import("../../transformer/web/preact.js");
const { controls, page, setQuery, setRun, shell } = await import("../../transformer/web/store.js");
const { fields } = await import("../../transformer/web/fields.js");
const { cardState } = await import("../../transformer/web/card.js");
const first = await import("../../transformer/server/static/first_look.js");
const main = await import("../../transformer/server/static/main.js");
const { apply, isOpening } = await import("../../transformer/server/static/link.js");
const { connectControls } = await import("../../transformer/server/static/gradio.js");
const { mount: header, pageAddress } = await import("../../transformer/server/static/header.js");
const { mount: panel } = await import("../../transformer/server/static/prompt_panel.js");
const { mount: terms } = await import("../../transformer/server/static/terms.js");
const { useFocus } = await import("../../transformer/server/static/focus.js");
/** @type {Record<string, (data: any) => any>} */
const prepared = {};
const storedHere = answeredHere("journey", { run: "r1", position: 4 });
answerFrom(
  new Proxy(/** @type {any} */ ({ ...site.answers }), {
    get: (own, /** @type {string} */ name) =>
      own[name] ?? (async (/** @type {any} */ data) => prepared[name](data)),
  }),
  () => true,
);
const { document } = globalThis;
const { body } = document;
const ready = () => settled(body, () => !isOpening());
/** @type {(mount: (mounted: any) => void, props?: any) => any} */
const drawn = (mount, props = {}) => {
  const element = place();
  element.append(document.createElement("div"));
  mount({ element, props, trigger: () => {} });
  return element;
};
/** @type {(element: any, selector: string) => string[]} */
const texts = (element, selector) =>
  element
    .querySelectorAll(selector)
    .map((/** @type {any} */ each) => each.textContent.replace(/\s+/g, " ").trim());
const isHidden = (/** @type {any} */ element) => element.hasAttribute("hidden");

test("a page that was left unfinished is the same visit, with its text in the box", async () => {
  await ready();
  assert.equal(session, "the-same-visit");
  assert.deepEqual(
    [controls.text, controls.seed, page.run.text],
    ["unfinished", 4, "example of tiny"],
  );
  await settled(body, () => page.status.kind === "busy");
  assert.match(page.status.text, /^The server is back\. Your text is kept/);
  assert.equal(ofVisit.has("viz-kept"), false);
});

test("what the page asks first is part of it, whatever is left to its defaults", async () => {
  assert.deepEqual(
    await /** @type {any} */ (storedHere)({ run: "r1", position: 4, head: undefined }),
    { logits: [0.5] },
  );
  assert.deepEqual(await /** @type {any} */ (storedHere)({ position: 4, run: "r1" }), {
    logits: [0.5],
  });
  assert.equal(await /** @type {any} */ (storedHere)({ run: "r1", position: 5 }), undefined);
});

test("a page that is left keeps what was typed and not run, and says that it leaves", () => {
  /** @type {any[]} */
  const sent = [];
  /** @type {any} */ (globalThis).fetch = async (/** @type {any[]} */ ...request) =>
    void sent.push(request);
  const leave = /** @type {any} */ (globalThis).onpagehide;
  for (const [isUnfinished, isLost, isMoving] of [
    [false, false, false],
    [true, false, false],
    [false, true, false],
    [false, false, true],
  ]) {
    sent.splice(0);
    ofVisit.clear();
    controls.text = isUnfinished ? "other" : page.run.text;
    Object.assign(page, { isLost, isMoving });
    leave();
    const isKept = isUnfinished || isLost || isMoving;
    const kept = JSON.parse(ofVisit.get("viz-kept") ?? "null");
    assert.equal(kept !== null, isKept);
    if (kept)
      assert.deepEqual(
        [kept.typed.text, kept.lost, "model" in kept.typed],
        [controls.text, isLost, false],
      );
    assert.equal(ofVisit.get("viz-visit"), session);
    assert.deepEqual(
      sent.map(([address, { method, headers }]) => [address, method, headers["x-session"]]),
      isLost || isMoving ? [] : [["leave", "POST", session]],
    );
  }
  Object.assign(page, { isLost: false, isMoving: false });
  let loaded = 0;
  Object.assign(globalThis.location, { reload: () => void (loaded += 1) });
  main.moveTo("?__lang=de#text=x");
  assert.deepEqual(
    [page.isMoving, loaded, globalThis.location.search, globalThis.location.hash],
    [true, 1, "?__lang=de", "#text=x"],
  );
  page.isMoving = false;
});

test("the page looks as its window, its tab and its projector ask", async () => {
  const looks = () =>
    ["first", "projector", "embedded", "stacked"].filter((name) => body.classList.contains(name));
  apply({ text: "here" });
  await ready();
  assert.deepEqual(looks(), ["first"]);
  fields.tab = "masks";
  assert.deepEqual(looks(), []);
  page.projector = true;
  assert.deepEqual([looks(), fields.projector], [["projector", "stacked"], "1"]);
  page.projector = false;
  narrow.matches = true;
  /** @type {any} */ (narrow).onchange();
  assert.deepEqual([looks(), fields.projector], [["stacked"], null]);
  narrow.matches = false;
  /** @type {any} */ (narrow).onchange();
  // Gradio lays the tabs out as it comes; later it is a visitor who opens one.
  Object.assign(page, { isLaidOut: false, tabWanted: "masks" });
  main.tabShown("journey");
  assert.deepEqual([fields.tab, page.isLaidOut], ["masks", true]);
  main.tabShown("journey");
  assert.equal(fields.tab, "journey");
});

test("another run forgets a cell; another model opens as it says", async () => {
  const run = site.runOf({ model: "tiny", text: "a" }, { opening: { scale: "log" } });
  setRun(run);
  fields.scale = "linear";
  fields.cell = "1,1";
  setRun(site.runOf({ model: "tiny", text: "b" }, { opening: { scale: "log" } }));
  assert.deepEqual([fields.cell, fields.scale], ["", "linear"]);
  setRun(site.runOf({ model: "other", text: "b" }, { opening: { scale: "log" } }));
  assert.equal(fields.scale, "log");
});

test("Escape closes what lies above the page, else it lets the chosen token go", () => {
  setQuery({ stack: "decoder", index: 2 });
  const dialog = site.element("", "", "dialog");
  dialog.setAttribute("open", "");
  fire(body, "keydown", { key: "Escape" });
  assert.equal(page.query.index, 2);
  dialog.removeAttribute("open");
  fire(body, "keydown", { key: "Enter" });
  assert.equal(page.query.index, 2);
  fire(body, "keydown", { key: "Escape" });
  assert.equal(page.query, null);
});

// ---- the text ----

test("changes are told with what they change in the text, and taken back one by one", async () => {
  /** @type {any[]} */
  const asked = [];
  const { generate } = shell;
  shell.generate = (altered, text) => void asked.push([altered, text]);
  const offs = [0, 1, 2].map((layer) => ({ type: "ablate", stack: "decoder", layer, heads: [0] }));
  const labels = ["␣a", "␣b", "␣c", "␣d", "␣e", "␣f", "␣g", "␣h", "␣i", "␣j"];
  /** @type {any[]} */
  const questions = [];
  const draw = chance(9);
  const element = drawn(panel.altered);
  const bar = () => element.querySelector(".altered");
  setRun(site.runOf({ model: "tiny", text: "x" }));
  await settled(body);
  assert.ok(isHidden(bar()));
  for (let round = 0; round < 12; round += 1) {
    const changes = draw.some(offs);
    const forced = draw.is() ? [7, 8].slice(0, draw.whole(1, 2)) : [];
    if (!changes.length && !forced.length) continue;
    const same = draw.whole(3, 9);
    const isEqual = draw.is(0.3);
    const before = labels.map((label, at) => (at < same ? label : `${label}2`));
    prepared.intact_text = (data) => {
      questions.push(data);
      return {
        labels: isEqual ? labels : before,
        same: isEqual ? labels.length : same,
        equal: isEqual,
        n_prompt: 2,
      };
    };
    const facts = {
      labels,
      n_prompt: 2,
      forced_tokens: forced,
      interventions: changes.map((is) => ({ is, says: `off ${is.layer}` })),
    };
    setRun(site.runOf({ model: "tiny", text: "x" }, facts));
    await settled(
      body,
      () => texts(element, ".altered-says")[0] !== "" || texts(element, ".altered-text").length > 0,
    );
    assert.deepEqual(questions.at(-1), { run: page.run.run, forced: false });
    const token = 2 + forced.length - 1;
    const says = [
      ...changes.map(({ layer }) => `off ${layer}`),
      ...(forced.length ? [`token ${token} is “${labels[token]}”`] : []),
    ];
    assert.deepEqual(texts(element, "li bdi"), says);
    const lines = element.querySelectorAll("li button");
    for (const [at, line] of lines.entries()) {
      asked.splice(0);
      press(line);
      const others = changes.filter((_, other) => other !== at);
      // The forced tokens are taken back with any change of the network before them.
      assert.deepEqual(asked[0][0], {
        interventions: at < changes.length ? others : changes,
        forced_tokens: [],
      });
    }
    press(element.querySelector(".intact"));
    assert.deepEqual(asked.at(-1)[0], { interventions: [], forced_tokens: [] });
    assert.deepEqual(texts(element, ".altered-says"), [
      isEqual ? "It changes no token of this text." : "",
    ]);
    if (isEqual) continue;
    const from = Math.max(2, same - 6);
    const words = (/** @type {string[]} */ of) => of.map((label) => label.slice(1)).join(" ");
    const ahead = from > 2 ? "… " : "";
    assert.deepEqual(
      texts(element, "[data-text=before]"),
      [`${ahead}${words(before.slice(from))}`],
      `${same}`,
    );
    assert.deepEqual(texts(element, "[data-text=after]"), [`${ahead}${words(labels.slice(from))}`]);
    assert.deepEqual(texts(element, "[data-text=before] .differs"), [words(before.slice(same))]);
  }
  // A network that has learned an exercise is asked all of it again.
  prepared.examined = () => ({ task: "copy", asked: 40, intact: 39, altered: 7 });
  setRun(
    site.runOf(
      { model: "own~copy", text: "x" },
      { labels, interventions: [{ is: offs[0], says: "off" }] },
    ),
  );
  await settled(body, () => /questions/.test(texts(element, ".altered-says")[0]));
  assert.match(texts(element, ".altered-says")[0], /right: 39 of 40 before, 7 after\.$/);
  shell.generate = generate;
});

test("a seed is told, and told again where it gives the same text; a new one is another", async () => {
  /** @type {any[]} */
  const set = [];
  connectControls((changes) => set.push(changes));
  const { random } = Math;
  const element = drawn(panel.seed);
  const says = () => texts(element, ".seed-says")[0];
  const facts = { seed: 7, how: "sampling" };
  setRun(site.runOf({ model: "tiny", text: "x" }, facts));
  await settled(body);
  assert.equal(says(), "Seed 7");
  setRun(site.runOf({ model: "tiny", text: "x" }, facts));
  await settled(body);
  assert.equal(says(), "Seed 7 again: the same text.");
  setRun(site.runOf({ model: "tiny", text: "x" }, { ...facts, ids: [1, 2, 3, 4, 1, 6] }));
  await settled(body);
  assert.equal(says(), "Seed 7");
  const seeds = new Set();
  for (const at of [0, 0.00069, 0.0007, 0.00071, 0.99999]) {
    Math.random = () => at;
    press(element.querySelector(".new-seed"));
    seeds.add(controls.seed);
    assert.ok(
      controls.seed !== 7 && controls.seed >= 0 && controls.seed < 10_000,
      String(controls.seed),
    );
  }
  Math.random = random;
  assert.deepEqual(
    [Math.min(...seeds), Math.max(...seeds), seeds.has(6), seeds.has(8)],
    [0, 9999, true, true],
  );
  await ready();
  for (const again of [false, true]) {
    setRun(site.runOf({ model: "tiny", text: "greedy" }, { seed: null }));
    await settled(body);
    assert.equal(says(), again ? "Nothing is drawn at random: the same text again." : "");
    assert.equal(isHidden(element.querySelector(".seed")), !again);
  }
});

test("a beam search's texts are listed with their scores", async () => {
  const element = drawn(panel.hypotheses);
  setRun(site.runOf({ model: "tiny", text: "x" }));
  await settled(body);
  assert.ok(isHidden(element.querySelector(".hypotheses")));
  const hypotheses = [
    { text: "un", score: -1.23456, normalised: -0.5, ended: true },
    { text: "deux", score: -2, normalised: -0.75, ended: false },
  ];
  setRun(site.runOf({ model: "tiny", text: "x" }, { hypotheses }));
  await settled(body);
  assert.deepEqual(texts(element, "tbody td"), [
    "un",
    "-1.235",
    "-0.500",
    "deux (cut at the length)",
    "-2.000",
    "-0.750",
  ]);
  assert.equal(element.querySelector(".hypotheses").getAttribute("data-run"), page.run.run);
});

test("the line of status asks what a stored example answers, and alerts of mistakes", async () => {
  const element = drawn(panel.status, { value: { kind: "done", text: "" } });
  const { showStatus, showProblem } = await import("../../transformer/web/store.js");
  const status = () => texts(element, ".status")[0];
  fields.tab = "journey";
  setRun(site.runOf({ model: "tiny", text: "x" }, { example: true }));
  showStatus({ kind: "done", text: "A stored example, read by this model." });
  await settled(body);
  assert.equal(status(), "What will the network write after “on the mat”, and why?");
  setQuery({ stack: "decoder", index: 2 });
  await settled(body);
  assert.equal(status(), "Why does the network write “on” after “the fox sat”?");
  setQuery({ stack: "decoder", index: 0 });
  await settled(body);
  assert.equal(status(), "Why does the network write “fox” after “the”?");
  fields.tab = "masks";
  await settled(body);
  assert.equal(status(), "A stored example, read by this model.");
  showProblem("No.");
  await settled(body);
  assert.deepEqual(
    [isHidden(element.querySelector(".problem")), texts(element, ".problem"), status()],
    [false, ["No."], ""],
  );
  fields.tab = "journey";
});

test("the box for a text opens in place, counts near its end, and closes with its run", async () => {
  const element = drawn(panel.own_text, { max_characters: 20 });
  const button = element.querySelector(".own-text");
  setRun(site.runOf({ model: "tiny", text: "the text" }));
  press(button);
  await settled(body);
  assert.deepEqual(
    [page.typing, button.getAttribute("aria-expanded"), body.classList.contains("writing")],
    [true, "true", true],
  );
  for (const [text, says, over] of [
    ["x".repeat(18), "", "false"],
    ["🦊".repeat(19), "19 of 20 characters", "false"],
    ["x".repeat(21), "21 of 20 characters", "true"],
  ]) {
    controls.text = text;
    await settled(body);
    const count = element.querySelector(".characters");
    assert.deepEqual([count.textContent, count.getAttribute("data-over")], [says, over]);
  }
  setRun(site.runOf({ model: "tiny", text: "another" })); // typed meanwhile: it stays open
  await settled(body);
  assert.equal(page.typing, true);
  controls.text = "mine";
  setRun(site.runOf({ model: "tiny", text: "mine" }));
  await settled(body);
  assert.deepEqual([page.typing, button.getAttribute("aria-expanded")], [false, "false"]);
});

// ---- the header ----

test("models are offered by what they do, and Gradio's list where there are others", async () => {
  const names = ["stories", "fill-in"];
  setRun(site.runOf({ model: "stories", text: "x" }));
  const element = drawn(header.models, { models: names });
  await settled(body);
  const pressed = () =>
    element
      .querySelectorAll("button")
      .filter((/** @type {any} */ each) => each.getAttribute("aria-pressed") === "true")
      .map((/** @type {any} */ each) => each.getAttribute("data-model"));
  assert.deepEqual(
    [texts(element, "button"), pressed(), page.models],
    [["writes stories", "fills gaps"], ["stories"], names],
  );
  assert.equal(body.classList.contains("more-models"), false);
  setRun(site.runOf({ model: "stories~mine", text: "x" })); // one that was trained in the visit
  await settled(body);
  assert.deepEqual([pressed(), body.classList.contains("more-models")], [[], true]);
  setRun(site.runOf({ model: "stories", text: "x" }));
  await settled(body);
  assert.equal(body.classList.contains("more-models"), true); // it stays in reach
  const more = drawn(header.models, { models: [...names, "gpt2"] });
  await settled(body);
  assert.equal(texts(more, "button").length, 2);
});

test("the menu copies a link, says what it leads to, and changes the language in place", async () => {
  const element = drawn(header.header, {
    languages: [
      ["en", "English"],
      ["de", "Deutsch"],
    ],
    space: "a/b",
  });
  const says = () => texts(element, ".share-says")[0];
  /** @type {string[]} */
  const copied = [];
  let isAllowed = true;
  Object.defineProperty(globalThis, "navigator", {
    configurable: true,
    value: {
      clipboard: {
        writeText: async (/** @type {string} */ text) =>
          isAllowed ? void copied.push(text) : Promise.reject(new Error("no")),
      },
    },
  });
  assert.equal(pageAddress("a/b"), "http://127.0.0.1/");
  setRun(site.runOf({ model: "other", text: "to copy" }));
  await settled(body);
  press(element.querySelector(".copy-link"));
  await settled(body, () => says() !== "");
  assert.equal(says(), "Copied. Anyone with the link sees the same.");
  assert.equal(Object.fromEntries(new URLSearchParams(copied[0].split("#")[1])).text, "to copy");
  await settled(body, () => says() === ""); // it passes
  setRun(site.runOf({ model: "own~x", text: "mine" }));
  press(element.querySelector(".copy-link"));
  await settled(body, () => says() !== "");
  assert.match(says(), /^This network belongs to your visit alone/);
  isAllowed = false;
  press(element.querySelector(".copy-link"));
  await settled(body, () => element.querySelector(".share-address") !== null);
  assert.match(says(), /^Copy the link from here/);
  assert.match(element.querySelector(".share-address").getAttribute("value"), /#.*text=mine/);
  setRun(
    site.runOf({
      model: "tiny",
      text: Array.from({ length: 9000 }, (_, at) =>
        String.fromCodePoint(0x4e00 + ((at * 7919) % 20000)),
      ).join(""),
    }),
  );
  press(element.querySelector(".copy-link"));
  await settled(body, () => /more than/.test(says()));
  assert.equal(element.querySelector(".share-address"), null);

  let loaded = 0;
  Object.assign(globalThis.location, { reload: () => void (loaded += 1) });
  setRun(site.runOf({ model: "other", text: "to read" }));
  fire(element.querySelector(".language-menu"), "change", { target: { value: "de" } });
  await settled(body, () => loaded > 0);
  assert.deepEqual([lasting.get("viz-language"), globalThis.location.search], ["de", "?__lang=de"]);
  assert.match(globalThis.location.hash, /text=to\+read/);
  Object.assign(page, { isMoving: false });

  press(element.querySelector(".projector-button"));
  assert.equal(page.projector, true);
  await settled(body);
  press(element.querySelector(".projector-button"));
  assert.equal(page.projector, false);
  press(element.querySelector(".start"));
  await ready();
  assert.equal(cardState.place, 0);
  press(element.querySelector(".lessons-button"));
  assert.deepEqual([cardState.place, cardState.isChoosing], [null, true]);
  press(element.querySelector(".lessons-button"));
  assert.equal(cardState.isChoosing, false);
});

// ---- terms ----

test("each term of a part is marked once, outside of controls and of what is not ours", async () => {
  const part = place();
  /** @type {(tag: string, text: string, look?: string) => any} */
  const add = (tag, text, look = "") => {
    const element = document.createElement(tag);
    element.setAttribute("class", look);
    element.append(document.createTextNode(text));
    part.append(element);
    return element;
  };
  const all = [
    add("h3", "Heads and heads"),
    add("p", "attention of a head, then attention"),
    add("p", "head", "token"),
    add("span", "attention"),
  ];
  const button = document.createElement("button");
  button.append(document.createTextNode("attention"));
  add("p", "").append(button);
  fire(body, "mounted", { detail: part });
  await settled(body, () => part.querySelectorAll(".term").length > 0);
  assert.deepEqual(texts(part, ".term"), ["Heads", "attention"]);
  assert.deepEqual(
    all.map((element) => element.textContent),
    ["Heads and heads", "attention of a head, then attention", "head", "attention"],
  );
  fire(body, "mounted", { detail: part });
  await settled(body);
  assert.equal(part.querySelectorAll(".term").length, 2);
  // A marked term says what it means while it has the focus.
  /** @type {() => any} */
  const tip = () => body.querySelector("#term-tip");
  const [mark] = part.querySelectorAll(".term");
  assert.ok(isHidden(tip()));
  fire(mark, "focusin");
  await settled(body);
  assert.deepEqual(
    [isHidden(tip()), tip().textContent.trim(), mark.getAttribute("aria-describedby")],
    [false, "head One of several.", "term-tip"],
  );
  fire(mark, "focusout");
  await settled(body);
  assert.deepEqual([isHidden(tip()), mark.hasAttribute("aria-describedby")], [true, false]);
  const glossary = drawn(terms.glossary);
  assert.deepEqual(texts(glossary, "dt"), ["attention", "head"]);
  assert.deepEqual(texts(glossary, "dd"), ["Reading.", "One of several."]);
});

// ---- the focus ----

test("the focus of a control that goes is given to what has its place, near it", async () => {
  /** @type {((entries?: any) => void)[]} */
  const watchers = [];
  const { ResizeObserver } = globalThis;
  Object.assign(globalThis, {
    ResizeObserver: class extends ResizeObserver {
      constructor(/** @type {any} */ follow) {
        super(follow);
        watchers.push(follow);
      }
    },
  });
  const Follows = () => {
    useFocus();
    return null;
  };
  const around = place();
  render(html`<${Follows} />`, around);
  await settled(body);
  /** @type {any} */
  const element = Object.getPrototypeOf(body);
  Object.defineProperty(element, "tabIndex", { configurable: true, get: () => 0 });
  element.checkVisibility = function isVisible() {
    return !this.hasAttribute("hidden");
  };
  const draw = chance(12);
  for (let round = 0; round < 30; round += 1) {
    const part = place();
    const count = draw.whole(1, 6);
    const buttons = Array.from({ length: count }, () =>
      part.appendChild(document.createElement("button")),
    );
    for (const each of buttons) if (draw.is(0.2)) each.setAttribute("aria-disabled", "true");
    const at = draw.whole(0, count - 1);
    buttons[at].focus();
    fire(buttons[at], "focusin");
    const gone = buttons.filter((_, other) => other === at || draw.is(0.3));
    for (const each of gone) each.setAttribute("hidden", "");
    Object.assign(document, { activeElement: body });
    watchers.at(-1)?.();
    await settled(body);
    const left = (/** @type {any[]} */ of) =>
      of.filter((each) => !gone.includes(each) && !each.hasAttribute("aria-disabled"));
    const wanted = left(buttons.slice(at + 1))[0] ?? left(buttons.slice(0, at)).at(-1);
    if (wanted)
      assert.equal(
        buttons.indexOf(/** @type {any} */ (document.activeElement)),
        buttons.indexOf(wanted),
        `${round}`,
      );
    else assert.ok(!buttons.includes(/** @type {any} */ (document.activeElement)), `${round}`);
    part.remove();
  }
  delete element.tabIndex;
  render(null, around);
});

// ---- as the page comes ----

test("parts are drawn before Gradio has laid out the page, and move there together", async () => {
  const look = site.element("first-look");
  /** @type {string[]} */
  const mounts = [];
  /** @type {any[]} */
  const triggered = [];
  const mount =
    (/** @type {string} */ name) =>
    (/** @type {any} */ { element, props, trigger }) => {
      mounts.push(`${name} ${props.value} ${props.more}`);
      const made = document.createElement("b");
      made.addEventListener("click", () => trigger("input", name));
      element.firstElementChild.append(made);
    };
  for (const name of ["one", "two"]) {
    const part = document.createElement("div");
    part.setAttribute("data-part", name);
    part.setAttribute("data-module", "module");
    look.append(part);
  }
  Object.assign(globalThis, {
    gradio_config: {
      components: ["one", "two"].map((name) => ({
        props: { elem_id: name, value: name.toUpperCase(), props: { more: 1 } },
      })),
    },
  });
  first.draw({ module: { mount: { one: mount("one"), two: mount("two") } } });
  assert.deepEqual(mounts, ["one ONE 1", "two TWO 1"]);
  assert.equal(first.isPlaced.value, false);
  body.classList.add("first");
  body.classList.remove("touring");
  assert.equal(first.shows(), true);
  const [early] = look.querySelectorAll("b");
  press(early); // it is told to Gradio once that has come
  const places = ["one", "two"].map(() => {
    const element = place();
    element.append(document.createElement("div"));
    const mounted = {
      element,
      props: /** @type {any} */ ({}),
      trigger: (/** @type {any[]} */ ...event) => triggered.push(event),
    };
    return mounted;
  });
  first.place("one", mount("never"), places[0]);
  assert.equal(places[0].element.querySelector("b"), null);
  first.place("two", mount("never"), places[1]);
  assert.equal(first.isPlaced.value, true);
  assert.deepEqual(
    places.map(({ element }) => element.querySelectorAll("b").length),
    [1, 1],
  );
  assert.equal(places[0].element.querySelector("b"), early);
  await settled(body);
  assert.deepEqual([triggered, places[0].props.value], [[["input", "one"]], "one"]);
  assert.equal(first.shows(), false);
  first.place("three", mount("three"), places[1]);
  assert.equal(mounts.at(-1), "three undefined undefined");
  assert.ok(look.classList.contains("opened"));
});
