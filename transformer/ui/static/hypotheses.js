// The n-best list of a beam search.

import { mounted } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { numeral, say } from "./messages.js";

const number = (value) => html`<td class="value">${numeral(value.toFixed(3))}</td>`;
const row = ({ text, score, normalised, ended }) => html`<tr>
  <td><bdi>${text}</bdi>${!ended && html`<small> ${say("(cut at the length)")}</small>`}</td>
  ${number(score)}${number(normalised)}
</tr>`;

const Hypotheses = () => {
  const found = page.run?.hypotheses ?? [];
  const names = [say("text"), say("score"), say("per length")];
  return html`<section class="hypotheses" hidden=${!found.length} data-run=${page.run?.run}>
    <h2>${say("The search's best texts")}</h2>
    <table>
      <thead><tr>${names.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${found.map(row)}</tbody>
    </table>
    <p class="hint">${say("Score: the sum of the tokens' log-probabilities. The texts are ranked by score ÷ length to the power of the length penalty. The pictures are of the first one; Prediction shows the tree of all.")}</p>
  </section>`;
};
export const mount = mounted(Hypotheses);
