// Explain terms in the page's own text on hover, focus and touch.
// The page's head contains the glossary (transformer/messages/glossary).

import { useDocument, useEvent, mounted } from "../../web/part.js";
import { computed, html, useLayoutEffect, useRef, useState, standIn } from "../../web/preact.js";
import { LANGUAGE, whenIdle } from "../../web/ask.js";
import { say } from "../../web/messages.js";

/** @typedef {{ words: string[], says: string, other?: string[] }} GlossaryEntry */
/** @typedef {{ at: number, end: number, term: string }} TermInText a term in a text */

const source = globalThis.document?.getElementById("glossary");
/** @type {Record<string, GlossaryEntry>} */
export const glossary = source ? JSON.parse(source.textContent) : {};

/** @type {Map<string, string | null>} */
const termOf = new Map(); // by a word in small letters; null: it only looks like one
for (const [term, { words, other }] of Object.entries(glossary)) {
  for (const word of other ?? []) termOf.set(word.toLowerCase(), null);
  for (const word of words) termOf.set(word.toLowerCase(), term);
}
const longestFirst = [...termOf.keys()].sort((a, b) => b.length - a.length);
const LETTER = "\\p{Script=Latin}";
// Made when it is first needed: the page opens some milliseconds sooner.
const pattern = computed(
  () => new RegExp(`(?<![${LETTER}[])(?:${longestFirst.join("|")})(?!${LETTER})`, "giu"),
);

