// The page's address: states that are opened, links, Back and Forward, and what is asked of the server for them.
import assert from "node:assert/strict";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { settled } from "../kit/dom.js";
import * as site from "./server.js";

/** @type {any} */
const { location } = globalThis;
const { answerFrom } = await import("../../transformer/web/ask.js");
const { declared, everyField, textOf, textsOf } = await import("../../transformer/web/declared.js");
const { fields, lookFields } = await import("../../transformer/web/fields.js");
const { controls, page } = await import("../../transformer/web/store.js");
await import("../../transformer/web/selection.js");
answerFrom(site.answers);
const { apply, chooseModel, isOpening, linkText, reopen, snapshot } =
  await import("../../transformer/server/static/link.js");
const { typed } = await import("../../transformer/server/static/gradio.js");

const { body } = globalThis.document;
// A visitor who has scrolled down to the tabs is not led there.
site.element("right");
Object.assign(globalThis, { scrollY: 1 });
const opened = async () => {
  await settled(body, () => !isOpening());
  // What is no step of the history is written a little later.
  const written = JSON.stringify(snapshot());
  await settled(
    body,
    () => JSON.stringify(stateIn(location.hash)) === written || page.status.kind === "error",
  );
};
/** @type {(hash: string) => Record<string, string>} */
const stateIn = (hash) => Object.fromEntries(new URLSearchParams(hash.slice(1)));
/** @type {(state: any) => any} */
const sorted = (state) => Object.fromEntries(Object.entries(state).sort());
const sentRuns = () => site.presses.filter(({ name }) => name === "runs").map(({ data }) => data);

// A legal text of a field of the page or a view, other than the one that it begins with.
/** @type {Record<string, (draw: ReturnType<typeof chance>, field: any) => string>} */
const VALUES = {
  choice: (draw, { options, default: first }) =>
    draw.one(Object.keys(options).filter((name) => name !== first)),
  int: (draw, { least, most, default: first }) => {
    const value = draw.whole(least ?? 0, Math.min(most ?? 99, 2 ** 31 - 1));
    return String(value === first ? value + (value === most ? -1 : 1) : value);
  },
  number: (draw, { least, most }) => String(draw.between(least ?? 0, most ?? 1)),
  bool: (_, { default: first }) => String(!first),
  intlist: (draw) => [0, 1, 2].map((place) => 10 * place + draw.whole(0, 9)).join(","),
  text: (draw) => draw.one(["a", "", "é, ü: %&=+ #", "漢 字"]),
};
// Some of the page's own fields name a place in the run.
/** @type {Record<string, (draw: ReturnType<typeof chance>) => string>} */
const PLACES = {
  site: (/** @type {any} */ draw) =>
    draw.one(["encoder.1.self", "decoder.0.self", "decoder.1.self"]),
  head: (draw) => draw.one(["1", "2"]),
  forward: () => "",
  read: (draw) => draw.one(["0", "5", "encoder.2"]),
  key: () => "",
  tour: () => "",
  lesson: () => "",
};
/** @type {(draw: ReturnType<typeof chance>) => Record<string, string>} */
const drawnFields = (draw) =>
  Object.fromEntries(
    Object.entries(everyField)
      .filter(() => draw.is(0.3))
      .map(([name, field]) => [
        name,
        /** @type {any} */ (PLACES[name] ?? VALUES[field.type])(draw, field),
      ])
      .filter(([, text]) => text !== ""),
  );
/** @type {(draw: ReturnType<typeof chance>) => Record<string, string>} */
const drawnRequest = (draw) => ({
  text: draw.one(["the fox", "one two", " – ", "a&b=c"]),
  ...(draw.is() && { model: "other" }),
  ...(draw.is() && {
    method: "sample",
    temperature: String(draw.whole(1, 20) / 10),
    seed: String(draw.whole(1, 99)),
  }),
  ...(draw.is(0.3) && { max_new_tokens: String(draw.whole(1, 60)) }),
  ...(draw.is(0.3) && {
    interventions: '[{"type":"ablate","stack":"decoder","layer":0,"heads":[1]}]',
  }),
  ...(draw.is(0.3) && { forced_tokens: "4,1" }),
  ...(draw.is(0.3) && { lines: draw.one(["a\nb c", "x"]), ...(draw.is() && { bare: "true" }) }),
});

