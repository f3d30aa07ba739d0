// Rotary positions: shown where the run's network rotates its queries and keys.

import { fields } from "../../web/fields.js";
import { capital, say } from "../../web/messages.js";
import { siteName } from "../../web/sites.js";
import { Figure } from "../../web/figure.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { chosenRow, page } from "../../web/store.js";

// The request for the chosen head, or for the text's first head if the chosen one reads another text.
/** @type {(shown: typeof page, pair: number) => import("./types").RotaryAsked | null} */
const asked = ({ run, head }, pair) => {
  if (!run?.is_rotary) return null;
  const self = head?.kind === "self";
  const stack = self ? head.stack : run.stack;
  return {
    run: run.run,
    site: self ? siteName(head) : `${stack}.0.self`,
    head: self && typeof head.head === "number" ? head.head : 0,
    query: chosenRow(stack),
    pair,
  };
};

const Rotary = () => {
  const part = usePart();
  const { answer, asked: of } = useAnswer(part, "rotary", asked(page, fields["rotary.pair"]));
  const most = (answer?.n_pairs ?? Infinity) - 1;
  const choose = (/** @type {import("../../web/types").ChangeOf} */ { target }) =>
    (fields["rotary.pair"] = Math.max(0, Math.min(Number(target.value) || 0, most)));
  /** @typedef {import("./types").RotaryPicture} Name */
  const says = (/** @type {Name} */ name) =>
    html`<p class=${`${name}-says`}>${answer?.says && `${answer.says[name]}.`}</p>`;
  /** @param {Name} name @param {number} height */
  const picture = (name, height) =>
    html`${says(name)}<${Figure} part=${part} name=${name} figure=${answer?.[name]} height=${height} />`;
  return html`<div class="rotary" hidden=${!page.run?.is_rotary} ...${part.attributes({ run: of?.run, pair: of?.pair })}>
    <p>${say("This network adds no positions to its tokens. Instead each head rotates its queries and keys: feature i and feature i + half are a point in a plane, which is rotated by the token's position times the pair's own speed. Rotating two tokens equally leaves their score unchanged: it depends only on the distance between them.")}</p>
    <h3>${say("By what angle, token by pair")}</h3>
    ${picture("angles", 356)}
    <div class="positions-head">
      <h3>${say("The chosen head's query and the key before it")}</h3>
      <label>${capital(say("pair"))} <input class="rotary-pair" type="number" min="0" max=${most} step="1"
        value=${fields["rotary.pair"]} onChange=${choose} /></label>
    </div>
    <div class="two">
      <section>
        <h4>${say("One pair, before and after")}</h4>
        ${picture("pair", 396)}
      </section>
      <section>
        <h4>${say("The score of the two, by their distance")}</h4>
        ${picture("distance", 396)}
      </section>
    </div>
  </div>`;
};
export const mount = mounted(Rotary);
