// The page's address: its whole state follows the "#", which a browser sends to no server, so
// that a visitor's text enters no server log. Older links have it after the "?", and are
// read too. `apply(state)` shows a state: a link, Back and Forward, an earlier run, a lesson's step.

import { isReloaded } from "../../web/ask.js";
import { fields, lookFields, showFields, shownFields } from "../../web/fields.js";
import { declared, oneOf, textsOf } from "../../web/declared.js";
import {
  TOO_LONG,
  foreignPart,
  holdsOwn,
  linkOf,
  partsOf,
  plainQuery,
  queryOf,
  sameRequest,
  sameSettings,
  stateOf,
} from "../../web/link_text.js";
import { effect } from "../../web/preact.js";
import { controls, shell, page, setRun, showProblem, showStatus } from "../../web/store.js";
import { asSentence, say } from "../../web/messages.js";
import { setControls, showTabs, uncover } from "./gradio.js";
import { languagesIn, press, settings as settingsNow, showBatch, showText } from "./presses.js";

const PAUSE_MS = 300;
const HUB = "https://huggingface.co"; // embeds a Space in a page
/** @import { Opening, PlainValues, Run, State } from "../../web/types" */
/** @import { ControlUpdate, ExamplePage, PressLine } from "./types" */

// While a state is being opened the address stays.
export const isOpening = () => page.opening !== null;

// What of the address belongs to the framework.
const foreign = () => foreignPart(window.location.search.slice(1));
const linkHere = () =>
  [window.location.hash.slice(1), window.location.search.slice(1)].find(holdsOwn) ?? "";

// ---- the state ----

const first = declared.controls.model; // the model that the page starts with

// What is shown now, as one plain object of texts.
/** @type {() => State} */
export const snapshot = () => {
  const all = { ...(page.run && linkOf(page.run)), ...page.batch?.link, ...shownFields() };
  const isFirst = all.model === first && Object.keys(all).length === 1;
  return isFirst ? {} : all;
};
export const linkText = () => queryOf(snapshot());

// Show a state. The server makes its run and batch where others are shown now. facts: those of a run
// of this visit that is the wanted one; it is shown at once where no setting has to change with it. isHere:
// whether the address leads there already.
/** @type {(state: State, facts?: Run | null, isHere?: boolean) => void} */
export const apply = (state, facts = null, isHere = false) => {
  if (facts && isOfBatch(state) && sameSettings(state, linkOf(page.run))) {
    setControls({ text: facts.text });
    setRun(facts);
  }
  // While another state is loading, the answer may yet change the run that is shown.
  const isShown =
    !isOpening() && page.run && sameRequest(state, linkOf(page.run)) && isOfBatch(state);
  if (!isShown) return void open({ state, facts, isStep: !isHere });
  if (isHere) entry = null;
  report(showFields(partsOf(state).views));
  entry ??= snapshot();
  const shown = snapshot();
  if (!isWritten(shown)) void write(shown, window.location.hash); // the page may be left at once
};
shell.apply = apply;
/** @type {(state: State) => boolean} */
const isOfBatch = ({ lines, bare }) =>
  lines === undefined || (lines === page.batch?.link.lines && bare === page.batch.link.bare);
// Another model, with the texts that are in the boxes where they are the visitor's own; how things are drawn
// stays, and so does the open tab. Nothing for the model that is shown. Gradio's list calls it, see
// server/page/components.py.
/** @type {(model: string) => void} */
export const chooseModel = (model) => {
  if (!page.run || model === page.run.model) return;
  const state = { model, ...lookFields() };
  open({ state, isChosen: true, tab: fields.tab, isStep: true });
};

// ---- opening: the model's example comes from the server, then the state's own batch and run ----

let takeBack = () => {};
// Say them, until something else is shown.
/** @type {(problems: string[]) => void} */
const report = (problems) => {
  takeBack();
  if (problems.length) takeBack = showProblem(problems.join(" "));
};

const UNREADABLE = asSentence(say("the link cannot be read; it may have been cut off"));
const STORED = say("A stored example, read by this model.");

