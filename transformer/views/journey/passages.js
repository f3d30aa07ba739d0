// Where else the chosen head does what it is named for: passages of the texts that it was measured over.

import { askOnce } from "../../web/ask.js";
import { capital, numeral, say, sayN } from "../../web/messages.js";
import { useAnswer } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { siteName } from "../../web/sites.js";
import { page, shell } from "../../web/store.js";

const LENGTH = "20"; // tokens that are written after a passage

/** @type {(props: { part: import("../../web/part.js").Part, at: import("../../web/store.js").Head }) => any} */
export const Passages = ({ part, at }) => {
  const { run, model } = page.run;
  const chosen = { site: siteName(at), head: at.head };
  const ask = (/** @type {any} */ data) => askOnce("passages", data);
  /** @type {import("./types").PassagesAnswer | null} */
  const found = useAnswer(part, ask, { run, ...chosen }).current;
  const read = (/** @type {string} */ text) =>
    shell.apply({
      ...{ model, text, max_new_tokens: LENGTH, tab: "journey" },
      ...{ site: chosen.site, head: String(chosen.head) },
    });
  const row = (/** @type {{ text: string, number: number }} */ { text, number }) => html`<li>
    <button type="button" class="passage" onClick=${() => read(text)}><small>${found?.title}: ${numeral(number.toFixed(2))}</small>
      <span translate=${false}><bdi>${text}</bdi></span></button>
  </li>`;
  return html`<section class="passages" aria-live="polite" aria-busy=${!found}>
    <h3>${
      found && !found.passages.length
        ? say("This model's heads have not been measured over many texts.")
        : found &&
          sayN(
            "{does}: strongest in these passages, from {n} text",
            "{does}: strongest in these passages, from {n} texts",
            found.n_texts,
            { does: capital(found.label ?? found.title) },
          )
    }</h3>
    <ol>${found?.passages.map(row)}</ol>
    ${found && found.passages.length > 0 && html`<p class="hint">${say("Press one to read it here with this head.")}</p>`}
  </section>`;
};
