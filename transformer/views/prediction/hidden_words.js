// An encoder's predictions for the chosen token if it were masked, else for the mask tokens of its text that
// next_words.js is not of.

import { percentText, say, sayWith } from "../../web/messages.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { computed, html } from "../../web/preact.js";
import { readPosition } from "../../web/selection.js";
import { page, predicts } from "../../web/store.js";
import { Token } from "../../web/text.js";

const MAX_GUESSES = 4;

/** @type {(label: string) => string} */
const word = (label) => label.replace(/^␣/u, "");

// The likeliest token, large, and those after it, as wide as they are likely.
/** @param {{ part: import("../../web/part.js").Part, position: number, label: string, isHidden: boolean }} props */
const Hidden = ({ part, position, label, isHidden }) => {
  const { answer } = useAnswer(part, "masked", { run: page.run.run, position });
  const { labels, probabilities: shares = [] } = answer ?? {};
  if (!labels) return null;
  const [best, ...others] = labels
    .slice(0, MAX_GUESSES)
    .map((guess, at) => ({ label: word(guess), share: shares[at] }));
  const bar = (
    /** @type {{ label: string, share: number }} */ { label: other, share },
  ) => html`<li style=${{ "--share": share }}>
    <${Token} label=${other} /> ${percentText(share, 1)}
  </li>`;
  return html`<div class="hidden-word">
    <p>${
      isHidden
        ? say("Hidden at place {place}:", { place: position })
        : sayWith("If {token} were hidden:", { token: html`<${Token} label=${label} />` })
    }</p>
    <p class="hidden-best"><strong><${Token} label=${best.label} /></strong> ${percentText(best.share, 1)}</p>
    <ol class="hidden-others">${others.map(bar)}</ol>
  </div>`;
};

const isEncoder = computed(() => page.run?.stack === "encoder" && predicts());
const HiddenWords = () => {
  const part = usePart();
  const run = isEncoder.value ? page.run : null;
  const { hidden: masks = [], labels = [] } = run ?? {};
  const asked = run ? readPosition() : -1; // next_words.js shows what the network says there
  const others = masks.filter((place) => place !== asked);
  const positions = run && page.query && !masks.includes(asked) ? [asked] : others;
  return html`<section class="hidden-words" aria-label=${say("Hidden words")} hidden=${!run}
    ...${part.attributes({ run: run?.run, places: positions.join(",") })}>
    ${positions.map(
      (position) => html`<${Hidden} key=${position} part=${part} position=${position}
      label=${labels[position]} isHidden=${masks.includes(position)} />`,
    )}
    <p class="hint hidden-hint">${say("Press a token of the text to hide it.")}</p>
  </section>`;
};
export const mount = mounted(HiddenWords);
