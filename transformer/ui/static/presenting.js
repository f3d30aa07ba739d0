// A presenter's keys: projected, they leaf through the cards. A remote control sends PageUp and
// PageDown; arrow keys do the same where no control has the focus.

import { page } from "../../web/store.js";
import { cardCount, cardPlace, goToCard } from "./touring.js";

const REMOTE = { PageDown: 1, PageUp: -1 };
const ARROWS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const TYPED = "input, textarea, select, [contenteditable]";

/** @type {(focused: Element | null) => boolean} */
const isControl = (focused) =>
  focused !== null && focused !== document.body && !focused.matches(".card-title, dialog");

// How far a key leafs, 0 for one that is none of these.
/** @type {(key: string, focused: Element | null) => number} */
export const leafing = (key, focused) => {
  if (focused?.matches(TYPED)) return 0;
  return REMOTE[key] ?? (isControl(focused) ? 0 : (ARROWS[key] ?? 0));
};

document.addEventListener("keydown", (event) => {
  const here = cardPlace();
  if (!page.projector || here === null || event.defaultPrevented) return;
  if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  const by = leafing(event.key, document.activeElement);
  if (!by) return;
  event.preventDefault(); // else the page would scroll
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  const to = here + by;
  if (to >= 0 && to < cardCount()) goToCard(to);
});
