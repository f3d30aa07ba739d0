// A run without a server: its text, attention, prediction, masks, positions and more, as components.

import { say } from "../../../ui/static/messages.js";
import { Select } from "../../../web/controls.js";
import { useEvent } from "../../../web/part.js";
import { html, useLayoutEffect, useState } from "../../../web/preact.js";
import { page, setDark } from "../../../web/store.js";
import { Text } from "../../../web/tokens.js";
import { Attention } from "./attention.js";
import { Candidates } from "./candidates.js";
import { Picture } from "./gallery.js";

// ---- prediction ----

const Prediction = ({ steps, start, hidden }) => {
  const stepOf = (token) => (token?.stack === page.run.stack ? token.index - start : -1);
  const [at, setAt] = useState(Math.max(0, stepOf(page.query)));
  useEvent("query", (token) => stepOf(token) >= 0 && setAt(stepOf(token)));
  const step = steps[Math.min(at, steps.length - 1)];
  const seen = () =>
    say("This step read tokens {first} to {last}; {count} tokens could be drawn.", {
      first: step.window[0],
      last: step.window[1] - 1,
      count: step.n_kept,
    });
  return html`<section id="prediction" aria-labelledby="prediction-title" hidden=${hidden || !step}>
    <h2 id="prediction-title">${say("Prediction")}</h2>
    <div class="controls">
      <label>${say("Step")} <${Select} id="step" options=${steps.map((_, place) => [place, place + 1])}
        value=${at} set=${(value) => setAt(Number(value))} /></label>
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
      <p class="note">${say("Outlined: given. Shaded: generated, the stronger the shade the likelier. Choose a token to mark what it reads and, if it was generated, to see what else it could have been.")}</p>
    </section>
    <${Attention} ...${{ data, at }} hidden=${isHidden("attention")} />
    <${Prediction} steps=${steps} start=${run.n_prompt} hidden=${isHidden("prediction")} key=${run.run} />
    <${Pictures} id="masks" title=${say("Masks")} hidden=${isHidden("masks")}>${pictures(masks)}<//>
    <${Pictures} id="positions" title=${say("Positions")} hidden=${isHidden("positions")}>${pictures(positions)}<//>
    <${Pictures} id="more" title=${say("More of the inside")} note=${say("Each opens when it is wanted.")} list
      hidden=${isHidden("more")}>${more.map(closed)}<//>
  </main>`;
};
