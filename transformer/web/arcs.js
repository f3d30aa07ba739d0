// Arcs over a text, from a token to those that it reads, with each share in per cent. Those to a source begin at the
// word that is being written, the next one: there the source's word is found again.

import { percentText } from "./messages.js";
import { html, useLayoutEffect, useState } from "./preact.js";
import { weightAt } from "./text.js";

const MIN_WEIGHT = 0.08; // weights below are not drawn
const MAX_ARCS = 4;
const ABOVE_PX = 30; // of an arc's control points over the upper token
const APART_PX = 40; // of two shares on one line
const LABEL_PX = 46; // of a share
const END_PX = 24; // behind the last token

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

// The box of what is written after a token: the next token, or the room behind the last.
/** @type {(root: HTMLElement, token: { stack: string, index: number }) => DOMRect | null} */
const boxWritten = (root, { stack, index }) => {
  const next = boxOf(root, stack, index + 1);
  const last = next ? null : boxOf(root, stack, index);
  return next ?? (last && new DOMRect(last.right, last.y, END_PX, last.height));
};

/** @type {(root: HTMLElement, read: import("./types").Read) => Arc[]} */
const arcsOf = (root, { token, reading }) => {
  const { stack, weights, first } = reading;
  const isOwn = stack === token.stack;
  const from = isOwn ? boxOf(root, token.stack, token.index) : boxWritten(root, token);
  if (!from) return [];
  const read = Array.from(weights, (_, at) => first + at)
    .map((place) => ({ place, weight: weightAt(reading, place), to: boxOf(root, stack, place) }))
    .filter(({ place, weight }) => weight >= MIN_WEIGHT && !(isOwn && place === token.index))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, MAX_ARCS)
    .flatMap(({ weight, to }) => (to ? { weight, to, end: to.x + to.width / 2 } : []));
  /** @type {Arc[]} */
  const arcs = [];
  for (const { weight, to, end } of read) {
    const line = isOwn ? overText(from, to) : downFrom(to, from, read);
    const label = isOwn
      ? { x: Math.min(end, root.clientWidth - LABEL_PX) + 10, y: to.y - 4 }
      : { x: Math.max(0, end - LABEL_PX / 2), y: to.y - 4 };
    const isFree = arcs.every(
      (other) => Math.abs(other.y - label.y) > 8 || Math.abs(other.x - label.x) > APART_PX,
    );
    arcs.push({
      d: line,
      width: 2 + 8 * weight,
      share: isFree ? percentText(weight) : "",
      ...label,
    });
  }
  return arcs;
};
/** @type {(from: DOMRect, to: DOMRect) => string} */
const overText = (from, to) => {
  const [x, end] = [from, to].map((box) => box.x + box.width / 2);
  const top = Math.min(from.y, to.y) - ABOVE_PX;
  return `M${x} ${from.y}C${x} ${top} ${end} ${top} ${end} ${to.y}`;
};
// From a source, which is above its translation. Several meet the token side by side, in the order of their
// ends, and the farther one bends lower: none cross.
/** @type {(to: DOMRect, from: DOMRect, all: { end: number }[]) => string} */
const downFrom = (to, from, all) => {
  const [end, below] = [to.x + to.width / 2, to.y + to.height];
  const center = from.x + from.width / 2;
  const far = (/** @type {number} */ at) => Math.abs(at - center);
  const left = all.filter((other) => other.end < end).length;
  const x = from.x + (from.width * (left + 1)) / (all.length + 1);
  const nearer = all.filter((other) => far(other.end) < far(end)).length;
  const bend = below + ((from.y - below) * (nearer + 1)) / (all.length + 1);
  return `M${x} ${from.y}C${x} ${bend} ${end} ${bend} ${end} ${below}`;
};

// root: the element of the text, see tokens.js. read: the token and its weights. What else is given moves the
// tokens: the arcs are measured again.
/** @param {{ root: { current: HTMLElement }, read: import("./types").Read, facts: import("./types").TextFacts, written: number }} props */
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
  /** @param {Arc} arc */
  const arc = ({ d, width, share, x, y }) => html`<path d=${d} stroke-width=${width} />
    <text x=${x} y=${y}>${share}</text>`;
  return html`<svg class="arcs" aria-hidden="true">${arcs.map(arc)}</svg>`;
};