// The terms in a text, in their order.
/** @type {(text: string) => TermInText[]} */
export const termsIn = (text) => {
  /** @type {TermInText[]} */
  const found = [];
  for (const match of termOf.size ? text.matchAll(pattern.value) : []) {
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
  "bdi, code, svg, textarea, input, .token, .sentence, .switch-off, .glossary, #chips, #model, #hypotheses";

// A component that changes a text knows the one node that it made: what was put behind it goes then.
// head: what was left of it.
/** @type {WeakMap<Node, { whole: string, head: string, added: ChildNode[] }>} */
const split = new WeakMap();
/** @type {(records: MutationRecord[]) => void} */
const follow = (records) => {
  for (const { type, target, removedNodes } of records) {
    const around = type === "childList" ? [...target.childNodes, ...removedNodes] : [target];
    for (const text of around) {
      const { whole, head, added } = split.get(text) ?? {};
      if (!added || standIn(text)) continue; // of a translated text all is as it was
      split.delete(text);
      for (const one of added) (standIn(one) ?? one).remove();
      if (type === "childList" && text.nodeValue === head) text.nodeValue = whole ?? "";
    }
  }
};
const changes = globalThis.MutationObserver && new MutationObserver(follow);

/** @type {(text: Text, seen: Set<string | null | undefined>) => void} */
const markIn = (text, seen) => {
  const whole = text.data;
  /** @type {ChildNode[]} */
  const added = [];
  let rest = text;
  let gone = 0; // characters of the text before `rest`
  for (const { at, end, term } of termsIn(text.data)) {
    if (seen.has(term)) continue;
    seen.add(term);
    const word = rest.splitText(at - gone);
    rest = word.splitText(end - at);
    gone = end;
    const mark = document.createElement("dfn");
    Object.assign(mark, { className: "term", textContent: word.data, tabIndex: 0 });
    word.replaceWith(mark);
    added.push(mark, rest);
  }
  if (!added.length) return;
  split.set(text, { whole, head: text.data, added });
  const watched = { childList: true, characterData: true, subtree: true };
  changes.observe(/** @type {Node} */ (text.parentNode), watched);
};
/** @type {(root: Element) => Set<string | null | undefined>} */
const markedIn = (root) => {
  const marked = [...root.querySelectorAll(".term")];
  return new Set(marked.map(({ textContent }) => termOf.get(textContent.toLowerCase())));
};
/** @type {(root: Element) => Text[]} */
const textsIn = (root) => {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, (node) => {
    const around = node.parentElement;
    const isOurs = around?.closest(MARKED) && !around.closest(`${NOT_OURS}, ${ACTS}, .term`);
    // In a flex box the pieces of a text lose the spaces between them.
    const isWhole = around && isOurs && !getComputedStyle(around).display.includes("flex");
    return isWhole ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT;
  });
  /** @type {Text[]} */
  const all = [];
  while (texts.nextNode()) all.push(/** @type {Text} */ (texts.currentNode));
  return all;
};
// Marks wait until the page has nothing else to do: as it opens they would take a tenth of the time.
/** @type {Set<Element>} */
const waiting = new Set();
const markWaiting = () => {
  follow(changes.takeRecords());
  const roots = [...waiting];
  waiting.clear();
  const texts = roots.map(textsIn); // of all, before anything changes how they look
  roots.forEach((root, place) => {
    const seen = markedIn(root);
    for (const text of texts[place] ?? [])
      if (!text.parentElement?.closest(".term")) markIn(text, seen);
  });
  changes.takeRecords(); // of the marks themselves
};
/** @type {(root: Element) => void} */
const markTerms = (root) => {
  if (!waiting.size) whenIdle(markWaiting);
  waiting.add(root);
};

// ---- the tip ----

const REST_MS = 300; // for which the pointer rests on a word
const GAP_PX = 6;
const ID = "term-tip";

/** @type {(x: number, y: number) => [Node | null, number]} */
const caretAt = (x, y) => {
  const caret = document.caretPositionFromPoint?.(x, y);
  if (caret) return [caret.offsetNode, caret.offset];
  const range = document.caretRangeFromPoint?.(x, y);
  return range ? [range.startContainer, range.startOffset] : [null, 0];
};
/** @typedef {{ term: string, box: DOMRect, on?: HTMLElement }} Tip a term at a place; on: the element that it describes */
/** @type {(box: DOMRect, pointer: PointerEvent) => boolean} */
const holds = ({ left, right, top, bottom }, { clientX: x, clientY: y }) =>
  x >= left && x <= right && y >= top - GAP_PX && y <= bottom + GAP_PX;
// The term under the pointer, {term, box}; but: a selector of elements to skip.
/** @type {(event: PointerEvent, but: string) => Tip | null} */
const termAt = (event, but) => {
  const [text, offset] = caretAt(event.clientX, event.clientY);
  if (!(text instanceof Text) || text.parentElement?.closest(but)) return null;
  const found = termsIn(text.data).find(({ at, end }) => at <= offset && offset <= end);
  if (!found) return null;
  const range = document.createRange();
  range.setStart(text, found.at);
  range.setEnd(text, found.end);
  const box = [...range.getClientRects()].find((one) => holds(one, event));
  return box ? { term: found.term, box } : null;
};
// A marked term, or a field by its label, {term, box, on}.
/** @type {(event: { target: HTMLElement }) => Tip | null} */
const termOn = ({ target }) => {
  const field = target.matches("input, select") ? target.closest("label") : null;
  const named = target.matches(".term") ? target : field;
  const [found] = termsIn(named?.textContent ?? "");
  return named && found
    ? { term: found.term, box: named.getBoundingClientRect(), on: target }
    : null;
};

// Marks the terms of each part of the page as it comes, and tells what they mean.
export const TermTip = () => {
  /** @type {{ current: HTMLElement }} */
  const tip = useRef(null);
  const timer = useRef(0);
  const pressed = useRef(/** @type {Element | null} */ (null)); // a control, which no tip covers until it is left
  const [shown, setShown] = useState(/** @type {Tip | null} */ (null));
  const show = (/** @type {Tip | null} */ found) => {
    clearTimeout(timer.current);
    setShown(found);
  };
  const hide = () => show(null);
  useLayoutEffect(() => {
    if (!shown) return undefined;
    const { width, height } = tip.current.getBoundingClientRect();
    const { top, bottom, left } = shown.box;
    const above = top - GAP_PX - height; // what a control opens is below it
    tip.current.style.top = `${above < 0 ? bottom + GAP_PX : above}px`;
    tip.current.style.left = `${Math.max(GAP_PX, Math.min(left, window.innerWidth - GAP_PX - width))}px`;
    shown.on?.setAttribute("aria-describedby", ID);
    return () => shown.on?.removeAttribute("aria-describedby");
  }, [shown]);

  useDocument(["mounted"], ({ detail }) => markTerms(detail));
  useEvent("painted", markTerms);
  useDocument(["pointerdown"], ({ target }) => {
    pressed.current = target.closest(ACTS);
    if (pressed.current) hide();
  });
  useDocument(["pointermove"], (event) => {
    if (event.pointerType === "touch" || pressed.current?.contains(event.target)) return;
    pressed.current = null;
    const isLeft = shown && !shown.on && !holds(shown.box, event);
    if (isLeft && !tip.current.contains(event.target)) hide();
    clearTimeout(timer.current);
    if (!shown) timer.current = window.setTimeout(() => show(termAt(event, NOT_OURS)), REST_MS);
  });
  useDocument(
    ["pointerup"],
    (event) => event.pointerType === "touch" && show(termAt(event, `${NOT_OURS}, ${ACTS}`)),
  );
  useDocument(["focusin"], (event) => pressed.current || show(termOn(event)));
  useDocument(["focusout"], hide);
  useDocument(["scroll"], hide, true);
  useDocument(["keydown"], ({ key }) => key === "Escape" && hide());
  const { words = [""], says = "" } = shown ? glossary[shown.term] : {};
  return html`<div class="term-tip" id=${ID} role="tooltip" hidden=${!shown} ref=${tip}>
    <b>${words[0]}</b> ${says}
  </div>`;
};

// ---- every term with its sentence, by the alphabet ----

const { compare } = new Intl.Collator(LANGUAGE);
const entries = Object.values(glossary);
entries.sort(({ words: [a] }, { words: [b] }) => compare(a, b));
/** @param {{ words: string[], says: string }} term */
const entry = ({ words, says }) => html`<div><dt>${words[0]}</dt><dd>${says}</dd></div>`;

const Glossary = () => html`<details class="glossary">
  <summary>${say("Technical terms")}</summary>
  <dl class="glossary-list">${entries.map(entry)}</dl>
</details>`;
export const mount = { glossary: mounted(Glossary) };
