// Gradio's own controls, from the page's scripts.

import { pause } from "../../web/ask.js";
import { letPressedGo } from "../../web/pointer.js";
import { effect } from "../../web/preact.js";
import { shell, controls, nextPaint, page } from "../../web/store.js";
import { gradioComponents, shows } from "./first_look.js";

const SETTLED_MS = 8000; // that a page is waited for which still moves
const POLL_MS = 50; // of a page that moves

// ---- setting them: an event of the header's, which Gradio answers by itself; see components.py ----

/** @import { PlainValues } from "../../web/types" */
/** @typedef {PlainValues} Changes values, or Gradio's updates, of controls by name */
/** @type {((changes: Changes) => void) | null} */
let send = null; // once the header is on the page
let isSetting = false; // what is to be set meanwhile waits
/** @type {Changes} */
let waiting = {};
const sendWaiting = () => {
  if (!send || isSetting || !Object.keys(waiting).length) return;
  const changes = waiting;
  [waiting, isSetting] = [{}, true];
  send(changes);
};
// Called by Gradio after each change, by a visitor or a script.
/** @type {(name: string, value: unknown) => void} */
export const controlChanged = (name, value) => void (controls[name] = value);
/** @type {(changes: Changes) => void} */
export const setControls = (changes) => {
  for (const [name, change] of Object.entries(changes)) {
    const isUpdate = change?.__type__ === "update";
    if (name in controls && (!isUpdate || "value" in change))
      controls[name] = isUpdate ? change.value : change;
  }
  Object.assign(waiting, changes);
  sendWaiting();
};
/** @type {(how: (changes: Changes) => void) => void} */
export const connectControls = (how) => {
  send = how;
  sendWaiting();
};
// What Gradio sets, in the order of its names.
/** @type {(changes: Changes, names: string[]) => unknown[]} */
export const outputsOf = (changes, names) =>
  names.map((name) => (name in changes ? changes[name] : { __type__: "update" }));
export const controlsSet = () => {
  isSetting = false;
  sendWaiting();
};

// Whether Stop can be pressed; its focus goes to the button that generates.
/** @type {(interactive: boolean) => void} */
export const setStop = (interactive) => {
  if (document.activeElement?.id === "stop") document.getElementById("generate")?.focus();
  setControls({ stop: { __type__: "update", interactive } });
};

export const focusText = () => {
  /** @type {HTMLElement | null} */
  const box = document.querySelector("#text textarea");
  box?.focus();
};

// What the page's boxes and settings hold, by their names in a link, without the list of models.
/** @type {() => PlainValues} */
export const typed = () =>
  Object.fromEntries(Object.entries(controls).filter(([name]) => name !== "model"));

// Whether the batch's button that takes the padding mask away is pressed.
effect(() => {
  const isBare = Boolean(page.batch) && !page.batch.padding_hidden;
  const button = globalThis.document?.getElementById("without-padding");
  if (button) button.ariaPressed = String(isBare);
});

// Whether the model is a translator of several languages, and whether it has a chat template.
effect(() => {
  const classes = globalThis.document?.body.classList;
  classes?.toggle("translates", Boolean(controls.source_language));
  classes?.toggle("chats", Boolean(controls.read_as));
});

// The buttons of the page's tabs by the tabs' names in links; on a narrow screen some are in a menu,
// where Gradio keeps the tabs' order but not their ids.
const TABS = "#right > .tabs > .tab-wrapper";
/** @returns {Map<string, HTMLElement>} */
const tabButtons = () => {
  /** @type {NodeListOf<HTMLElement>} */
  const shown = document.querySelectorAll(`${TABS} [role=tab]`);
  /** @type {NodeListOf<HTMLElement>} */
  const inMenu = document.querySelectorAll(`${TABS} .overflow-dropdown button`);
  const buttons = new Map([...shown].map((tab) => [String(tab.dataset.tabId), tab]));
  const tabs = gradioComponents().filter(({ type }) => type === "tabitem");
  tabs
    .map(({ props }) => props.id)
    .filter((name) => !buttons.has(name))
    .forEach((name, place) => inMenu[place] && buttons.set(name, inMenu[place]));
  return buttons;
};

