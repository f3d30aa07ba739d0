// What a term of the field means, where it stands in the page's own words: on hover, focus and touch.
// The sentences are the glossary's (transformer/messages/glossary), which stand in the page's head.

import { el } from "./dom.js";

/** @typedef {{ words: string[], says: string, other?: string[] }} Entry */
/** @typedef {{ at: number, end: number, term: string }} Found where a term stands in a text */

const source = globalThis.document?.getElementById("glossary");
/** @type {Record<string, Entry>} */
export const glossary = source ? JSON.parse(source.textContent) : {};

/** @type {Map<string, string | null>} */
const termOf = new Map(); // by a word in small letters; null: it only looks like one
for (const [term, { words, other }] of Object.entries(glossary)) {
  for (const word of other ?? []) termOf.set(word.toLowerCase(), null);
  for (const word of words) termOf.set(word.toLowerCase(), term);
}
const longestFirst = [...termOf.keys()].sort((a, b) => b.length - a.length);
const LETTER = "\\p{Script=Latin}";
const PATTERN = new RegExp(`(?<!${LETTER})(?:${longestFirst.join("|")})(?!${LETTER})`, "giu");

// The terms in a text, in their order.
/** @type {(text: string) => Found[]} */
export const termsIn = (text) => {
  const found = [];
  for (const match of termOf.size ? text.matchAll(PATTERN) : []) {
    const term = termOf.get(match[0].toLowerCase());
    if (term) found.push({ at: match.index, end: match.index + match[0].length, term });
  }
  return found;
};

// ---- marks: the first of each term in a component's headings and explanations ----

const MARKED = "h2, h3, h4, p, legend, li, dt, dd, th";
const ACTS = "button, a, label, summary, input, select, textarea";
// Of visitors and models, and of code.
const NOT_OURS =
  "bdi, code, svg, textarea, input, .token, .sentence, .glossary, #chips, #model, #hypotheses";

// A component that changes a text knows the one node that it made: what was put behind it goes then.
/** @type {WeakMap<Node, { whole: string, added: ChildNode[] }>} */
const split = new WeakMap();
/** @type {(records: MutationRecord[]) => void} */
const follow = (records) => {
  for (const { type, target, removedNodes } of records) {
    const around = type === "childList" ? [...target.childNodes, ...removedNodes] : [target];
    for (const text of around) {
      const { whole, added } = split.get(text) ?? {};
      if (!added) continue;
      split.delete(text);
      for (const one of added) one.remove();
      if (type === "childList") text.nodeValue = whole ?? "";
    }
  }
};
const changes = globalThis.MutationObserver && new MutationObserver(follow);

/** @type {(text: Text, seen: Set<string>) => void} */
const markIn = (text, seen) => {
  const whole = text.data;
  const added = [];
  let rest = text;
  let gone = 0; // characters of the text before `rest`
  for (const { at, end, term } of termsIn(text.data)) {
    if (seen.has(term)) continue;
    seen.add(term);
    const word = rest.splitText(at - gone);
    rest = word.splitText(end - at);
    gone = end;
    const mark = el("dfn", "term", word.data);
    mark.tabIndex = 0;
    word.replaceWith(mark);
    added.push(mark, rest);
  }
  if (!added.length) return;
  split.set(text, { whole, added });
  const watched = { childList: true, characterData: true, subtree: true };
  changes.observe(/** @type {Node} */ (text.parentNode), watched);
};
/** @type {(root: Element) => void} */
export const markTerms = (root) => {
  const seen = new Set();
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, (node) => {
    const around = node.parentElement;
    const is = around?.closest(MARKED) && !around.closest(`${NOT_OURS}, ${ACTS}, .term`);
    return is ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT;
  });
  const all = [];
  while (texts.nextNode()) all.push(/** @type {Text} */ (texts.currentNode));
  follow(changes.takeRecords());
  for (const text of all) markIn(text, seen);
  changes.takeRecords(); // of the marks themselves
};

// ---- the tip ----

