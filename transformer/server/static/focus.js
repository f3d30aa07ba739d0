// Where the focus goes as the control that has it disappears: to the control that now has its place, or the nearest one
// after it, else before it, in the smallest part of the page that still has one. A browser would give it to the
// whole page, and Tab would begin at its top.

import { useDocument } from "../../web/part.js";
import { nextPaint } from "../../web/store.js";
import { useLayoutEffect, useMemo, useRef } from "../../web/preact.js";

const CONTROLS = "a[href], button, input, select, summary, textarea, [tabindex]";
// Not a box to type in, which would open a phone's keyboard, nor a term, which would open its tip.
const TAKES =
  "a[href], button, select, summary, input:is([type=checkbox], [type=radio], [type=range]), " +
  "[tabindex]:not(textarea, input, .term)";
const TAB = "[role=tab][aria-selected=true]";

/** @type {(part: Element) => HTMLElement[]} */
const controlsIn = (part) => {
  /** @type {NodeListOf<HTMLElement>} */
  const controls = part.querySelectorAll(CONTROLS);
  return [...controls];
};
/** @type {(part: Element | null) => boolean} */
const isVisible = (part) =>
  Boolean(part?.isConnected && part.checkVisibility({ visibilityProperty: true }));
/** @type {(control: HTMLElement) => boolean} */
const canTake = (control) =>
  control.tabIndex >= 0 &&
  control.matches(TAKES) &&
  !control.matches(":disabled, [aria-disabled=true]") &&
  isVisible(control);

// The parts around a control, from the smallest, {part, at}: how many controls of each come before it.
/** @type {(control: Element) => { part: Element, at: number }[]} */
const placesOf = (control) => {
  const places = [];
  let at = 0;
  for (let node = control; node.parentElement; node = node.parentElement) {
    for (let one = node.previousElementSibling; one; one = one.previousElementSibling)
      at += Number(one.matches(CONTROLS)) + controlsIn(one).length;
    places.push({ part: node.parentElement, at });
    if (node.parentElement.matches(CONTROLS)) at += 1;
  }
  return places;
};
/** @type {(places: { part: Element, at: number }[]) => HTMLElement | null | undefined} */
const nearest = (places) => {
  const left = places.find(({ part }) => part.matches("[role=tabpanel]") && !isVisible(part));
  if (left) return left.part.parentElement?.querySelector(TAB);
  for (const { part, at } of places) {
    const controls = part.isConnected ? controlsIn(part) : [];
    const next = controls.slice(at).find(canTake) ?? controls.slice(0, at).findLast(canTake);
    if (next) return next;
  }
  return null;
};

// Follows the focus on the whole page.
export const useFocus = () => {
  const held = useRef(
    /** @type {{ control: HTMLElement | null, places: { part: Element, at: number }[] }} */ ({
      control: null,
      places: [],
    }),
  );
  const follow = async () => {
    if (isVisible(held.current.control)) return;
    await nextPaint(); // Gradio lays out its tabs unseen
    const { control, places } = held.current;
    const { activeElement: active, body } = document;
    if (!control || isVisible(control) || (active !== body && active !== control)) return;
    nearest(places)?.focus({ preventScroll: true });
  };
  const sizes = useMemo(() => new ResizeObserver(follow), []);
  const hold = (/** @type {HTMLElement | null} */ control) => {
    sizes.disconnect();
    held.current = { control, places: control ? placesOf(control) : [] };
    if (control) sizes.observe(control);
  };
  useLayoutEffect(() => () => sizes.disconnect(), []);
  useDocument(["focusin"], ({ target }) => hold(target));
  // A press beside all controls gives the focus up.
  useDocument(
    ["pointerdown"],
    ({ target }) => held.current.control?.contains(target) || hold(null),
    true,
  );
};
