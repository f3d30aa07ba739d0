// Where to go on from the journey: questions, each of which another tab answers, and all tabs.

import { fields } from "../../web/fields.js";
import { say } from "../../web/messages.js";
import { effect, html, signal } from "../../web/preact.js";
import { letPressedGo } from "../../web/pointer.js";
import { nextPaint, page, shell } from "../../web/store.js";

// A text that the page offers, at its last token, and the head that reads most there what the token stands for; as the
// short link of server/tour.toml.
const IT = {
  text: ["Lily", "loved", "the", "dog", "because", "it"].join(" "),
  ...{ read: "6", site: "decoder.2.self", head: "7" },
};
const readIt = () =>
  shell.apply({ model: "stories", ...IT, method: "greedy", max_new_tokens: "20", tab: "journey" });
// fits: whether a run can answer it.
/** @type {{ says: string, go: () => void, fits?: (run: import("../../web/types").Run) => boolean }[]} */
const QUESTIONS = [
  { says: say("Which word does it read?"), go: readIt, fits: ({ model }) => model === "stories" },
  {
    says: say("Why not the future?"),
    go: () => shell.openTab("masks"),
    fits: ({ stack }) => stack === "decoder",
  },
  {
    says: say("Without positions?"),
    go: () => shell.openTab("positions"),
    fits: ({ adds_positions: adds, is_rotary: isRotary }) => adds || isRotary,
  },
  { says: say("Why this word, and not another?"), go: () => shell.openTab("prediction") },
  { says: say("Watch a head form"), go: () => shell.openTab("learn") },
];

const hasTabs = signal(false); // kept while another tab is open
effect(() => void globalThis.document?.body.classList.toggle("all-tabs", hasTabs.value));
const isOnTab = () => globalThis.document?.activeElement?.matches("[role=tab]:focus-visible");
// They stay for a visitor who has come from another by the keyboard.
effect(() => void (fields.tab === "journey" && isOnTab() && (hasTabs.value = true)));

// Show the tabs, or hide them; on a phone they are far above the link.
const showTabs = async () => {
  hasTabs.value = !hasTabs.value;
  if (!hasTabs.value) return;
  await nextPaint();
  const tab = shell.openTab("journey"); // this one
  const { top = 0, bottom = 0 } = tab?.getBoundingClientRect() ?? {};
  if (top >= 0 && bottom <= window.innerHeight) return;
  letPressedGo();
  tab?.scrollIntoView({ block: "center" });
};

export const Questions = () => {
  const question = (/** @type {{ says: string, go: () => void }} */ { says, go }) =>
    html`<li><button type="button" class="to-tab" onClick=${go}>${says}</button></li>`;
  return html`<nav class="questions" aria-label=${say("Go on:")}>
    <span>${say("Go on:")}</span>
    <ul>${QUESTIONS.filter(({ fits }) => !fits || fits(page.run)).map(question)}
      <li><button type="button" class="to-tab all-tools" aria-expanded=${String(hasTabs.value)}
        onClick=${showTabs}>${say("All tools…")}</button></li></ul>
  </nav>`;
};
