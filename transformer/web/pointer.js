// The pointer: what it points at by having moved, and a pressed control that stays under it.

// ---- hover: what comes under a resting pointer, since the page has moved, is not pointed at ----

let resting = { x: NaN, y: NaN }; // where the pointer was last moved to, or pressed

// Whether the pointer itself has moved onto what it is over.
/** @type {(event: PointerEvent) => boolean} */
export const hasMoved = ({ clientX, clientY }) => clientX !== resting.x || clientY !== resting.y;

// ---- a press leaves its control where it is, whatever grows or shrinks above it ----

const HELD_MS = 15_000; // as long as an answer may take
const FOLLOWED_FRAMES = 60; // after each change of the page, which may be animated
const CONTROLS = "button, summary, label, input, select, [role=tab]";
// What ends it: the visitor goes on by himself.
const LEAVES = ["wheel", "touchmove", "keydown", "pointerdown"];
const topOf = (/** @type {Element} */ element) => element.getBoundingClientRect().top;
const isFixed = (/** @type {Element} */ element) => {
  for (let at = /** @type {Element | null} */ (element); at; at = at.parentElement)
    if (getComputedStyle(at).position === "fixed") return true;
  return false;
};

// Give the document so many px more, if it is too short to be scrolled by them.
const lengthen = (/** @type {number} */ by) => {
  const { scrollHeight } = document.documentElement;
  const needed = Math.ceil(window.scrollY + window.innerHeight + by);
  if (needed > scrollHeight) document.body.style.minHeight = `${needed}px`;
};

const isAtEnd = () =>
  window.scrollY + window.innerHeight >= document.documentElement.scrollHeight - 1;

let letGo = () => {};
// Leave what is pressed now to be moved: the press itself leads elsewhere.
export const letPressedGo = () => letGo();
// And the room that the document was given for what was pressed before.
export const forgetPressed = () => {
  letGo();
  document.body.style.minHeight = "";
};

// Keep an element where it is in the window while the page around it changes. Where the page is scrolled by
// anybody else, it is let go of.
/** @type {(element: Element) => void} */
const hold = (element) => {
  const start = topOf(element);
  let place = start + window.scrollY; // in the document
  let framesLeft = 0; // none while nothing changes: a page at rest draws no frames
  const over = new AbortController();
  const { signal } = over;
  const stop = () => {
    if (signal.aborted) return;
    over.abort();
    observers.forEach((observer) => observer.disconnect());
    document.documentElement.style.overflowAnchor = "";
  };
  const leave = (/** @type {PointerEvent} */ { pointerType, target }) => {
    if (pointerType === "mouse" && !element.contains(/** @type {Node} */ (target))) stop();
  };
  const follow = () => {
    if (signal.aborted || !element.isConnected) return stop();
    const now = topOf(element) + window.scrollY;
    const moved = topOf(element) - start;
    const isScrolled = Math.abs(now - place) < 1 && Math.abs(moved) >= 1;
    if (isScrolled && !(moved > 0 && isAtEnd())) return stop(); // at the end a shorter document has scrolled it
    if (Math.abs(moved) >= 1 && element.getClientRects().length) {
      if (moved > 0) lengthen(moved);
      window.scrollBy({ top: moved, behavior: "instant" });
    }
    place = now;
    framesLeft -= 1;
    if (framesLeft) requestAnimationFrame(follow);
    return undefined;
  };
  const watch = () => {
    if (!framesLeft) requestAnimationFrame(follow);
    framesLeft = FOLLOWED_FRAMES;
  };
  const mutations = new MutationObserver(watch);
  const sizes = new ResizeObserver(watch); // a picture or a font may come without a mutation
  const observers = [mutations, sizes];
  const passive = { capture: true, passive: true, signal };
  letGo = stop;
  document.documentElement.style.overflowAnchor = "none"; // or the browser would scroll by the same once more
  LEAVES.forEach((name) => addEventListener(name, stop, passive));
  addEventListener("pointermove", leave, passive);
  addEventListener("scroll", watch, passive);
  const all = { childList: true, attributes: true, characterData: true };
  mutations.observe(document, { subtree: true, ...all });
  sizes.observe(document.body);
  setTimeout(stop, HELD_MS);
  watch();
};

export const followPointer = () => {
  const note = (/** @type {PointerEvent} */ { clientX: x, clientY: y }) =>
    void (resting = { x, y });
  addEventListener("pointermove", note, { capture: true, passive: true });
  addEventListener(
    "click",
    (event) => {
      const target = /** @type {Element | null} */ (event.target);
      const control = target?.closest?.(CONTROLS);
      if (event.detail === 0 || !control || isFixed(control)) return; // by a key, or where nothing moves it
      if (window.scrollY === 0) document.body.style.minHeight = "";
      letGo();
      hold(control);
    },
    { capture: true },
  );
  addEventListener("pointerdown", note, { capture: true, passive: true });
};
