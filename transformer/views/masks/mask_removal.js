// What changes in one head when a mask is taken away.

import { say } from "../../web/messages.js";
import { maskOf, siteName } from "../../web/sites.js";
import { Switch } from "../../web/controls.js";
import { Figure } from "../../web/figure.js";
import { useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { HeadPick, siteChosen, square } from "./mask_pictures.js";

const WITHOUT = {
  causal: say("Weights without the causal mask"),
  padding: say("Weights without the padding mask"),
};

// fields: of the view.
export const Removal = ({ server, fields }) => {
  const part = usePart();
  const { batch } = page.batch;
  const { row, mask_head: head, without: which } = fields;
  const wanted = { batch, row, site: siteName(siteChosen(fields)), head, which, dark: page.dark };
  const { answer, asked } = useAnswer(part, server.removal, wanted);
  const none = answer?.acting.length === 0; // only the masks that act here can be taken away
  const facts = asked && {
    batch: asked.batch,
    row: asked.row,
    site: asked.site,
    head: asked.head,
    which: answer.which ?? "",
    share: answer.share ?? "",
  };
  const picture = (name, title, show) => html`<section>
    <h4>${title}</h4>
    <${Figure} part=${part} name=${name} figure=${answer?.figures?.[show]} hidden=${none}
      change=${square(true)} />
  </section>`;
  return html`<div class="removal" ...${part.shows(facts)}>
    <div class="masks-head">
      <${HeadPick} fields=${fields} />
      <${Switch} name="mask-removed" title=${say("Without the")} value=${answer?.which}
        options=${(answer?.acting ?? []).map((name) => [name, maskOf(name)])}
        set=${(name) => (fields.without = name)} />
    </div>
    <p class="removal-says" role="status">${none ? say("No other mask applies here.") : answer?.sentence}</p>
    <div class="two removal-pictures" hidden=${none}>
      ${picture("without", answer && WITHOUT[answer.which], "weights")}
      ${picture("changes", say("What changes: these weights minus the network's own"), "difference")}
    </div>
    <p class="hint">${say("This repeats the softmax of this one head, over the scores that the network computed with its masks in place. In a network without the mask, later layers would read something else, so their scores would change too.")}</p>
  </div>`;
};
