// The table of what a step could have chosen.

import { el } from "../../../ui/static/dom.js";
import { numeral, say, sayWith } from "../../../ui/static/messages.js";

const bar = (probability, most, className) => {
  const [cell, line] = [el("td"), el("span", className)];
  line.style.width = `${(70 * probability) / most}%`;
  cell.append(line, `${numeral((100 * probability).toFixed(2))}%`);
  return cell;
};

// Its rows. step: {token, candidates}, as html.py writes it.
export const candidateRows = ({ token, candidates }) => {
  const most = Math.max(...candidates.flatMap((c) => [c.probability, c.sampling_probability]));
  return candidates.map(({ id, label, probability, sampling_probability: after }) => {
    const [row, name] = [el("tr"), el("td")];
    const chosen = id === token;
    const shown = el("bdi", "", label);
    name.append(...(chosen ? ["▶ ", ...sayWith("{token} (chosen)", { token: shown })] : [shown]));
    const last = after === 0 ? el("td", "", say("✕ cut")) : bar(after, most, "bar after");
    row.append(name, bar(probability, most, "bar"), last);
    row.classList.toggle("chosen", chosen);
    row.classList.toggle("cut", after === 0);
    return row;
  });
};
