// Arcs over a text, from a token to those that it reads, with each share in per cent.

import { percentText } from "./messages.js";
import { html, useLayoutEffect, useState } from "./preact.js";
import { weightAt } from "./text.js";

const LEAST = 0.08; // weights below are not drawn
const MOST = 4;
const ABOVE_PX = 30; // of an arc's control points over the upper token
const APART_PX = 44; // of two shares on one line
const LABEL_PX = 46; // of a share

/** @typedef {{ d: string, width: number, share: string, x: number, y: number }} Arc */

// A token's box relative to the root; null where it is scrolled out of sight.
/** @type {(root: HTMLElement, stack: string, index: number) => DOMRect | null} */
const boxOf = (root, stack, index) => {
  const button = root.querySelector(`[data-stack=${stack}] [data-index="${index}"]`);
  const frame = button?.closest(".tokens")?.getBoundingClientRect();
  const box = button?.getBoundingClientRect();
  if (!box || !frame || box.bottom > frame.bottom + 1 || box.top < frame.top - 1) return null;
  const origin = root.getBoundingClientRect();
  return new DOMRect(box.x - origin.x, box.y - origin.y, box.width, box.height);
};

/** @type {(root: HTMLElement, read: any) => Arc[]} */
const arcsOf = (root, { token, reading }) => {
  const from = boxOf(root, token.stack, token.index);
  const { stack, weights, first } = reading;
  const isOwn = stack === token.stack;
  if (!from) return [];
  /** @type {Arc[]} */
  const arcs = [];
  const places = Array.from(weights, (_, at) => first + at)
    .filter((place) => weightAt(reading, place) >= LEAST && !(isOwn && place === token.index))
    .sort((a, b) => weightAt(reading, b) - weightAt(reading, a))
    .slice(0, MOST);
  for (const place of places) {
    const to = boxOf(root, stack, place);
    if (!to) continue;
    const [x, y] = [from.x + from.width / 2, from.y];
    const end = to.x + to.width / 2;
    const below = to.y + to.height; // a source is above its translation
    const top = Math.min(y, to.y) - ABOVE_PX;
    const middle = (y + below) / 2;
    const share = percentText(weightAt(reading, place));
    const x0 = Math.min(end, root.clientWidth - LABEL_PX);
    const label = isOwn ? { x: x0 + 10, y: to.y - 4 } : { x: x0 + 8, y: below + 15 };
    const isFree = arcs.every(
      (one) => Math.abs(one.y - label.y) > 8 || Math.abs(one.x - label.x) > APART_PX,
    );
    arcs.push({
      d: isOwn
        ? `M${x} ${y}C${x} ${top} ${end} ${top} ${end} ${to.y}`
        : `M${x} ${y}C${x} ${middle} ${end} ${middle} ${end} ${below}`,
      width: 2 + 8 * weightAt(reading, place),
      share: isFree ? share : "",
      ...label,
    });
  }
  return arcs;
};

// root: the element of the text, see tokens.js. read: the token and its weights. What else is given moves the
// tokens: the arcs are measured again.
export const Arcs = ({ root, read, facts, written }) => {
  const [arcs, setArcs] = useState(/** @type {Arc[]} */ ([]));
  useLayoutEffect(() => {
    const element = root.current;
    const measure = () => setArcs(arcsOf(element, read));
    const sizes = new ResizeObserver(measure); // at once, too: after the layout, before the paint
    sizes.observe(element);
    element.addEventListener("scroll", measure, true);
    return () => {
      sizes.disconnect();
      element.removeEventListener("scroll", measure, true);
    };
  }, [read, facts, written]);
  const arc = ({ d, width, share, x, y }) => html`<path d=${d} stroke-width=${width} />
    <text x=${x} y=${y}>${share}</text>`;
  return html`<svg class="arcs" aria-hidden="true">${arcs.map(arc)}</svg>`;
};
