// The tree of a beam search.

import { say } from "../../web/messages.js";
import { Figure } from "../../web/figure.js";
import { useAnswer, usePart } from "../../web/part.js";
import { trimTop } from "../../web/plots.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";

export const SearchTree = () => {
  const part = usePart();
  const { run, dark } = page;
  const searched = (run?.hypotheses.length ?? 0) > 0;
  const { answer } = useAnswer(part, "beams", searched && { run: run.run, dark });
  const change = ({ layout }) => {
    layout.width = Math.max(answer.figure.layout.width, part.width);
    trimTop(layout, 40);
  };
  return html`<div class="tree-box" ...${part.shows({})}>
    <section class="searched" hidden=${!searched}>
      <p>${say("Each column is a step, with the best extension on top. Lines lead from a text to its extensions; the path of the chosen translation is bold.")}</p>
      <${Figure} part=${part} class="tree" figure=${searched && answer?.figure} change=${change}
        wide=${say("Tree of the beam search, scrollable")} label=${say("Tree of the beam search")} />
    </section>
  </div>`;
};
