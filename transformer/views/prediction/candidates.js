// The likeliest next tokens in three states of the same bars: the network's probabilities, those after the
// temperature, and those after the filters, from which a token is drawn. The settings are those at the left.

import { branchAt, generates } from "../../web/runs.js";
import { numeral, percentText, say } from "../../web/messages.js";
import { html, useMemo } from "../../web/preact.js";
import { shell, controls, page } from "../../web/store.js";
import { beginning, Token } from "../../web/text.js";
import {
  countInWords,
  distribution,
  draws,
  probabilitiesOf,
  settingsNow,
} from "../journey/distribution.js";
import { tokenInWords, tokensShown } from "../journey/next_words.js";

const MAX_CANDIDATES = 10;
const MIN_MOVE = 0.005; // of a bar that has a tick where it was

// All on the likeliest token that may be taken.
/** @type {(own: Float64Array, never: number | null) => Float64Array} */
const greedy = (own, never) => {
  let best = never === 0 ? 1 : 0;
  for (let id = best; id < own.length; id += 1) if (id !== never && own[id] > own[best]) best = id;
  return new Float64Array(own.length).fill(1, best, best + 1);
};
// {states: each token's probability in each; count: of tokens that can be drawn; whyCut(id)}.
/** @type {(answer: import("../journey/types").JourneyAnswer, settings: import("../journey/distribution.js").SamplingSettings) => import("./types").States} */
const statesOf = ({ logits, never }, settings) => {
  const own = probabilitiesOf(logits);
  const cutPadding = (/** @type {number} */ id) =>
    id === never ? say("padding is never taken") : null;
  if (settings.method === "beam") return { states: [own], count: 1, whyCut: () => null };
  if (!draws(settings)) {
    const taken = greedy(own, never);
    return { states: [own, taken, taken], count: 1, whyCut: cutPadding };
  }
  const by = (/** @type {{ top_k?: number, top_p?: number }} */ filters) =>
    distribution(logits, { ...settings, ...filters }, never);
  const [warmed, first, drawn] = [by({ top_k: 0, top_p: 1 }), by({ top_p: 1 }), by({})];
  const whyCut = (/** @type {number} */ id) => {
    if (id === never || drawn.probabilities[id] > 0) return cutPadding(id);
    return first.probabilities[id] > 0 ? say("cut by top-p") : say("cut by top-k");
  };
  const states = [own, warmed.probabilities, drawn.probabilities];
  return { states, count: drawn.count, whyCut };
};

/** @type {(share: number) => string} */
const wide = (share) => `${(100 * share).toFixed(2)}%`;
/** @param {{ share: number, own: number, why: string | null }} props */
const Bar = ({ share, own, why }) => html`<span class="state">
    <span class="bars"><i class="drawn" style=${{ width: wide(share) }} />
      ${Math.abs(share - own) >= MIN_MOVE && html`<i class="own" style=${{ left: wide(own) }} />`}</span>
    <span class=${share ? "value" : "value none"}>${why ?? percentText(share, share ? undefined : 0)}</span>
  </span>`;

/** @param {{ token: import("../journey/types").ShownToken, position: number, states: ArrayLike<number>[], whyCut: import("./types").States["whyCut"] }} props */
const Candidate = ({ token, position, states, whyCut }) => {
  const { id, isNext } = token;
  const word = beginning(token, position);
  const step = position + 1 - page.run.n_prompt;
  const canBranch = step >= 0 && generates() && !isNext;
  const shares = states.map((state) => state[id]);
  const said = tokenInWords(word, shares.map((share) => percentText(share)).join(" → "), {
    isNext,
    canBranch,
  });
  return html`<li><button type="button" class="candidate" data-id=${id} aria-label=${said} title=${said}
    disabled=${!canBranch} onClick=${() => branchAt(step, id)}>
    <span class="name"><${Token} label=${word} />${isNext && " ✓"}</span>
    ${shares.map((share, at) => html`<${Bar} own=${shares[0]} share=${share} why=${at === 2 ? whyCut(id) : null} />`)}
  </button></li>`;
};

// Temperature 0 is greedy and greedy is temperature 0, as with Gradio's slider; see server/page/layout.py.
/** @type {(event: import("../../web/types").ChangeOf) => void} */
const warm = ({ target }) => {
  const temperature = Number(target.value);
  shell.setControls({ temperature, method: temperature > 0 ? "sample" : "greedy" });
};
const Temperature = () => html`<label>${say("Temperature (0 = greedy)")}
  <input type="range" min="0" max="2" step="0.05" value=${controls.temperature} onInput=${warm} />
  <output>${numeral(String(controls.temperature))}</output></label>`;

// answer: of the journey, see ../journey/journey.py.
/** @param {{ answer: import("../journey/types").JourneyAnswer }} props */
export const Candidates = ({ answer }) => {
  const settings = settingsNow();
  const { states, count, whyCut } = useMemo(
    () => statesOf(answer, settings),
    [answer, ...Object.values(settings)],
  );
  const { position } = answer;
  const heads = [say("the network"), html`<${Temperature} />`, say("after top-k and top-p")];
  const one = (/** @type {import("../journey/types").ShownToken} */ token) =>
    html`<${Candidate} key=${token.id} token=${token} position=${position} states=${states}
      whyCut=${whyCut} />`;
  return html`<div class="candidates" style=${{ "--states": states.length }}>
    <div class="candidate-heads"><span></span>${heads.slice(0, states.length).map((head) => html`<span>${head}</span>`)}</div>
    <ul>${tokensShown(answer, MAX_CANDIDATES).map(one)}</ul>
    <p class="hint">${countInWords(settings, count, answer)}</p>
  </div>`;
};
