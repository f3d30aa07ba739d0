// What of a visit outlives its page: the session, and what was typed or set and not yet run.

import { MOVED, SESSION, VISIT, session, storage } from "../../web/ask.js";
import { effect } from "../../web/preact.js";
import { controls, page, showWaiting } from "../../web/store.js";
import { typed } from "./gradio.js";
import { isOpening, reopen } from "./link.js";
import { BACK, isConnectionLost } from "./presses.js";

const KEPT = "viz-kept"; // in sessionStorage, from an unfinished text until the page is back
const moved = history.state?.[MOVED] ?? null;
let moving = false;

const isUnfinished = () => page.run && controls.text !== page.run.text;
window.onpagehide = () => {
  const lost = isConnectionLost();
  if (lost || (!moving && isUnfinished()))
    storage?.setItem(KEPT, JSON.stringify({ typed: typed(), lost }));
  if (!moving) storage?.setItem(VISIT, session);
  if (!lost && !moving) {
    const headers = { [SESSION]: session };
    fetch("leave", { method: "POST", headers, keepalive: true }).catch(() => {});
  }
};

// Open another address in the same visit, with the contents of the boxes.
/** @type {(address: string) => void} */
export const moveTo = (address) => {
  moving = true;
  const state = { ...history.state, [MOVED]: { session, typed: typed() } };
  history.replaceState(state, "", window.location.pathname + address);
  window.location.reload();
};
if (moved) {
  history.replaceState({ ...history.state, [MOVED]: null }, "");
  reopen(moved.typed);
}

const kept = JSON.parse(storage?.getItem(KEPT) ?? "null");
storage?.removeItem(KEPT);
const [opened] = /** @type {any[]} */ (performance.getEntriesByType("navigation"));
if (kept && (kept.lost || opened?.type === "reload")) reopen(kept.typed);
if (kept?.lost) {
  const stop = effect(() => {
    if (isOpening() || !page.run) return;
    queueMicrotask(() => stop());
    setTimeout(showWaiting, 0, BACK); // after what the run itself says
  });
}