/** @type {Set<string>} */
const onTheirWay = new Set(); // tabs that were pressed here, of which Gradio has not told yet
// Whether a tab that Gradio tells to be open is wanted: it tells a little later, when another may be on its way.
/** @type {(name: string) => boolean} */
export const isWanted = (name) => {
  if (onTheirWay.delete(name) && name !== page.tabWanted) return false;
  onTheirWay.clear();
  return true;
};
// Open a tab by its name, unless it is open; a server's answer would be the only other way. Returns
// its button.
/** @type {(name: string) => HTMLElement | undefined} */
export const openTab = (name) => {
  page.tabWanted = name; // Gradio may not have laid it out yet
  const button = tabButtons().get(name);
  if (button?.getAttribute("aria-selected") !== "true") {
    letPressedGo(); // a link there may be elsewhere on the other tab: its picture is seen from the top
    if (button) onTheirWay.add(name);
    button?.click();
  }
  return button;
};
shell.openTab = openTab;
shell.setControls = setControls;

// Where the text fills the window, a link to a tab leads down to it, and so does a press on one; the
// text above may still grow. led: whether there is nothing to wait for.
/** @type {(led: boolean) => Promise<void>} */
const leadDown = async (led) => {
  if (document.body.matches(".touring, .typing")) return; // a card stays in sight
  const until = performance.now() + SETTLED_MS;
  let reached = 0;
  await nextPaint(); // of the tab that a link has opened
  while (performance.now() < until) {
    const isCovered = document.querySelector("#first-look:not(.opened)");
    const tabs = isCovered ? null : document.getElementById("right");
    const below = tabs && tabs.getBoundingClientRect().top > window.innerHeight / 2;
    if (tabs && (led ? !below : window.scrollY > 0)) return;
    if (window.scrollY < reached) return; // the visitor has scrolled up meanwhile
    if (below) {
      letPressedGo(); // or it would be led back to where it was pressed
      tabs.scrollIntoView({ block: "start" });
      led = true; // the page may still be too short to lead all the way
      reached = window.scrollY;
    }
    await pause(POLL_MS);
  }
};
/** @type {(led: boolean) => Promise<void>} */
const lead = async (led) => {
  page.isLeading = true;
  await leadDown(led);
  page.isLeading = false;
};
let arrived = false;
export const showTabs = () => {
  if (!arrived) lead(false);
  arrived = true;
};
globalThis.document?.addEventListener("click", ({ target, isTrusted }) => {
  const leads = "#right [role=tab], .to-tab:not(.all-tools)";
  const pressed = /** @type {Element} */ (target).closest(leads);
  if (isTrusted && pressed) lead(true);
});

// ---- the page as it opens; see page.html ----

const IN_TAB = "#right [data-rev]:not(body:not(.first) .journey)"; // Gradio shows another tab a little later
/** @type {(element: Element) => boolean} */
const isInSight = (element) => {
  const { top, bottom, height } = element.getBoundingClientRect();
  return height > 0 && bottom > 0 && top < window.innerHeight;
};
// Whether the open tab is drawn, and all that is in sight.
const isDrawn = () =>
  [...document.querySelectorAll(IN_TAB)].some((part) => part.getClientRects().length) &&
  ![...document.querySelectorAll("#columns [aria-busy=true]")].some(isInSight);
// Show the page once nothing of it moves any more.
export const uncover = async () => {
  const cover = document.querySelector("#first-look.opens");
  const until = performance.now() + SETTLED_MS;
  if (!cover || shows()) return;
  while (page.run && !isDrawn() && performance.now() < until) await pause(POLL_MS);
  cover.classList.replace("opens", "opened");
};
