// A classifier's labels, with their probabilities or scores.

import { say } from "../../web/messages.js";
import { Figure } from "../../web/figure.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";

const Labels = () => {
  const part = usePart();
  const { run } = page;
  const scored = Boolean(run?.head?.includes("labels"));
  const { answer, asked } = useAnswer(part, "labels", scored && { run: run.run });
  return html`<div class="labels" hidden=${!scored} ...${part.attributes({ run: asked?.run })}>
    <h3>${say("Labels")}</h3>
    <${Figure} part=${part} name="labels" figure=${scored && answer?.figure} />
  </div>`;
};
export const mount = mounted(Labels);
