// Where to go on from the first tab: questions, each of which another tab answers, and all tabs.

import { shell, page } from "../../web/store.js";
import { say } from "../../web/messages.js";
import { openSection } from "../../web/part.js";
import { effect, html, signal } from "../../web/preact.js";

/** @type {(tab: string, section?: string) => () => void} */
const opens = (tab, section) => () => {
  shell.openTab(tab);
  if (section) openSection(section);
};
// A text that the page offers, at its last token.
const IT = { text: ["Lily", "loved", "the", "dog", "because", "it"].join(" "), read: "6" };
const readIt = () =>
  shell.apply({ model: "stories", ...IT, method: "greedy", length: "20", tab: "journey" });
// fits: whether a run can answer it.
const QUESTIONS = [
  { says: say("Which word does it read?"), go: readIt, fits: ({ model }) => model === "stories" },
  {
    says: say("Why not the future?"),
    go: opens("masks"),
    fits: ({ stack }) => stack === "decoder",
  },
  { says: say("Without positions?"), go: opens("what-if", "breaks") },
  { says: say("Why this word, and not another?"), go: opens("prediction") },
  { says: say("Watch a head form"), go: opens("learn") },
];

const hasTabs = signal(false); // kept while another tab is open
effect(() => void globalThis.document?.body.classList.toggle("all-tabs", hasTabs.value));

export const Questions = () => {
  const one = ({ says, go }) =>
    html`<li><button type="button" class="to-tab" onClick=${go}>${says}</button></li>`;
  return html`<nav class="questions" aria-label=${say("Go on:")}>
    <span>${say("Go on:")}</span>
    <ul>${QUESTIONS.filter(({ fits }) => !fits || fits(page.run)).map(one)}
      <li><button type="button" class="to-tab all-tools" aria-expanded=${String(hasTabs.value)}
        onClick=${() => (hasTabs.value = !hasTabs.value)}>${say("All tools…")}</button></li></ul>
  </nav>`;
};
