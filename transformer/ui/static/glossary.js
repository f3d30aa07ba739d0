// Every term of the glossary with its sentence, as a list by the alphabet.

import { mounted } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { LANGUAGE } from "./language.js";
import { say } from "./messages.js";
import { glossary } from "./terms.js";

const entries = Object.values(glossary);
entries.sort(({ words: [a] }, { words: [b] }) => a.localeCompare(b, LANGUAGE));
const entry = ({ words, says }) => html`<div><dt>${words[0]}</dt><dd>${says}</dd></div>`;

const Glossary = () => html`<details class="glossary">
  <summary>${say("Words of the field")}</summary>
  <dl class="glossary-list">${entries.map(entry)}</dl>
</details>`;
export const mount = mounted(Glossary);