// Gives the fields that the state has for the views; null where it could not be opened as it is, or another
// state is wanted by now. A part that fails is reported, and the rest is shown.
/** @type {(wanted: Opening) => Promise<State | null | void>} */
const openState = async (wanted) => {
  const { kept = {}, facts, isChosen, tab, isStep } = wanted;
  const isWanted = () => page.opening === wanted;
  const state = wanted.state ?? (await stateOf(linkHere()));
  const address = state && isStep ? await queryOf(state) : "";
  if (!isWanted()) return null;
  if (!state) return report([UNREADABLE]);
  if (address === null) return report([TOO_LONG]);
  if (isStep) put(address, true); // before it is shown: Back returns here at any time
  const parts = partsOf(state);
  /** @type {ExamplePage | undefined} */
  let example;
  /** @type {PlainValues} */
  const boxes = { text: controls.text, lines: controls.lines };
  const which = { model: parts.request.model ?? null, typed: isChosen ? boxes : {} };
  const take = (/** @type {PressLine} */ line) => (example = line.example ?? example);
  const isThere = await press("examples", which, take);
  if (!isThere || !example || !isWanted()) return null;
  const stored = /** @type {ExamplePage} */ (example);
  const problems = [...parts.problems, ...stored.problems];
  const { model } = stored.first;
  const { lines = parts.lines, text = parts.request.text ?? stored.first.text } = stored.own;
  const named = { ...parts.request, model, text };
  const request = requestFor(named, stored, isChosen, problems);
  const typed = Object.entries(controls).filter(
    ([name, now]) => name in boxes && now !== boxes[name],
  );
  const shown = { ...request, lines: lines ?? stored.first.lines, ...kept };
  furnish(stored, { ...shown, ...Object.fromEntries(typed) }); // what was typed meanwhile stays

  let isRefused = false;
  // Whether it was tried: what the server refuses is reported, and the stored one shown instead.
  /** @type {(name: string, data: object, showStored: () => void) => Promise<boolean>} */
  const isTried = async (name, data, showStored) => {
    /** @type {PressLine} */
    let last = {};
    const isComplete = await press(name, data, (line) => (last = line));
    if (!isComplete || !isWanted()) return false;
    if (last.status?.kind === "error") {
      problems.push(last.status.text);
      if (isChosen) problems.push(STORED);
      isRefused = true;
      showStored();
    }
    return true;
  };
  const showStoredBatch = () => showBatch(stored.batch);
  const showStoredRun = () => showText(stored.run);
  if (lines === undefined) showStoredBatch();
  else {
    const batch = { model, lines, bare: parts.bare, ...languagesIn(request) };
    if (!(await isTried("batches", batch, showStoredBatch))) return null;
  }
  const asksForRun = stored.own.text || Object.keys(parts.request).some((name) => name !== "model");
  if (facts) {
    showText(facts);
    showStatus({ kind: "done", text: say("Shown again.") });
  } else if (!asksForRun || isStored(named, stored.run)) {
    showStoredRun();
    showStatus({ kind: "done", text: STORED });
  } else if (!(await isTried("runs", request, showStoredRun))) return null;
  report([...problems, ...showFields(tab === undefined ? parts.views : { ...parts.views, tab })]);
  return isRefused ? null : parts.views;
};
// Whether the model's example is what is asked for.
/** @type {(named: PlainValues, run: { request: PlainValues }) => boolean} */
const isStored = (named, { request }) =>
  request.method ? sameRequest(textsOf(named), textsOf(request)) : named.text === request.text; // nothing was generated
