// Whether a part of the page is in sight, and its width.

import { batch } from "./preact.js";

const NEAR_PX = 600; // parts this close to the viewport are drawn
const LEAST_PX = 4; // changes of width below this are ignored

// What observers would say a frame later. The parts that are mounted together are all measured before
// one changes: else each would have the page laid out again.
/** @type {Set<() => () => void>} */
const measures = new Set();
/** @type {(measure: () => () => void) => void} */
const measureSoon = (measure) => {
  if (!measures.size)
    queueMicrotask(() => {
      const changes = Array.from(measures, (look) => look());
      measures.clear();
      batch(() => changes.forEach((change) => change()));
    });
  measures.add(measure);
};

/** @type {(element: HTMLElement, part: Pick<import("./types").Part, "seen" | "isHidden" | "width">) => () => void} */
export const watchSight = (element, part) => {
  const sight = new IntersectionObserver(
    (entries) => {
      part.seen = entries[entries.length - 1].isIntersecting;
      part.isHidden = !part.seen && element.getClientRects().length === 0;
    },
    { rootMargin: `${NEAR_PX}px` },
  );
  const size = new ResizeObserver(() => {
    const width = element.clientWidth;
    if (width && Math.abs(width - part.width) > LEAST_PX) part.width = width;
  });
  measureSoon(() => {
    const { top, bottom } = element.getBoundingClientRect();
    const width = element.clientWidth;
    const seen = width > 0 && bottom > -NEAR_PX && top < window.innerHeight + NEAR_PX;
    return () => Object.assign(part, { width, seen });
  });
  for (const observer of [sight, size]) observer.observe(element);
  return () => [sight, size].forEach((observer) => observer.disconnect());
};