test("a state that is opened is shown whole, and the address leads to it again", async () => {
  const draw = chance(3);
  for (let round = 0; round < 25; round += 1) {
    const state = { ...drawnRequest(draw), ...drawnFields(draw) };
    site.presses.splice(0);
    apply(state);
    await opened();
    const now = snapshot();
    const says = `${JSON.stringify(state)} became ${JSON.stringify(now)}; ${page.status.text}`;
    const usual = { model: "tiny", ...state };
    for (const [name, text] of Object.entries(usual))
      assert.equal(now[name], text, `${name}: ${says}`);
    const more = Object.keys(now).filter((name) => !(name in usual));
    for (const name of more)
      assert.ok(declared.settings.includes(name) || name in declared.request, `${name}: ${says}`);
    assert.equal(page.status.kind, "done", says);
    assert.deepEqual(sorted(stateIn(location.hash)), sorted(now));
    assert.equal(`#${await linkText()}`, location.hash);
    assert.deepEqual(page.batch.texts, (state.lines ?? page.batch.texts.join("\n")).split("\n"));
    assert.equal(page.batch.padding_hidden, state.bare !== "true");
    // The boxes hold what is shown, and the request has what the state says of it.
    for (const [name, value] of Object.entries(page.run.request))
      if (name in controls) assert.equal(textOf(controls[name]), textOf(value), name);
    assert.equal(
      page.run.request.temperature,
      state.method === "sample" ? Number(state.temperature) : 0,
    );
    site.presses.splice(0);
    apply(snapshot()); // what is shown already asks for nothing
    await opened();
    assert.deepEqual(site.presses, []);
  }
});

test("each other run or tab is a step of the history; Back and Forward show it again", async () => {
  const draw = chance(8);
  site.openAt("/?__theme=dark#text=start");
  /** @type {any} */ (globalThis).onhashchange();
  await opened();
  const states = [sorted(snapshot())];
  for (let round = 0; round < 12; round += 1) {
    const before = snapshot();
    const from = site.entry();
    const isOfSameRun = draw.is();
    const tab = draw.one(["", "masks", "learn"]);
    const state = isOfSameRun ? { ...before } : { ...drawnRequest(draw), ...drawnFields(draw) };
    if (tab) state.tab = tab;
    else delete state.tab;
    apply(state);
    await opened();
    const now = sorted(snapshot());
    const isStep = !isOfSameRun || (before.tab ?? "") !== tab;
    assert.equal(site.entry() - from, Number(isStep), JSON.stringify([before, now]));
    if (isStep) states.push(now);
    else states[states.length - 1] = now;
    fields.scale = draw.one(["linear", "sqrt", "log"]); // how it is drawn is none
    await opened();
    assert.equal(site.entry(), states.length - 1);
    states[states.length - 1] = sorted(snapshot());
    assert.equal(location.search, "?__theme=dark"); // the framework's stays
  }
  for (let place = states.length - 2; place >= 0; place -= 1) {
    site.go(-1);
    await opened();
    assert.deepEqual(sorted(snapshot()), states[place], `back to ${place}`);
  }
  for (let place = 1; place < states.length; place += 1) {
    site.go(1);
    await opened();
    assert.deepEqual([sorted(snapshot()), site.entry()], [states[place], place]);
  }
});