/** @type {(words: ControlUpdate | undefined) => string[] | undefined} */
const choicesOf = (words) => words?.choices?.map(([, value]) => value);
// A request with all settings: those that it names, else those that are set; a problem is added to those.
/** @type {(named: PlainValues, example: ExamplePage, isChosen: boolean | undefined, problems: string[]) => PlainValues} */
const requestFor = (named, { controls: words, first: usual, ...example }, isChosen, problems) => {
  const now = settingsNow();
  if (isChosen && example.lengths.includes(now.max_new_tokens))
    now.max_new_tokens = usual.max_new_tokens; // it was left alone
  /** @type {PlainValues} */
  const request = { ...now, ...named };
  for (const name of declared.settings.filter((setting) => setting in words)) {
    request[name] = usual[name];
    try {
      if (name in named) request[name] = oneOf(name, named[name], choicesOf(words[name]) ?? []);
    } catch (error) {
      problems.push(error.message);
    }
  }
  const { temperature = now.temperature || example.temperature } = named;
  request.temperature = request.method === "greedy" ? 0 : temperature;
  return request;
};
// Set Gradio's controls: their words are the model's, and so is a value where it does not offer the wanted one.
/** @type {(example: ExamplePage, values: PlainValues) => void} */
const furnish = ({ controls: words, first: usual }, values) => {
  /** @type {PlainValues} */
  const changes = { ...words };
  for (const [name, wanted] of Object.entries(values)) {
    const value = choicesOf(words[name])?.includes(wanted) === false ? usual[name] : wanted;
    changes[name] = words[name] ? { ...words[name], value } : value;
  }
  setControls(changes);
};

// Of several requests at once (Back, pressed twice) only the last counts. What could not be opened is
// reported, and the address keeps it until something is chosen.
/** @type {(wanted: Opening) => Promise<void>} */
const open = async (wanted) => {
  page.opening = wanted;
  entry = latest = null;
  const views = await openState(wanted);
  if (page.opening !== wanted) return;
  if (!views) entry = snapshot();
  page.opening = null;
  if (views?.tab && fields.tab !== "journey" && !wanted.isChosen) showTabs(); // it begins with the text
};

// ---- the address ----

// The state at the current entry of the history; null until it is opened.
/** @type {State | null} */
let entry = {};
/** @type {State | null} */
let latest = null; // the one that is to be written there
/** @type {(state: State) => boolean} */
const isWritten = (state) => entry !== null && plainQuery(entry) === plainQuery(state);
// hash: of the address when the state was seen.
/** @type {(state: State, hash: string) => Promise<void>} */
const write = async (state, hash) => {
  latest = state;
  const text = await queryOf(state);
  if (latest !== state || text === null || window.location.hash !== hash) return;
  put(text, entry !== null && isStepFrom(entry, state));
  entry = state;
};
// The address follows what is shown, unless it is another by then: a visitor has typed it. A step is
// written at once, so that Back leaves this step and not the one before.
effect(() => {
  const state = snapshot();
  if (isOpening() || !page.run) return undefined;
  if (isWritten(state)) return undefined;
  if (entry !== null) takeBack();
  const pause = entry !== null && isStepFrom(entry, state) ? 0 : PAUSE_MS;
  const timer = setTimeout(write, pause, state, window.location.hash);
  return () => clearTimeout(timer);
});
// Another run or another tab is a step of the history; a head or a colour is not.
/** @type {(before: State, state: State) => boolean} */
const isStepFrom = (before, state) =>
  !(sameRequest(before, state) && (before.tab ?? "") === (state.tab ?? ""));
/** @type {(text: string, isStep: boolean) => void} */
const put = (text, isStep) => {
  const { pathname, search, hash } = window.location;
  const others = foreign();
  const address = `${others && `?${others}`}${text && `#${text}`}`;
  if (address === search + hash) return;
  history[isStep ? "pushState" : "replaceState"](history.state, "", pathname + address);
  if (isInHub()) window.parent.postMessage({ queryString: "", hash: text && `#${text}` }, HUB);
};
export const isInHub = () => {
  if (window.parent === window) return false;
  const around = [...(window.location.ancestorOrigins ?? []), document.referrer];
  return around.some((address) => address === HUB || address.startsWith(`${HUB}/`));
};

// Back, Forward, and a link to this page that is typed or chosen in it.
window.onhashchange = async () => {
  const text = linkHere();
  const state = await stateOf(text);
  if (text !== linkHere()) return; // another follows
  if (state) apply(state, null, true);
  else open({ state });
};

// Open the address that the page is loaded at. kept: what the boxes and settings of the page before held.
/** @type {(kept: PlainValues) => void} */
export const reopen = (kept) => void open({ kept, ...(linkHere() === "" && { tab: fields.tab }) });
// Loaded again, the list of models has those of the visit.
if (linkHere() !== "" || isReloaded) reopen({});

// The page is seen as its link says, or as it is written where that takes long; see page.html.
effect(() => void (isOpening() || uncover()));
