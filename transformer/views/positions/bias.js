// A bias on scores: shown where the run's network adds one for the distance of two tokens.

import { say } from "../../web/messages.js";
import { siteName } from "../../web/sites.js";
import { Figure } from "../../web/figure.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";

// The request for the chosen head, or for the text's first head if the chosen one reads another text.
/** @type {(shown: typeof page) => { run: string, site: string, head: number } | null} */
const asked = ({ run, head }) => {
  if (!run?.biases_scores) return null;
  const self = head?.kind === "self";
  const site = self ? siteName(head) : `${run.stack}.0.self`;
  return { run: run.run, site, head: self ? head.head : 0 };
};

const Bias = () => {
  const part = usePart();
  const { answer, asked: of } = useAnswer(part, "bias", asked(page));
  /** @param {import("./types").BiasPicture} name @param {string} heading */
  const picture = (name, heading) =>
    html`<section><h3>${heading}</h3><${Figure} part=${part} name=${name} figure=${answer?.[name]} /></section>`;
  return html`<div class="score-bias" hidden=${!page.run?.biases_scores} ...${part.attributes({ run: of?.run })}>
    <p class="bias-says">${answer?.says}</p>
    ${picture("bias", say("added for the distance"))}
    <div class="two">${picture("before", answer?.product ?? "q·k")}${picture("after", say("scores before the mask"))}</div>
  </div>`;
};
export const mount = mounted(Bias);
