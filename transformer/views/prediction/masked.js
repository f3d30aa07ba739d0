// Mask a token of an encoder's text and show the network's guesses.

import { say } from "../../web/messages.js";
import { Figure } from "../../web/figure.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page, predicts } from "../../web/store.js";

const Masked = () => {
  const part = usePart();
  const { run, query } = page;
  const position = query?.stack === "encoder" ? query.index : null; // the view's own choice
  const reads = run?.stack === "encoder" && predicts();
  const { answer, asked } = useAnswer(part, "masked", reads && { run: run.run, position });
  const none = answer && !answer.figure;
  return html`<div class="masked" hidden=${!reads} ...${part.attributes({ run: asked?.run, place: answer?.position })}>
    <h3>${say("A masked token")}</h3>
    <p class="masked-says">${
      none
        ? say(
            "An encoder reads the whole text at once, both ways, and writes nothing. This one's tokenizer has no token that hides another.",
          )
        : say(
            "An encoder reads the whole text at once, both ways, and writes nothing. It learned by guessing hidden tokens: press any token to hide it, and see what the network expects there, with what follows and without. In the text box, [MASK] hides a word.",
          )
    }</p>
    <${Figure} part=${part} name="masked" figure=${answer?.figure} hidden=${Boolean(none)} />
  </div>`;
};
export const mount = mounted(Masked);
