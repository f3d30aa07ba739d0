// The table of what a step could have chosen.

import { numeral, say, sayWith } from "../../../ui/static/messages.js";
import { html } from "../../../web/preact.js";
import { Token } from "../../../web/text.js";

const bar = (probability, most, name) => html`<td>
  <span class=${name} style=${{ width: `${(70 * probability) / most}%` }} />${numeral((100 * probability).toFixed(2))}%
</td>`;

// A step, as html.py writes it.
export const Candidates = ({ token, candidates }) => {
  const most = Math.max(...candidates.flatMap((c) => [c.probability, c.sampling_probability]));
  const row = ({ id, label, probability, sampling_probability: after }) => {
    const isChosen = id === token;
    const shown = html`<${Token} label=${label} />`;
    return html`<tr class=${[isChosen && "chosen", after === 0 && "cut"].filter(Boolean).join(" ")}>
      <td>${isChosen ? ["▶ ", sayWith("{token} (chosen)", { token: shown })] : shown}</td>
      ${bar(probability, most, "bar")}
      ${after === 0 ? html`<td>${say("✕ cut")}</td>` : bar(after, most, "bar after")}
    </tr>`;
  };
  const heads = [say("Candidate"), say("By the network"), say("After temperature and filters")];
  return html`<table>
    <thead><tr>${heads.map((name) => html`<th>${name}</th>`)}</tr></thead>
    <tbody id="candidates">${candidates.map(row)}</tbody>
  </table>`;
};
