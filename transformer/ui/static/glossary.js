// Every term of the glossary with its sentence, as a list by the alphabet.

import { el, finder } from "./dom.js";
import { LANGUAGE } from "./language.js";
import { glossary } from "./terms.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element }) {
  const entries = Object.values(glossary);
  entries.sort(({ words: [a] }, { words: [b] }) => a.localeCompare(b, LANGUAGE));
  const lines = entries.map(({ words, says }) => {
    const line = el("div");
    line.append(el("dt", "", words[0]), el("dd", "", says));
    return line;
  });
  finder(element)(".glossary-list").append(...lines);
}
