// How surprised the network was by each token.

import { asSentence, say } from "../../web/messages.js";
import { useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { fitBars, TokenColumns, withoutZoom } from "./token_columns.js";

export const Surprisal = () => {
  const part = usePart();
  const { run, dark } = page;
  const { answer, asked } = useAnswer(part, "surprisal", run && { run: run.run, dark });
  const says = answer?.none ?? answer?.says;
  const change = (figure) => {
    const { layout } = figure;
    fitBars(part, 24)(figure);
    layout.xaxis.title.text = "";
    layout.margin.b -= 20;
    withoutZoom(layout);
  };
  const key = (name, words) => html`<span class=${`key ${name}`}>${words}</span>`;
  return html`<div class="surprisal-box" ...${part.shows({ run: asked?.run })}>
    <p class="surprisal-says">${says && asSentence(says)}</p>
    <div class="surprisal-body" hidden=${Boolean(answer?.none)}>
      <p>${say("How many bits each token of the text cost the network: 0 if it was sure of it, 1 if it gave it a probability of one half, 2 for a quarter. Click a bar to choose the token before it.")} ${key("given", say("given"))} ${key("generated", say("generated"))}</p>
      <${TokenColumns} part=${part} name="surprisal" figure=${answer?.figure} change=${change}
        follows first=${run?.trace_start} wide=${say("Bars of surprisal, one a token")} />
    </div>
  </div>`;
};
