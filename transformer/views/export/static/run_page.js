// A run without a server: its text, attention, prediction, masks, positions and more, as components.

import { Asked, before, placeAsked, placeRead } from "../../../ui/static/looked_at.js";
import { say } from "../../../ui/static/messages.js";
import { Select } from "../../../web/controls.js";
import { html, useLayoutEffect } from "../../../web/preact.js";
import { page, setDark, setQuery } from "../../../web/store.js";
import { Text } from "../../../web/tokens.js";
import { Attention } from "./attention.js";
import { Candidates } from "./candidates.js";
import { Picture } from "./gallery.js";

// ---- prediction ----

const Prediction = ({ steps, start, hidden }) => {
  const read = page.query ? placeRead() : start - 1; // at first, the last token that was given
  const at = placeAsked(read) - start;
  const step = steps[at];
  const go = (value) => setQuery(before(start + Number(value)));
  const seen = () =>
    say("This step read tokens {first} to {last}; {count} tokens could be drawn.", {
      first: step.window[0],
      last: step.window[1] - 1,
      count: step.n_kept,
    });
  return html`<section id="prediction" aria-labelledby="prediction-title" hidden=${hidden || !steps.length}>
    <h2 id="prediction-title">${say("Prediction")}</h2>
    ${step ? html`<${Asked} of=${read} />` : html`<p class="asked">${say("No step of this run chose what follows this token.")}</p>`}
    <div class="controls">
      <label>${say("Step")} <${Select} id="step" options=${[[-1, "–"], ...steps.map((_, place) => [place, place + 1])]}
        value=${step ? at : -1} set=${go} /></label>
      <span id="step-note">${step && seen()}</span>
    </div>
    ${step && html`<${Candidates} ...${step} />`}
  </section>`;
};

// ---- the whole ----

const followDarkness = () => {
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    document.documentElement.classList.toggle("dark", darkness.matches);
    setDark(darkness.matches);
  };
  darkness.addEventListener("change", follow);
  follow();
  return () => darkness.removeEventListener("change", follow);
};

const Pictures = ({
  id,
  title,
  note,
  hidden,
  list,
  children,
}) => html`<section aria-labelledby=${`${id}-title`} hidden=${hidden}>
  <h2 id=${`${id}-title`}>${title}</h2>${note && html`<p class="note">${note}</p>`}
  <div id=${id} class=${list ? undefined : "figures"}>${children}</div>
</section>`;

// data: of a run, see html.py; its facts are the page's run. shown: the ids of the sections to show, all
// of them without; inside: of the last, the pictures to show open; at: see Attention.
/** @param {Record<string, any>} props */
export const RunPage = ({ data, shown = null, inside = null, at = null, hidden = false }) => {
  useLayoutEffect(followDarkness, []);
  const { run, steps, masks, positions, more, colours } = data;
  const isHidden = (id) => shown !== null && !shown.includes(id);
  const pictures = (all) =>
    all.map(
      (one, place) => html`<${Picture} key=${`${run.run} ${place}`} ...${{ one, colours }} />`,
    );
  const closed = (one, place) => {
    const open = inside !== null && inside.includes(one.view);
    return html`<${Picture} key=${`${run.run} ${place}`} closed open=${open}
      hidden=${inside !== null && !open} ...${{ one, colours }} />`;
  };
  return html`<main hidden=${hidden}>
    <section id="tokens">
      <${Text} facts=${run} />
      <p class="note">${say("Outlined: given. Shaded: generated, the stronger the shade the likelier. Choose a token to mark what it reads and, if what follows it was generated, to see what else could have come.")}</p>
    </section>
    <${Attention} ...${{ data, at }} hidden=${isHidden("attention")} />
    <${Prediction} steps=${steps} start=${run.n_prompt} hidden=${isHidden("prediction")} key=${run.run} />
    <${Pictures} id="masks" title=${say("Masks")} hidden=${isHidden("masks")}>${pictures(masks)}<//>
    <${Pictures} id="positions" title=${say("Positions")} hidden=${isHidden("positions")}>${pictures(positions)}<//>
    <${Pictures} id="more" title=${say("More of the inside")} note=${say("Each opens when it is wanted.")} list
      hidden=${isHidden("more")}>${more.map(closed)}<//>
  </main>`;
};
