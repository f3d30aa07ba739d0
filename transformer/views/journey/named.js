// The finding as a sentence, and the head that it names: the large one too as a new text is read, unless
// another head was chosen by a press or a link, or a card is shown.

import { isOpeningLink } from "../../ui/static/link.js";
import { cardState } from "../../ui/static/tour.js";
import { siteNamed } from "../../web/link_text.js";
import { say } from "../../web/messages.js";
import { effect, html, useLayoutEffect } from "../../web/preact.js";
import { page, sameHead, setHead } from "../../web/store.js";
import { shared } from "./queries.js";

let own = /** @type {any} */ (null); // the last that the sentence and the picture were of
let known = ""; // the text that it was of
let isLinked = false;
effect(() => void (isOpeningLink() && (isLinked = true)));

// Whether the large head is the one that the model opens on.
const isUsual = () => {
  const { kinds, opening } = page.run;
  const at = opening.site ? siteNamed("site", opening.site, page.run) : { ...kinds[0], layer: 0 };
  return sameHead(page.head, { ...at, head: Number(opening.head ?? 0) });
};
// answer: of the server, see journey.py; null before there is one.
export const useAgreement = (answer) =>
  useLayoutEffect(() => {
    if (!answer) return;
    const { named } = answer;
    const { model, text: prompt, link } = page.run;
    const text = JSON.stringify([model, prompt]);
    const isNew = text !== known && link.text !== undefined; // and not the model's example
    const isFree = isNew && !isLinked && !shared.pinned && cardState.place === null;
    [known, isLinked] = [text, isOpeningLink()];
    if (named && isFree && (page.head === own || isUsual())) setHead(named);
    if (named && sameHead(page.head, named)) own = page.head;
  }, [answer]);

export const Finding = ({ answer: { finding, named } }) => {
  const { layer, head } = named ?? {};
  const words = say("layer {layer}, head {head}", { layer, head }).toLowerCase();
  const at = named ? finding.toLowerCase().indexOf(words) : -1;
  if (at < 0) return html`<p class="finding">${finding}</p>`;
  const end = at + words.length;
  return html`<p class="finding">${finding.slice(0, at)}<button type="button" class="pick"
    aria-label=${say("Show {head}", { head: say("layer {layer}, head {head}", { layer, head }) })}
    onClick=${() => setHead(named)}>${finding.slice(at, end)}</button>${finding.slice(end)}</p>`;
};