test("of several states that are wanted at once the last is shown", async () => {
  const draw = chance(5);
  for (let round = 0; round < 8; round += 1) {
    let release = () => {};
    const held = draw.one(["examples", "runs", "batches"]);
    site.holds[held] = new Promise((done) => (release = /** @type {any} */ (done)));
    const names = ["one", "two", "three"].slice(0, draw.whole(2, 3));
    for (const name of names) {
      apply({ text: `${name} ${round}`, lines: `of ${name}`, tab: "masks" });
      await new Promise((done) => void setTimeout(done, draw.whole(0, 3)));
    }
    release();
    delete site.holds[held];
    await opened();
    const last = names.at(-1);
    assert.deepEqual(
      [page.run.text, page.batch.texts[0]],
      [`${last} ${round}`, `of ${last}`],
      held,
    );
    assert.equal(stateIn(location.hash).text, `${last} ${round}`);
  }
});

test("a link that cannot be opened says so; what can be shown is shown, and the address keeps it", async () => {
  apply({ text: "before" });
  await opened();
  const { run } = page.run;
  site.type("z=broken");
  await opened();
  assert.match(page.status.text, /cannot be read/);
  assert.deepEqual([page.run.run, location.hash], [run, "#z=broken"]);

  site.refusals.runs = ({ text }) => (text === "refused" ? "That text is refused." : undefined);
  site.type("text=refused&tab=masks&scale=log");
  await opened();
  assert.match(page.status.text, /^That text is refused\./);
  assert.deepEqual(
    [page.run.text, page.run.example, fields.scale],
    ["example of tiny", true, "log"],
  );
  assert.equal(location.hash, "#text=refused&tab=masks&scale=log");
  fields.scale = "linear"; // the visitor goes on from what is shown
  await settled(body, () => location.hash !== "#text=refused&tab=masks&scale=log");
  assert.deepEqual(stateIn(location.hash), { model: "tiny", tab: "masks", scale: "linear" });
  assert.equal(page.status.text, "");
  delete site.refusals.runs;

  site.type("text=on&nothing=1&temperature=hot&scale=cubic&head=7");
  await opened();
  assert.equal(page.run.text, "on");
  for (const says of [
    /'nothing' is unknown/,
    /'temperature' is unknown/,
    /scale must be one of .* got cubic/,
    /head must be .* from 0 to 2; got 7/,
  ])
    assert.match(page.status.text, says);
  site.type("text=on&model=nobody");
  await opened();
  assert.match(page.status.text, /no nobody/);
  assert.equal(page.run.model, "tiny");
  apply({ text: "x".repeat(70_000) });
  await opened();
  assert.match(page.status.text, /more than 6,000 characters/);
});

test("another model keeps the visitor's own texts, tab and look, and what was set", async () => {
  const draw = chance(2);
  for (let round = 0; round < 10; round += 1) {
    apply({ tab: "masks", scale: "log", head: "2", cell: "1,1" });
    await opened();
    assert.equal(page.run.text, "example of tiny");
    const own = draw.is() ? "my own" : undefined;
    const isLeft = draw.is();
    if (own) controls.text = own;
    controls.max_new_tokens = isLeft ? 20 : 33;
    site.models.other = { first: { max_new_tokens: 30 } };
    const step = site.entry();
    chooseModel("other");
    await opened();
    assert.equal(page.run.model, "other");
    assert.equal(page.run.text, own ?? "example of other");
    assert.equal(controls.text, own ?? "example of other");
    assert.equal(controls.max_new_tokens, isLeft ? 30 : 33, "left alone, it is the model's usual");
    assert.equal(page.run.example, !own);
    assert.deepEqual([fields.tab, fields.scale, fields.head, fields.cell], ["masks", "log", 0, ""]);
    assert.ok(!("head" in lookFields()));
    assert.equal(site.entry(), step + 1);
    site.presses.splice(0);
    chooseModel("other"); // it is shown
    assert.deepEqual([site.presses, isOpening()], [[], false]);
  }
  // A text of its own that the model refuses: its example instead, and why.
  site.refusals.runs = () => "Too long for it.";
  apply({});
  await opened();
  controls.text = "my own";
  chooseModel("other");
  await opened();
  assert.match(page.status.text, /^Too long for it\. A stored example/);
  assert.equal(page.run.text, "example of other");
  delete site.refusals.runs;
});

