// Texts of the page as components.

import { html } from "./preact.js";

const MARKS = /([␣⏎⇥]+)/u; // for space, newline and tab: set back, so that the word stands out
const STRESS = /(\*\*[^*]+\*\*|\*[^*]+\*|`[^`]+`)/;

// A token of a text; its label reaches the page as text alone.
export const Token = ({ label, class: look }) =>
  html`<bdi class=${look || undefined}>${String(label)
    .split(MARKS)
    .map((part, place) => (place % 2 ? html`<span class="mark">${part}</span>` : part))}</bdi>`;

// A lesson's text: **strong**, *emphasis* and `code`, as elements; everything else is text.
export const Marked = ({ text }) =>
  text.split(STRESS).map((part, place) => {
    if (place % 2 === 0) return part;
    if (part.startsWith("`")) return html`<code>${part.slice(1, -1)}</code>`;
    if (part.startsWith("**")) return html`<strong>${part.slice(2, -2)}</strong>`;
    return html`<em>${part.slice(1, -1)}</em>`;
  });
