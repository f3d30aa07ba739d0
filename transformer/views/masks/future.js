// Why not the future?: the visitor's text as a triangle of words. Each line is what one token may read.

import { say, sayN, sayWith } from "../../web/messages.js";
import { mounted, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page, setQuery } from "../../web/store.js";
import { Token } from "../../web/text.js";

const LINES = 6; // tokens, from the first of the text

const Line = ({ at, places, reads }) => {
  const word = (place) => {
    const label = html`<${Token} label=${page.run.labels[place]} />`;
    return reads(at, place)
      ? html`<td class="may">${label}</td>`
      : html`<td class="hidden" aria-label=${say("hidden")}>${label}</td>`;
  };
  const choose = () => setQuery({ stack: page.run.stack, index: at });
  return html`<tr>
    <th scope="row"><button type="button" onClick=${choose}><${Token} label=${page.run.labels[at]} /></button></th>
    ${places.map(word)}
  </tr>`;
};

const Future = () => {
  const part = usePart();
  if (!page.run) return html`<section class="future" ...${part.attributes({})}></section>`;
  const { labels, special, stack, run, windows } = page.run;
  const text = labels.map((_, place) => place).filter((place) => !special.includes(place));
  const places = text.slice(0, LINES);
  const isCausal = stack === "decoder";
  const window = windows.find(Boolean); // of some layers, or of all
  const isWide = windows.includes(null);
  const reads = (at, place) =>
    (!isCausal || place <= at) && (isWide || Math.abs(place - at) < Number(window));
  const token = html`<strong><${Token} label=${labels[places[0]]} /></strong>`;
  const next = labels[places[1]] && html`<strong><${Token} label=${labels[places[1]]} /></strong>`;
  const reason = isCausal
    ? next &&
      sayWith(
        "While it learned, the network had to guess what follows every token at once: at {token} it is asked for {next}. If it could read on, it would copy {next} instead of learning.",
        { token, next },
      )
    : window
      ? say(
          "This network reads both sides of every token: it has no causal mask, but one for padding and one for what is too far away.",
        )
      : say(
          "This network reads both sides of every token: it has no causal mask, only one for padding.",
        );
  const near = window && [
    sayN(
      "A token reads at most {n} token, itself included.",
      "A token reads at most {n} tokens, itself included.",
      isCausal ? window : 2 * window - 1,
    ),
    isWide && say("In some layers it reads all."),
  ];
  const all = isWide ? say("Every token reads every other") : say("What each token may read");
  return html`<section class="future" ...${part.attributes({ run })}>
    <div>
      <h3>${isCausal ? say("Why not the future?") : all}</h3>
      <p>${reason}</p>
      ${near && html`<p>${near.filter(Boolean).join(" ")}</p>`}
    </div>
    <div class="wide" tabindex="0" role="region" aria-label=${say("What each token may read")}>
      <table>
        <tbody>${places.map((at) => html`<${Line} ...${{ at, places, reads }} />`)}</tbody>
      </table>
    </div>
  </section>`;
};
export const mount = mounted(Future);