test("what is typed while a state is opened stays in its box", async () => {
  let release = () => {};
  site.holds.examples = new Promise((done) => (release = /** @type {any} */ (done)));
  site.presses.splice(0);
  apply({ text: "wanted", lines: "a\nb" });
  await settled(body, () => site.presses.length > 0);
  controls.text = "typed meanwhile";
  release();
  delete site.holds.examples;
  await opened();
  assert.deepEqual(
    [page.run.text, controls.text, controls.lines],
    ["wanted", "typed meanwhile", "a\nb"],
  );
  reopen({ text: "kept", seed: 9 }); // the page was loaded again
  await opened();
  assert.deepEqual([page.run.text, controls.text, controls.seed], ["wanted", "kept", 9]);
  assert.ok(!("model" in typed()) && typed().text === "kept");
});

test("a run of this visit is shown again at once, unless a setting changes with it", async () => {
  apply({ text: "one" });
  await opened();
  const one = page.run;
  apply({ text: "two" });
  await opened();
  site.presses.splice(0);
  apply(textsOf(one.request), one);
  assert.equal(page.run.run, one.run); // before anything is answered
  await opened();
  assert.deepEqual([site.presses, controls.text], [[], "one"]);
  apply({ ...textsOf(one.request), seed: "5" });
  await opened();
  site.presses.splice(0);
  apply(textsOf(one.request), one); // another seed: the settings change first, no text is written
  await opened();
  assert.deepEqual([page.run.run, controls.seed, sentRuns()], [one.run, one.request.seed, []]);
  assert.deepEqual(
    site.presses.map(({ name }) => name),
    ["examples"],
  );
});

test("an older link has its state after the question mark; the first model's example needs none", async () => {
  site.openAt("/?text=old&__theme=dark&seed=7");
  reopen({});
  await settled(body, () => !isOpening());
  assert.deepEqual([page.run.text, page.run.request.seed], ["old", 7]);
  fields.scale = "log";
  await settled(body, () => stateIn(location.hash).scale === "log");
  assert.deepEqual([stateIn(location.hash).text, location.search], ["old", "?__theme=dark"]);
  apply({});
  await opened();
  assert.deepEqual([snapshot(), location.hash, location.search], [{}, "", "?__theme=dark"]);
  fields.scale = "log";
  await opened();
  assert.deepEqual(snapshot(), { model: "tiny", scale: "log" });
  fields.scale = everyField.scale.default;
  apply({ model: "other" });
  await opened();
  assert.deepEqual(snapshot(), { model: "other" });
});

test("in a Space's frame the outer page learns the address", async () => {
  /** @type {any[]} */
  const told = [];
  const parent = { postMessage: (/** @type {any[]} */ ...message) => told.push(message) };
  const { isInHub } = await import("../../transformer/server/static/link.js");
  const around = {
    own: [],
    hub: ["https://huggingface.co"],
    other: ["https://huggingface.co.example.org"],
  };
  assert.equal(isInHub(), false);
  Object.assign(globalThis, { parent });
  Object.assign(globalThis.document, { referrer: "" });
  for (const [name, ancestorOrigins] of Object.entries(around)) {
    Object.assign(location, { ancestorOrigins });
    assert.equal(isInHub(), name === "hub", name);
  }
  delete location.ancestorOrigins;
  Object.assign(globalThis.document, { referrer: "https://huggingface.co/spaces/a/b" });
  assert.equal(isInHub(), true);
  apply({ text: "in a frame" });
  await opened();
  assert.deepEqual(told.at(-1), [
    { queryString: "", hash: location.hash },
    "https://huggingface.co",
  ]);
  Object.assign(globalThis, { parent: globalThis });
});
