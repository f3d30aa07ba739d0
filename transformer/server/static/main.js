// What the page needs before any of its parts: the address, the visit and its runs, and the fields of the
// state that belong to the whole page.

import { isOpening, reopen } from "./link.js";
import "../../web/runs.js";
import { effect, signal, untracked, html, useRef, useState, render } from "../../web/preact.js";
import "../../web/selection.js";
import {
  SESSION,
  VISIT,
  answerFrom,
  hasServer,
  isReload,
  session,
  storage,
  whenIdle,
} from "../../web/ask.js";
import { declared } from "../../web/declared.js";
import { controls, page, setQuery, emit, showWaiting } from "../../web/store.js";
import { bindField, fields, setFields } from "../../web/fields.js";
import { isWanted, openTab, typed } from "./gradio.js";
import { BACK } from "./presses.js";
import { followPointer } from "../../web/pointer.js";
import { asksForServer, isEmbedded, withoutEmbed } from "../../web/link_text.js";
import { say } from "../../web/messages.js";
import { useDocument } from "../../web/part.js";
import { prefetchPlotly } from "../../web/plots.js";
import { arrayOr, storedAnswers } from "../../web/stored_answers.js";
import { isPlaced } from "./first_look.js";
import { useFocus } from "./focus.js";
import { TermTip } from "./terms.js";

/** @import { Question } from "../../web/types" */

followPointer();

// ---- what outlives the page: the session, and what was typed or set and not yet run ----

const UNFINISHED = "viz-kept"; // in sessionStorage, from an unfinished text until the page is back

const isUnfinished = () => page.run && controls.text !== page.run.text;
window.onpagehide = () => {
  const { isLost: lost, isMoving } = page;
  if (lost || isMoving || isUnfinished())
    storage?.setItem(UNFINISHED, JSON.stringify({ typed: typed(), lost }));
  storage?.setItem(VISIT, session);
  if (!lost && !isMoving && hasServer()) {
    const headers = { [SESSION]: session };
    fetch("leave", { method: "POST", headers, keepalive: true }).catch(() => {});
  }
};

// Open another address in the same visit, with the contents of the boxes.
/** @type {(address: string) => void} */
export const moveTo = (address) => {
  page.isMoving = true;
  history.replaceState(history.state, "", window.location.pathname + address);
  window.location.reload();
};

const unfinished = JSON.parse(storage?.getItem(UNFINISHED) ?? "null");
storage?.removeItem(UNFINISHED);
if (unfinished && (unfinished.lost || isReload())) reopen(unfinished.typed);
if (unfinished?.lost) {
  const stop = effect(() => {
    if (isOpening() || !page.run) return;
    queueMicrotask(() => stop());
    setTimeout(showWaiting, 0, BACK); // after what the run itself says
  });
}

// ---- what it asks first is part of the page ----

const firstAnswers = document.getElementById("first-answers")?.textContent ?? "[]";
const stored = storedAnswers(JSON.parse(firstAnswers, (_, value) => arrayOr(value)));
answerFrom(
  Object.fromEntries(
    stored.names.map((name) => [name, (/** @type {Question} */ data) => stored.answer(name, data)]),
  ),
  (name, data) => stored.answer(name, data) !== undefined,
);

// ---- Plotly, and the network in this browser: once the page has opened and nothing else is to be done ----

const LEAST_GB = 4; // of memory
const mayLoadNetwork = () => {
  const { connection, deviceMemory = LEAST_GB } =
    /** @type {Navigator & { connection?: { saveData: boolean }, deviceMemory?: number }} */ (
      navigator
    );
  const isSmall = connection?.saveData || deviceMemory < LEAST_GB;
  return declared.in_browser.length > 0 && !isSmall && !asksForServer(window.location.search);
};
const begin = async () => {
  const network = "engine"; // of the import map
  const { modules } = await import(network);
  modules["browser/page/beside.js"].start();
};
const stopWaiting = effect(() => {
  if (!isPlaced.value || isOpening() || !page.run) return;
  queueMicrotask(() => stopWaiting());
  whenIdle(() => {
    if (hasServer()) prefetchPlotly().catch(() => {});
    if (mayLoadNetwork()) begin().catch(() => {}); // the server answers
  });
});

// ---- another model, or another run ----

// Another model's own example is shown as its opening says; so is the first one of the visit.
effect(() => {
  const { run } = page;
  if (!run) return;
  untracked(() => {
    const { before } = page;
    if (before) fields.cell = ""; // a place in the run that was shown
    if (run.model !== before?.run.model) setFields(run.opening);
  });
});

// ---- the open tab ----

// Gradio shows a tab: by itself as the page opens, later because a visitor opens it; see server/page/layout.py.
/** @type {(name: string) => void} */
export const tabShown = (name) => {
  if (!page.isLaidOut) openTab(page.tabWanted);
  else if (isWanted(name)) fields.tab = name;
  page.isLaidOut = true;
};
effect(() => void openTab(fields.tab));

// ---- how the page looks ----

bindField(
  "projector",
  () => (page.projector ? "1" : null),
  (value) => (page.projector = value === "1"),
);

// The text is above the pictures instead of on their left on narrow screens, projected and embedded.
const embedded = isEmbedded(window.location.search);
const narrow = window.matchMedia("(max-width: 1160px)");
const isNarrow = signal(narrow.matches);
narrow.onchange = () => (isNarrow.value = narrow.matches);
const looks = () => ({
  first: fields.tab === "journey",
  projector: page.projector,
  embedded,
  stacked: embedded || isNarrow.value || page.projector,
});
effect(() => {
  for (const [name, is] of Object.entries(looks())) document.body.classList.toggle(name, is);
});

// ---- inside a course's page: one view or card, at an address with "?embed" ----

const whole = () => {
  const { pathname, search, hash } = window.location;
  return pathname + withoutEmbed(search) + hash;
};
const EmbedLine = () => {
  const [address, set] = useState(whole);
  const follow = () => set(whole());
  if (!embedded) return null;
  const near = { onPointerDown: follow, onFocus: follow };
  return html`<p class="embed-line"><a target="_blank" rel="noopener" href=${address} ...${near}>${say("Open the whole page")}</a></p>`;
};

// ---- overlays ----

// Escape closes overlays; only where there is none, it clears the selection.
const OVERLAYS = "dialog[open], :popover-open, .term-tip:not([hidden]), input[aria-expanded=true]";
const Over = () => {
  const isOver = useRef(false);
  const look = () => (isOver.current = document.querySelector(OVERLAYS) !== null);
  const letGo = (/** @type {KeyboardEvent} */ { key }) => {
    if (key !== "Escape" || isOver.current) return;
    emit("escape");
    setQuery(null);
  };
  useDocument(["keydown"], look, true); // before anything is closed
  useDocument(["keydown"], letGo);
  useFocus();
  return html`<${TermTip} /><${EmbedLine} />`;
};
render(html`<${Over} />`, document.body.appendChild(document.createElement("div")));

const follow = () => (page.dark = document.body.classList.contains("dark"));
new MutationObserver(follow).observe(document.body, { attributeFilter: ["class"] });
follow();
