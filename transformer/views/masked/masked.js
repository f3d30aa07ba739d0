// What an encoder says stands at each hidden place of its text, or would where a token is chosen.

import { numeral, say, sayWith } from "../../web/messages.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page, setQuery } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { Figure } from "../../web/figure.js";

const MASK = "<|mask|>";
const MOST = 4;

const percent = (share) => `${numeral((100 * share).toFixed(1))} %`;
const word = (label) => label.replace(/^␣/u, "");

// The likeliest token, large, and those after it, as wide as they are likely.
const Hidden = ({ part, server, place, label }) => {
  const { answer } = useAnswer(part, server.masked, { run: page.run.run, place });
  if (!answer?.labels) return null;
  const [best, ...others] = answer.labels.slice(0, MOST).map((one, at) => ({
    label: word(one),
    share: answer.probabilities[at],
  }));
  const bar = ({ label: other, share }) => html`<li style=${{ "--share": share }}>
    <${Token} label=${other} /> ${percent(share)}
  </li>`;
  return html`<div class="hidden-word">
    <p>${
      label === MASK
        ? say("Hidden at place {place}:", { place })
        : sayWith("If {token} were hidden:", { token: html`<${Token} label=${label} />` })
    }</p>
    <p class="hidden-best"><strong><${Token} label=${best.label} /></strong> ${percent(best.share)}</p>
    <ol class="hidden-others">${others.map(bar)}</ol>
  </div>`;
};

const HiddenWords = ({ server }) => {
  const part = usePart();
  const { run, query } = page;
  const reads = run?.stack === "encoder";
  const chosen = reads && query?.stack === "encoder" ? query.index : null;
  const masks = reads ? run.labels.flatMap((label, at) => (label === MASK ? [at] : [])) : [];
  const places = chosen === null ? masks : [...new Set([...masks, chosen])];
  return html`<section class="hidden-words" aria-label=${say("Hidden words")} hidden=${!reads}
    ...${part.shows({ run: run?.run, places: places.join(",") })}>
    ${places.map((place) => html`<${Hidden} key=${place} ...${{ part, server, place, label: run.labels[place] }} />`)}
    <p class="hidden-hint">${say("Press a token of the text to hide it.")}</p>
  </section>`;
};

// A token that is hidden from an encoder, and what the network says stands there.

const slim = ({ layout }) => (layout.margin.t = 12);

const Masked = ({ server }) => {
  const part = usePart();
  const { run, query } = page;
  const place = query?.stack === "encoder" ? query.index : null; // the view's own choice
  const reads = run?.stack === "encoder";
  const { answer, asked } = useAnswer(
    part,
    server.masked,
    reads && { run: run.run, place, dark: page.dark },
  );
  const none = answer && !answer.figure;
  return html`<div class="masked" hidden=${!reads} ...${part.shows({ run: asked?.run, place: answer?.place })}>
    <h3>${say("A masked token")}</h3>
    <p class="masked-says">${
      none
        ? say(
            "An encoder reads the whole text at once, both ways, and writes nothing. This one's tokenizer has no token that hides another.",
          )
        : say(
            "An encoder reads the whole text at once, both ways, and writes nothing. It learned by guessing hidden tokens: press any token to hide it, and see what the network says stands there, with what follows and without. In the text box, [MASK] hides a word.",
          )
    }</p>
    <div class="masked-tokens" role="group" aria-label=${say("Tokens to mask")} hidden=${Boolean(none)}>
      ${
        reads &&
        run.labels.map(
          (
            label,
            index,
          ) => html`<button type="button" aria-pressed=${String(index === answer?.place)}
          onClick=${() => setQuery({ stack: "encoder", index })}>${label}</button>`,
        )
      }
    </div>
    <${Figure} part=${part} name="masked" figure=${answer?.figure} hidden=${Boolean(none)} change=${slim} />
  </div>`;
};
export const mount = Object.assign(mounted(Masked), { hidden_words: mounted(HiddenWords) });
