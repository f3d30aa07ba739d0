// The n-best list of a beam search.

import { mounted } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { numeral, say } from "./messages.js";

const Hypotheses = () => {
  const found = page.run?.hypotheses ?? [];
  return html`<section class="hypotheses" hidden=${found.length === 0} data-run=${page.run?.run}>
    <h2>${say("The search's best texts")}</h2>
    <table>
      <thead>
        <tr>
          <th scope="col">${say("text")}</th>
          <th scope="col">${say("score")}</th>
          <th scope="col">${say("per length")}</th>
        </tr>
      </thead>
      <tbody>
        ${found.map(
          ({ text, score, normalised, ended }) =>
            html`<tr>
              <td>
                <bdi>${text}</bdi>${!ended && html`<small> ${say("(cut at the length)")}</small>`}
              </td>
              <td class="value">${numeral(score.toFixed(3))}</td>
              <td class="value">${numeral(normalised.toFixed(3))}</td>
            </tr>`,
        )}
      </tbody>
    </table>
    <p class="hint">
      ${say(
        "Score: the sum of the tokens' log-probabilities. The texts are ranked by score ÷ length to the power of the length penalty. The pictures are of the first one; Prediction shows the tree of all.",
      )}
    </p>
  </section>`;
};
export const mount = mounted(Hypotheses);
