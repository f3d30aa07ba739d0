// The page's address: its whole state stands behind the "#", which a browser sends to no server, so
// that what a visitor typed comes into nobody's log. Links of before have it behind the "?", and are
// read too. `apply(state)` shows a state: a link, Back and Forward, a run of before, a lesson's step.

import { BATCH, forgetWaiting, REQUEST, showFields, shownFields } from "./fields.js";
import { foreignPart, holdsOwn, plainQuery, queryOf, stateOf, TOO_LONG } from "./link_text.js";
import { emit, on, page, showProblem } from "../../web/store.js";
import { typeText } from "./gradio.js";

const PAUSE_MS = 300;
const WAIT_MS = 60_000; // the answer is there, the run that it names is on its way
const SETTLED_MS = 3000;
const HUB = "https://huggingface.co"; // shows a Space inside a page of its own
/** @typedef {Record<string, string>} State the page as one plain object of texts */

/** @type {State} */
let unseen = {}; // the batch that an opened link asks for, until it stands on the page
/** @type {any} */
let first = null; // the model that the page starts with
let [timer, ticket] = [0, 0];
/** @type {(wanted: { query: string, kept: object, run: string | null, reads?: boolean }) => void} */
let request = () => {}; // asks the server for a state, see ui/open_link.py; set by share.js
/** @type {{ text: string } | null} */
let asked = null; // the {text} that the server is asked for; while it is, the address stays

// What of the address belongs to the framework.
export const foreign = () => foreignPart(window.location.search.slice(1));
const given = () =>
  [window.location.hash.slice(1), window.location.search.slice(1)].find(holdsOwn) ?? "";

// ---- the state ----

// What is shown now, as one plain object of texts.
/** @type {() => State} */
export const snapshot = () => {
  const all = { ...page.run?.link, ...(page.batch?.link ?? unseen), ...shownFields() };
  return Object.keys(all).length === 1 && all.model === first ? {} : all;
};
export const linkText = () => queryOf(snapshot());

/** @type {(state: State, names: string[]) => State} */
const part = (state, names) =>
  Object.fromEntries(Object.entries(state).filter(([name]) => names.includes(name)));
/** @type {(names: string[], ...states: State[]) => boolean} */
const sameFields = (names, ...states) => {
  const [left, right] = states.map((state) => part({ model: first, ...state }, names));
  return plainQuery(sorted(left)) === plainQuery(sorted(right));
};
/** @type {(a: State, b: State) => boolean} */
const sameRequest = (a, b) => sameFields(REQUEST, a, b);
const SETTINGS = REQUEST.filter(
  (name) => !["text", "taken", "forced_tokens", "alter"].includes(name),
);
/** @type {(a: State, b: State) => boolean} */
const sameSettings = (a, b) => sameFields(SETTINGS, a, b);
/** @type {(state: State) => State} */
const sorted = (state) => Object.fromEntries(Object.entries(state).sort());

// Show a state. The server makes its run and batch where others are shown now. facts: those of a run
// of this visit that is the wanted one; it is shown at once where no setting has to change with it.
/** @type {(state: State, facts?: any) => Promise<void>} */
export const apply = (state, facts = null) => seek(state, facts, false);
// isHere: whether the address says it already.
/** @type {(state: State, facts: any, isHere: boolean) => Promise<void>} */
const seek = async (state, facts, isHere) => {
  const views = Object.fromEntries(
    Object.entries(state).filter(([name]) => ![...REQUEST, ...BATCH].includes(name)),
  );
  const batch = state.lines === undefined || state.lines === page.batch?.link?.lines;
  if (facts && batch && sameSettings(state, page.run.link)) {
    await typeText(facts.text);
    emit("show", facts);
  }
  const text = await queryOf(state);
  // While the server is asked for another state, its answer may yet change the run that is shown.
  if (!asked && page.run && sameRequest(state, page.run.link) && batch) {
    if (!isHere && text !== null) begin(state, text);
    tell(showFields(views));
    return later();
  }
  if (text === null) return showProblem(TOO_LONG);
  asked = { text };
  if (isHere) begun = true;
  else begin(state, text);
  return request({ query: text, kept: {}, run: facts?.run ?? null });
};
const tell = (problems) => problems.length && showProblem(problems.join(" "));

// Another model, with the texts that stand in the boxes where they are the visitor's own; how things
// are drawn stays, and so does the tab: one that is opened meanwhile stays open. Nothing for the model
// that is shown.
const PLACES = [
  "tab", "site", "head", "token", "cell", "row", "mask_site", "mask_head", "without", "stack",
  "dimensions",
]; // prettier-ignore
document.addEventListener("model", (event) => {
  const { model, ...texts } = /** @type {CustomEvent} */ (event).detail;
  if (!page.run || model === page.run.model) return;
  const views = Object.entries(shownFields()).filter(([name]) => !PLACES.includes(name));
  const query = plainQuery({ model, ...Object.fromEntries(views) });
  asked = { text: query };
  begin({ model }, query);
  request({ query, kept: texts, run: null, reads: true });
});

