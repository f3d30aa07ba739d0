// Where else the chosen head does what it is named for: passages of the texts that it was measured over.

import { askOnce } from "../../web/ask.js";
import { capital, numeral, say, sayN } from "../../web/messages.js";
import { useAnswer } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { siteName } from "../../web/sites.js";
import { page, shell } from "../../web/store.js";

const NEW_TOKENS = "20"; // that are written after a passage

/** @param {{ part: import("../../web/part.js").Part, at: import("../../web/store.js").Head }} props */
export const Passages = ({ part, at }) => {
  const { run, model } = page.run;
  const chosen = { site: siteName(at), head: at.head };
  const { current } = useAnswer(part, (data) => askOnce("passages", data), { run, ...chosen });
  const read = (/** @type {string} */ text) =>
    shell.apply({
      ...{ model, text, max_new_tokens: NEW_TOKENS, tab: "journey" },
      ...{ site: chosen.site, head: String(chosen.head) },
    });
  const row = (/** @type {{ text: string, number: number }} */ { text, number }) => html`<li>
    <button type="button" class="passage" onClick=${() => read(text)}><small>${current?.title}: ${numeral(number.toFixed(2))}</small>
      <span translate=${false}><bdi>${text}</bdi></span></button>
  </li>`;
  return html`<section class="passages" aria-live="polite" aria-busy=${!current}>
    <h3>${
      current && !current.passages.length
        ? say("This model's heads have not been measured over many texts.")
        : current &&
          sayN(
            "{does}: strongest in these passages, from {n} text",
            "{does}: strongest in these passages, from {n} texts",
            current.n_texts,
            { does: capital(current.label ?? current.title) },
          )
    }</h3>
    <ol>${current?.passages.map(row)}</ol>
    ${current && current.passages.length > 0 && html`<p class="hint">${say("Press one to read it here with this head.")}</p>`}
  </section>`;
};
