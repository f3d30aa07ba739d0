// The page's address: its whole state follows the "#", which a browser sends to no server, so
// that a visitor's text enters no server log. Older links have it after the "?", and are
// read too. `apply(state)` shows a state: a link, Back and Forward, an earlier run, a lesson's step.

import { isReloaded } from "../../web/ask.js";
import { fields, lookFields, showFields, shownFields } from "../../web/fields.js";
import { declared } from "../../web/declared.js";
import {
  REQUEST,
  TOO_LONG,
  foreignPart,
  holdsOwn,
  linkOf,
  plainQuery,
  queryOf,
  sameRequest,
  sameSettings,
  stateOf,
} from "../../web/link_text.js";
import { effect } from "../../web/preact.js";
import { shell, page, setRun, showProblem } from "../../web/store.js";
import { asSentence, say } from "../../web/messages.js";
import { setControls, showTabs, uncover } from "./gradio.js";
import { openState, report } from "./opening.js";

const PAUSE_MS = 300;
const HUB = "https://huggingface.co"; // embeds a Space in a page
/** @typedef {Record<string, string>} State the page as one plain object of texts */

/** @typedef {{ state: State | null } & import("./opening.js").How} Wanted state: null if unreadable */
// While a state is being opened the address stays.
export const isOpening = () => page.opening !== null;

// What of the address belongs to the framework.
export const foreign = () => foreignPart(window.location.search.slice(1));
const given = () =>
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

/** @type {(state: State) => State} */
const viewsOf = (state) =>
  Object.fromEntries(
    Object.entries(state).filter(([name]) => ![...REQUEST, "lines"].includes(name)),
  );

// Show a state. The server makes its run and batch where others are shown now. facts: those of a run
// of this visit that is the wanted one; it is shown at once where no setting has to change with it. isHere:
// whether the address leads there already.
/** @type {(state: State, facts?: any, isHere?: boolean) => Promise<void>} */
export const apply = async (state, facts = null, isHere = false) => {
  if (facts && isOfBatch(state) && sameSettings(state, linkOf(page.run))) {
    setControls({ text: facts.text });
    setRun(facts);
  }
  navigate(state, await queryOf(state), facts, isHere);
  begun ||= isHere; // what is written next replaces it
};
// text: of the state; isHere: whether the address says it already.
/** @type {(state: State, text: string | null, facts: any, isHere: boolean) => void} */
const navigate = (state, text, facts, isHere) => {
  // While another state is loading, the answer may yet change the run that is shown.
  if (!isOpening() && page.run && sameRequest(state, linkOf(page.run)) && isOfBatch(state)) {
    if (!isHere && text !== null) pushStep(state, text);
    return report(showFields(viewsOf(state)));
  }
  if (text === null) return showProblem(TOO_LONG);
  if (!isHere) pushStep(state, text);
  return void open({ state, facts });
};
shell.apply = apply;
/** @type {(state: State) => boolean} */
const isOfBatch = ({ lines }) => lines === undefined || lines === page.batch?.link?.lines;
// Another model, with the texts that are in the boxes where they are the visitor's own; how things are drawn
// stays, and so does the open tab. Nothing for the model that is shown. Gradio's list calls it, see
// server/components.py.
/** @type {(model: string) => void} */
export const chooseModel = (model) => {
  if (!page.run || model === page.run.model) return;
  const state = { model, ...lookFields() };
  pushStep({ model, tab: fields.tab }, plainQuery(state));
  open({ state, isChosen: true, tab: fields.tab });
};

// ---- opening ----

const UNREADABLE = asSentence(say("the link cannot be read; it may have been cut off"));

// Of several requests at once (Back, pressed twice) only the last counts. A failure is reported, and
// leaves the address as it is until something is chosen.
/** @type {(wanted: Wanted) => Promise<void>} */
const open = async (wanted) => {
  page.opening = wanted;
  const isWanted = () => page.opening === wanted;
  const views = wanted.state
    ? await openState(wanted.state, wanted, isWanted)
    : report([UNREADABLE]);
  if (!isWanted()) return;
  if (!views) isQuiet = !begun;
  page.opening = null;
  if (views?.tab) showTabs();
};

// ---- the address ----

/** @type {State | null} */
let written = null; // the state that the address says
let begun = false; // the history has a step for a state that is not shown yet
let isQuiet = false; // the next change is no reason to write
let [ticket, heeded] = [0, 0];
let isHeeding = false; // what the address now says is read
let known = window.location.hash; // differs once a visitor has typed another address
/** @type {(state: State) => Promise<void>} */
const write = async (state) => {
  const mine = ++ticket;
  const text = await queryOf(state);
  if (isOpening() || isHeeding || mine !== ticket || window.location.hash !== known) return;
  if (text === null) return;
  const isStep = written !== null && !begun && isStepFrom(written, state);
  written = state;
  begun = false;
  put(text, isStep);
};
// The address follows what is shown.
effect(() => {
  const state = snapshot();
  if (isOpening() || !page.run) return undefined;
  if (isQuiet) return void (isQuiet = false);
  const timer = setTimeout(write, PAUSE_MS, state);
  return () => clearTimeout(timer);
});
// Another run or another tab is a step of the history; a head or a colour is not.
/** @type {(before: State, state: State) => boolean} */
const isStepFrom = (before, state) =>
  !(sameRequest(before, state) && (before.tab ?? "") === (state.tab ?? ""));
// Add the step before the state is shown, so that Back returns here at any time.
/** @type {(state: State, text: string) => void} */
const pushStep = (state, text) => {
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
export const isInHub = () => {
  if (window.parent === window) return false;
  const around = [...(window.location.ancestorOrigins ?? []), document.referrer];
  return around.some((address) => address === HUB || address.startsWith(`${HUB}/`));
};

// Back, Forward, and a link to this page that is typed or chosen in it.
window.onhashchange = async () => {
  [known, begun, isHeeding] = [window.location.hash, false, true];
  const mine = ++heeded;
  const text = given();
  const state = await stateOf(text);
  if (mine !== heeded) return;
  written = { model: first, ...state };
  if (state) navigate(written, text, null, true);
  else open({ state });
  begun = isOpening();
  if (mine === heeded) isHeeding = false;
};

// ---- the address that the page is opened at ----

/** @type {(kept: Record<string, any>) => Promise<void>} */
const openAddress = async (kept) => {
  const text = given();
  const wanted = { state: {}, kept, ...(text === "" && { tab: fields.tab }) };
  page.opening = wanted;
  const state = await stateOf(text);
  if (page.opening === wanted) await open({ ...wanted, state });
};
// The page before lost its server: what its boxes and settings held then.
/** @type {(kept: Record<string, any>) => void} */
export const reopen = (kept) => void openAddress(kept);
// Loaded again, the list of models has those of the visit.
if (given() !== "" || isReloaded) openAddress({});

// The page is seen as its link says, or as it is written where that takes long; see page.html.
effect(() => void (isOpening() || uncover()));