const REST_MS = 300; // for which the pointer rests on a word
const GAP_PX = 6;
const ID = "term-tip";
/** @type {any} */
let tip = null;
/** @type {{ left: number, right: number, top: number, bottom: number } | null} */
let shownAt = null;
/** @type {Element | null} */
let described = null;
let timer = 0;

const hide = () => {
  clearTimeout(timer);
  described?.removeAttribute("aria-describedby");
  [shownAt, described] = [null, null];
  if (tip) tip.hidden = true;
};
/** @type {(term: string, box: DOMRect, on?: Element | null) => void} */
const show = (term, box, on = null) => {
  hide();
  if (!tip) {
    tip = Object.assign(el("div", "term-tip"), { id: ID, role: "tooltip" });
    document.body.append(tip);
  }
  const { words, says } = glossary[term];
  tip.replaceChildren(el("b", "", words[0]), ` ${says}`);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const below = box.bottom + GAP_PX;
  const top = below + height > window.innerHeight ? box.top - GAP_PX - height : below;
  const left = Math.max(GAP_PX, Math.min(box.left, window.innerWidth - GAP_PX - width));
  Object.assign(tip.style, { left: `${left}px`, top: `${top}px` });
  [shownAt, described] = [box, on];
  on?.setAttribute("aria-describedby", ID);
};

/** @type {(x: number, y: number) => [Node | null, number]} */
const caretAt = (x, y) => {
  const caret = document.caretPositionFromPoint?.(x, y);
  if (caret) return [caret.offsetNode, caret.offset];
  const range = document.caretRangeFromPoint?.(x, y);
  return range ? [range.startContainer, range.startOffset] : [null, 0];
};
/** @type {(box: { left: number, right: number, top: number, bottom: number }, x: number, y: number) => boolean} */
const holds = ({ left, right, top, bottom }, x, y) =>
  x >= left && x <= right && y >= top - GAP_PX && y <= bottom + GAP_PX;
/** @type {(x: number, y: number, but: string) => void} */
const showAt = (x, y, but) => {
  const [text, offset] = caretAt(x, y);
  if (!(text instanceof Text) || text.parentElement?.closest(but)) return;
  const found = termsIn(text.data).find(({ at, end }) => at <= offset && offset <= end);
  if (!found) return;
  const range = document.createRange();
  range.setStart(text, found.at);
  range.setEnd(text, found.end);
  const box = [...range.getClientRects()].find((one) => holds(one, x, y));
  if (box) show(found.term, box);
};

/** @type {(event: PointerEvent) => void} */
const point = ({ clientX: x, clientY: y, pointerType, target }) => {
  if (pointerType === "touch") return;
  if (shownAt && !described && !holds(shownAt, x, y) && !tip.contains(target)) hide();
  clearTimeout(timer);
  if (!shownAt) timer = window.setTimeout(() => showAt(x, y, NOT_OURS), REST_MS);
};
/** @type {(event: PointerEvent) => void} */
const touch = ({ clientX, clientY, pointerType }) => {
  if (pointerType !== "touch") return;
  hide();
  showAt(clientX, clientY, `${NOT_OURS}, ${ACTS}`);
};
// A marked term; or a field, by its label.
/** @type {(event: FocusEvent) => void} */
const focus = ({ target }) => {
  if (!(target instanceof HTMLElement)) return;
  const field = target.matches("input, select") ? target.closest("label") : null;
  const named = target.matches(".term") ? target : field;
  const [found] = termsIn(named?.textContent ?? "");
  if (named && found) show(found.term, named.getBoundingClientRect(), target);
};

document.addEventListener("pointermove", point, { passive: true });
document.addEventListener("pointerup", touch);
document.addEventListener("focusin", focus);
document.addEventListener("focusout", hide);
document.addEventListener("scroll", hide, { passive: true, capture: true });
document.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
document.addEventListener("mounted", (event) =>
  markTerms(/** @type {CustomEvent} */ (event).detail),
);
