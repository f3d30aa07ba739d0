// Why not the future?: the visitor's text as a triangle of words. Each line is what one token may read.

import { textWidth } from "../../web/labels.js";
import { say, sayN, sayWith } from "../../web/messages.js";
import { mounted, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { alter, generates, interventions } from "../../web/runs.js";
import { page, setQuery } from "../../web/store.js";
import { Token } from "../../web/text.js";

const MAX_LINES = 6; // tokens, from the first of the text
const MIN_LINES = 3;
const BESIDE_PX = 700; // of the part: the table is beside its reason
const REASON_PX = 352; // of the reason there, with the gap; see masks.css
const WORD_PX = 20; // around a word of the table
const LARGER = 1.25; // than the type of pictures are the words; those in bold are wider, too

// How many tokens have room for all of their words, in a line and as its name.
/** @type {(labels: string[], width: number) => number} */
const linesIn = (labels, width) => {
  const room = width > BESIDE_PX ? width - REASON_PX : width;
  const sizes = labels.map((label) => WORD_PX + LARGER * textWidth(label));
  const all = (/** @type {number} */ n) =>
    Math.max(...sizes.slice(0, n)) + sizes.slice(0, n).reduce((sum, size) => sum + size, 0);
  let lines = Math.min(MAX_LINES, labels.length);
  while (lines > MIN_LINES && all(lines) > room) lines -= 1;
  return lines;
};

/** @param {{ at: number, places: number[], reads: (at: number, place: number) => boolean }} props */
const Line = ({ at, places, reads }) => {
  const word = (/** @type {number} */ place) => {
    const label = html`<${Token} label=${page.run.labels[place]} />`;
    return reads(at, place)
      ? html`<td class="may">${label}</td>`
      : html`<td class="hidden" aria-label=${say("hidden")}>${label}</td>`;
  };
  const choose = () => setQuery({ stack: page.run.stack, index: at });
  return html`<tr>
    <th scope="row"><button type="button" onClick=${choose}><${Token} label=${page.run.labels[at]} /></button></th>
    ${places.map(word)}
  </tr>`;
};

// A change that takes the causal mask away in every layer.
/** @type {(change: import("../../web/types").Change) => boolean} */
const opens = ({ type, kind = "self", layer = null, without = [] }) =>
  type === "mask" && kind === "self" && layer === null && without.includes("causal");

// What the network writes where it may read on, as it never could while it learned: beside the text, before and after.
/** @param {{ isOpen: boolean }} props */
const Open = ({ isOpen }) => {
  const others = interventions().filter((change) => !opens(change));
  const { stack } = page.run;
  const flip = () =>
    alter(isOpen ? others : [...others, { type: "mask", stack, without: ["causal"] }]);
  return html`<button type="button" class="switch-off" aria-pressed=${String(isOpen)} onClick=${flip}>${
    isOpen ? say("Hide the future again") : say("Let every token read the future")
  }</button>`;
};

const Future = () => {
  const part = usePart();
  if (!page.run) return html`<section class="future" ...${part.attributes({})}></section>`;
  const { labels, special, stack, run, windows } = page.run;
  const text = labels.map((_, place) => place).filter((place) => !special.includes(place));
  const words = text.slice(0, MAX_LINES).map((place) => labels[place]);
  const places = text.slice(0, linesIn(words, part.width));
  const isCausal = stack === "decoder";
  const isOpen = isCausal && interventions().some(opens);
  const window = windows.find(Boolean); // of some layers, or of all
  const isWide = windows.includes(null);
  /** @type {(at: number, place: number) => boolean} */
  const reads = (at, place) =>
    (!isCausal || isOpen || place <= at) && (isWide || Math.abs(place - at) < Number(window));
  const token = html`<strong><${Token} label=${labels[places[0]]} /></strong>`;
  const next = labels[places[1]] && html`<strong><${Token} label=${labels[places[1]]} /></strong>`;
  const reason = isCausal
    ? next &&
      sayWith(
        "While it learned, the network had to guess what follows every token at once: at {token} it is asked for {next}. If it could read on, it would copy {next} instead of learning.",
        { token, next },
      )
    : window
      ? say(
          "This network reads both sides of every token: it has no causal mask, but one for padding and one for what is too far away.",
        )
      : say(
          "This network reads both sides of every token: it has no causal mask, only one for padding.",
        );
  const near = window && [
    sayN(
      "A token reads at most {n} token, itself included.",
      "A token reads at most {n} tokens, itself included.",
      isCausal ? window : 2 * window - 1,
    ),
    isWide && say("In some layers it reads all."),
  ];
  const all = isWide ? say("Every token reads every other") : say("What each token may read");
  return html`<section class="future" ...${part.attributes({ run })}>
    <div>
      <h3>${isCausal ? say("Why not the future?") : all}</h3>
      <p>${reason}</p>
      ${near && html`<p>${near.filter(Boolean).join(" ")}</p>`}
      ${isCausal && generates() && html`<${Open} isOpen=${isOpen} />`}
    </div>
    <div class="wide" tabindex="0" role="region" aria-label=${say("What each token may read")}>
      <table>
        <tbody>${places.map((at) => html`<${Line} at=${at} places=${places} reads=${reads} />`)}</tbody>
      </table>
    </div>
  </section>`;
};
export const mount = mounted(Future);
