// Texts of the page as components.

import { html } from "./preact.js";

const MARKS = /([␣⏎⇥]+)/u; // for space, newline and tab: set back, so that the word stands out

// A token of a text; its label reaches the page as text alone.
export const Token = ({ label, class: look }) =>
  html`<bdi class=${look || undefined}>${String(label)
    .split(MARKS)
    .map((part, place) => (place % 2 ? html`<span class="mark">${part}</span>` : part))}</bdi>`;