// How the server is asked. What the page was opened with is asked for now, as it stands: the server
// says what is wrong with it.
export const setRequest = (ask) => {
  request = ask;
  if (asked) request({ query: asked.text, kept: reopened ?? {}, run: null });
};

// The server has done its part: what it says (see ui/open_link.py).
export const opened = async ({ query, view, problems, run, batch, lines }) => {
  if (asked?.text !== query) return; // another state was asked for meanwhile
  const shown = () =>
    !run || (page.run?.run === run && (!page.batch || page.batch.batch === batch));
  const mine = asked;
  const until = performance.now() + WAIT_MS;
  const before = page.run?.run; // the visitor may go on to something else
  const waits = () => !shown() && (!before || [before, run].includes(page.run?.run));
  while (waits() && performance.now() < until) await new Promise((done) => setTimeout(done, 20));
  if (asked !== mine) return; // another state was asked for meanwhile
  asked = null;
  if (shown() && run) unseen = lines;
  tell([...problems, ...(shown() && run ? showFields(view) : [])]);
  if (view.tab) showTabs();
  later();
};

// Where the text fills the window, a link to a tab leads down to it; the text above may still grow.
let arrived = false;
const showTabs = async () => {
  if (arrived) return;
  arrived = true;
  const until = performance.now() + SETTLED_MS;
  while (window.scrollY === 0 && performance.now() < until) {
    const tabs = document.getElementById("right");
    const below = tabs && tabs.getBoundingClientRect().top > window.innerHeight / 2;
    if (below) tabs.scrollIntoView({ block: "start" });
    await new Promise((done) => setTimeout(done, 50));
  }
};

// ---- the address ----

/** @type {State | null} */
let written = null; // the state that the address says
let begun = false; // a step of the history stands there for what is not shown yet
let known = window.location.hash; // another one was typed, and is heard of as soon as that is told
const write = async () => {
  if (asked) return;
  const mine = ++ticket;
  const state = snapshot();
  const text = await queryOf(state);
  if (asked || mine !== ticket || text === null || window.location.hash !== known) return;
  const isStep = written !== null && !begun && isStepFrom(written, state);
  written = state;
  begun = false;
  put(text, isStep);
};
// Another run or another tab is a step of the history; a head or a colour is not.
/** @type {(before: State, state: State) => boolean} */
const isStepFrom = (before, state) =>
  !(sameRequest(before, state) && (before.tab ?? "") === (state.tab ?? ""));
// What is asked for is a step before it is shown, so that Back leads from there to here at any time.
/** @type {(state: State, text: string) => void} */
const begin = (state, text) => {
  if (written && !isStepFrom(written, state)) return;
  ticket += 1; // what is about to be written is of the state before
  put(text, !begun);
  begun = true;
};
/** @type {(text: string, isStep: boolean) => void} */
const put = (text, isStep) => {
  const { pathname, search, hash } = window.location;
  const others = foreign();
  const address = `${others && `?${others}`}${text && `#${text}`}`;
  if (address === search + hash) return;
  history[isStep ? "pushState" : "replaceState"](history.state, "", pathname + address);
  known = window.location.hash;
  if (isInHub()) window.parent.postMessage({ queryString: "", hash: text && `#${text}` }, HUB);
};
const later = () => {
  clearTimeout(timer);
  timer = window.setTimeout(write, PAUSE_MS);
};
export const isInHub = () => {
  if (window.parent === window) return false;
  const around = [...(window.location.ancestorOrigins ?? []), document.referrer];
  return around.some((address) => address === HUB || address.startsWith(`${HUB}/`));
};

// Back, Forward, and a link to this page that is typed or chosen in it.
window.addEventListener("hashchange", async () => {
  known = window.location.hash;
  begun = false;
  const text = given();
  const state = await stateOf(text);
  written = { model: first, ...state };
  if (state) return seek({ model: first, ...state }, null, true);
  asked = { text };
  begun = true;
  return request({ query: text, kept: {}, run: null });
});

// ---- opening ----

/** @type {object | null} */
let reopened = null;
// The page before lost its server: what stood in its boxes and settings then.
export const reopen = (typed) => {
  reopened = typed;
  asked ??= { text: "" };
};
if (given() !== "") asked = { text: given() };
export const isOpening = () => asked !== null;

on("run", () => {
  first ??= page.run.model;
  if (!asked) forgetWaiting();
  if (!asked && page.run.model !== unseenOf) unseen = {};
  unseenOf = page.run.model;
  later();
});
/** @type {string | null} */
let unseenOf = null; // the model of the batch that is not seen yet
for (const name of ["batch", "head", "query"]) on(name, later);
on("problem", () => {
  asked = null; // the address that the page was opened with stays until something is chosen
  if (begun) later();
});
for (const name of ["pointerup", "keyup", "change"]) document.addEventListener(name, later, true);
