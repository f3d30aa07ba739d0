// All heads of an exercise's example, small.

import { HeadGrid, atlasOf } from "../../web/head_grid.js";
import { say } from "../../web/messages.js";
import { html, useMemo } from "../../web/preact.js";
import { attentionOf } from "../../web/sites.js";

// The heads of one attention as the server sends them; the rest: see HeadGrid.
export const SmallHeads = ({ picture, ...grid }) => {
  const atlas = useMemo(() => atlasOf(picture), [picture]);
  return html`<${HeadGrid} atlas=${atlas} ...${grid} />`;
};

// Those of each attention that the network has. best: {site, head, label} of the head that is to carry
// a sign, or null; picked: the chosen one, {name, layer, head}, name as in "decoder.self".
export const LearnedHeads = ({ pictures, best, picked, pick }) => {
  const one = ([name, picture]) => {
    const [stack, kind] = name.split(".");
    const [at, layer, sort] = best?.site.split(".") ?? [];
    const signs =
      at === stack && sort === kind
        ? [{ layer: Number(layer), head: best.head, sign: "★", label: best.label }]
        : [];
    return html`<div class="learn-kind" key=${name}>
      <p>${attentionOf({ stack, kind })}</p>
      <${SmallHeads} chosen=${picked?.name === name ? picked : null}
        choose=${(a, b) => pick({ name, layer: a, head: b })} ...${{ picture, signs }} />
    </div>`;
  };
  return html`<div class="learn-heads">${Object.entries(pictures ?? {}).map(one)}</div>`;
};

/** @type {(facts: any) => boolean} */
export const isLive = (facts) => ["waiting", "running", "paused"].includes(facts?.state);

// Goes back to the steps whose network is kept.
export const LookBack = ({ facts, shown }) => {
  const { kept, at, step } = facts ?? { kept: [], at: "–", step: 0 };
  const places = isLive(facts) && !kept.includes(step) ? [...kept, null] : kept;
  const last = Math.max(0, places.length - 1);
  const choose = ({ target }) => {
    const place = Number(target.value);
    shown.at = place === last ? null : places[place];
  };
  return html`<label class="learn-slider">
    <span>${`${say("Look back: step")} `}<output class="learn-at">${at}</output></span>
    <input type="range" class="learn-back" min="0" max=${last} disabled=${places.length < 2}
      value=${shown.at === null ? last : places.indexOf(shown.at)} onInput=${choose}
      aria-valuetext=${say("step {step}", { step: at })} />
  </label>`;
};
