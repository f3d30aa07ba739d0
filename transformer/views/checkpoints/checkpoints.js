// Checkpoints: the story model at ten steps of its training, as they were recorded.

import { declaredFields } from "../../web/fields.js";
import { numeral, say, wholeText } from "../../web/messages.js";
import { fieldsOf } from "../../web/link_text.js";
import { Select } from "../../web/controls.js";
import { Figure } from "../../web/figure.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { headName } from "../../web/head_grid.js";
import { html, useMemo } from "../../web/preact.js";
import { Token } from "../../web/text.js";
import { SmallHeads } from "../learn/learn.js";

const MOST_NATS = 8; // of the darkest shade
const HIGHEST_PX = 560; // of the large head

const Tokens = ({ labels, surprisal, mean }) => {
  const one = (label, place) => {
    const nats = surprisal[place];
    const shade = Math.min(1, (nats ?? 0) / MOST_NATS).toFixed(2);
    return html`<span style=${{ "--read": shade }}>
      <${Token} label=${label} /><small>${nats === null ? "–" : numeral(nats.toFixed(1))}</small>
    </span>`;
  };
  return html`<p class="checkpoints-tokens">${labels?.map(one)}</p>
    <p class="hint checkpoints-mean">${
      labels &&
      say("Below each token its surprisal in nats; the mean is {mean}.", {
        mean: numeral(mean.toFixed(2)),
      })
    }</p>`;
};

const Slider = ({ steps = [], step, total, choose }) => html`<label
  class="learn-slider checkpoints-slider">
  <span>${`${say("Checkpoint: step")} `}<output class="checkpoints-at">${steps.length ? wholeText(step) : "–"}</output></span>
  <input type="range" class="checkpoints-back" min="0" max=${Math.max(0, steps.length - 1)}
    disabled=${!steps.length} value=${Math.max(0, steps.indexOf(step))}
    aria-valuetext=${say("step {step} of {total}", { step, total })}
    onInput=${({ target }) => choose(steps[Number(target.value)])} />
</label>`;

const Checkpoints = () => {
  const part = usePart();
  const declared = useMemo(() => Object.entries(fieldsOf("checkpoints")), []);
  const fields = useMemo(() => declaredFields("checkpoints"), []);
  const set = (values) => {
    for (const [name, value] of Object.entries(values)) fields[`checkpoints.${name}`] = value;
  };
  const wanted = Object.fromEntries(declared.map(([field, one]) => [one.name, fields[field]]));
  const { answer } = useAnswer(part, "recorded_checkpoint", wanted);
  const { step, layer, head } = answer ?? {};
  const name = answer && headName(layer, head);
  return html`<section class="checkpoints" ...${part.shows({ step, layer, head })}>
    <p class="checkpoints-about learn-task">${answer?.about}</p>
    <${Slider} ...${answer} choose=${(one) => set({ step: one })} />
    <div class="checkpoints-body">
      <div>
        <${Figure} part=${part} name="checkpoints" class="checkpoints-curves" figure=${answer?.curves}
          label=${say("Loss of each step, and the best heads")} />
        <ul class="learn-said">${answer?.said.map((one) => html`<li>${one}</li>`)}</ul>
      </div>
      <div>
        <h4>${say("What it writes")}</h4>
        <p class="checkpoints-wrote" aria-live="polite"><bdi><b class="checkpoints-start">${answer?.start}</b><span
          class="checkpoints-rest">${answer?.wrote}</span></bdi></p>
        <p class="hint">${say("The same start and the same seed at every checkpoint. The networks themselves are not kept: they would be fifty million numbers.")}</p>
        <label class="checkpoints-choice">${`${say("Sentence")} `}<${Select} class="checkpoints-sentence"
          options=${[...(answer?.sentences ?? []).entries()]} value=${fields["checkpoints.sentence"]}
          set=${(place) => set({ sentence: Number(place) })} /></label>
        <${Tokens} ...${answer} />
      </div>
      <div>
        <h4>${say("All heads, for this sentence")}</h4>
        ${
          answer &&
          html`<${SmallHeads} class="checkpoints-heads" chosen=${{ layer, head }} choose=${(a, b) => set({ layer: a, head: b })}
            picture=${answer.picture} signs=${answer.signs} />`
        }
        <p class="hint">${say("A sign says what a head does. It is measured on ten texts: the head's number is three times a uniform head's, and above that of every shuffled copy of the head.")}</p>
      </div>
      <div>
        <h4 class="checkpoints-title">${name}</h4>
        <${Figure} part=${part} name="checkpoint" class="checkpoints-large" figure=${answer?.large}
          label=${name} wide=${name} fit=${{ side: { height: HIGHEST_PX }, bar: true }} />
        <p class="hint">${say("Attention weights are kept to within 0.004.")}</p>
      </div>
    </div>
  </section>`;
};
export const mount = mounted(
  (given) => given.props.checkpoints && html`<${Checkpoints} ...${given} />`,
);
