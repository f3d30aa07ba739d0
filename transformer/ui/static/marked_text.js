// A lesson's text: **strong**, *emphasis* and `code`, as elements; everything else is text.

import { el } from "./dom.js";

const MARKS = /(\*\*[^*]+\*\*|\*[^*]+\*|`[^`]+`)/;

/** @type {(text: string) => (string | HTMLElement)[]} */
export const marked = (text) =>
  text.split(MARKS).flatMap((part) => {
    if (!part) return [];
    if (part.startsWith("`") && part.length > 2) return [el("code", "", part.slice(1, -1))];
    if (part.startsWith("**") && part.length > 4) return [el("strong", "", part.slice(2, -2))];
    if (part.startsWith("*") && part.length > 2) return [el("em", "", part.slice(1, -1))];
    return [part];
  });
