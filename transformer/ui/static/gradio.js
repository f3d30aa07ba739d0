// What Gradio makes the scripts do: its own controls can be set by a script in no other way than a
// visitor's. (Between its scripts and the server: connection.js; its clock: rest.js.)

import { nextPaint } from "./dom.js";

// Type into a text box of Gradio's, which listens to the events that a visitor's typing makes.
/** @type {(box: HTMLTextAreaElement, text: string) => void} */
export const typeInto = (box, text) => {
  const { set } = /** @type {any} */ (
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value")
  );
  set.call(box, text);
  box.dispatchEvent(new Event("input", { bubbles: true }));
};

// Type into the page's text box what the next run is to read.
/** @type {(text: string) => Promise<void>} */
export const typeText = async (text) => {
  /** @type {HTMLTextAreaElement | null} */
  const box = document.querySelector("#text textarea");
  if (!box || box.value === text) return;
  typeInto(box, text);
  await nextPaint();
};

// The buttons of the page's tabs; on a narrow screen some are in a menu.
const TABS = "#right > .tabs > .tab-wrapper :is([role=tab], .overflow-dropdown button)";
/** @returns {HTMLElement[]} */
export const tabButtons = () =>
  [...document.querySelectorAll(TABS)].map((tab) => /** @type {any} */ (tab));

// Open a tab, unless it is open; a server's answer would be the only other way.
/** @type {(button: any) => void} */
export const openTab = (button) => {
  if (button?.getAttribute("aria-selected") !== "true") button?.click();
};
