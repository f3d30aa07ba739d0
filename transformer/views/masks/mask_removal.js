// The pictures of a batch and of its masks.

import { fontPx, labelRoom, squareCells } from "../../web/labels.js";
import { siteNamed } from "../../web/link_text.js";
import { say } from "../../web/messages.js";
import { siteName, maskOf } from "../../web/sites.js";
import { Select, Switch } from "../../web/controls.js";
import { Figure } from "../../web/figure.js";
import { useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";

export const firstOf = (kind) => ({ ...kind, layer: 0 });
const firstSite = () => siteName(firstOf(page.batch.kinds[0]));
// The place of attention that a link's fields name; as a field, "" is the first.
export const siteChosen = ({ mask_site: site }) =>
  siteNamed("mask_site", site || firstSite(), page.batch);

// As a field, "" is the first place.
export const asField = (site) => (siteName(site) === firstSite() ? "" : siteName(site));
export const isKind =
  ({ stack, kind }) =>
  (one) =>
    one.stack === stack && one.kind === kind;

const count = (many) => Array.from({ length: many }, (_, place) => [place, String(place)]);
// Which head's scores are shown; fields: of the view.
export const HeadPick = ({ fields }) => {
  const { kinds, n_heads: nHeads } = page.batch;
  const at = siteChosen(fields);
  const { n_layers: nLayers } = kinds[kinds.findIndex(isKind(at))];
  const pick = (name, options, value, set) => html`<${Select} class=${`pick-${name}`}
    ...${{ options, value }} set=${(text) => set(Number(text))} />`;
  const pickLayer = (layer) => (fields.mask_site = asField({ ...at, layer }));
  const pickHead = (head) => (fields.mask_head = head);
  return [
    html`<label>${`${say("Layer")} `}${pick("layer", count(nLayers), at.layer, pickLayer)}</label>`,
    html`<label>${`${say("Head")} `}${pick("head", count(nHeads), fields.mask_head, pickHead)}</label>`,
  ];
};

export const square = (bar) => (figure) =>
  squareCells(figure, { side: { width: figure.layout.width, height: 460 }, bar });
// Wide enough for every token's words; it scrolls where the page is narrower. Sentences are counted
// from 1 on the page.
const widened = ({ layout, data }) => {
  layout.margin = { l: 36 + fontPx(), r: 8, t: 4, b: 26 + 2 * fontPx() };
  const length = layout.xaxis.range[1] + 0.5;
  const words =
    data[0].texttemplate && !page.projector ? labelRoom({ ticktext: data[0].text.flat() }) : 0;
  layout.width = Math.max(layout.width, 58 + length * words);
  layout.yaxis.ticktext = layout.yaxis.tickvals.map((place) => String(place + 1));
};

export const Asked = ({ part, question, data, ...how }) => {
  const { answer } = useAnswer(part, question, { ...data, dark: page.dark });
  return html`<${Figure} part=${part} figure=${answer?.figure} ...${how} />`;
};

export const Padded = ({ part, name, place, label }) => {
  const { batch, stacks, texts } = page.batch;
  return html`<${Asked} part=${part} question="padded" data=${{ batch, stack: stacks[place] }}
    name=${name} wide=${label} height=${32 + 2 * fontPx() + 40 * texts.length} change=${widened} />`;
};

// What changes in one head when a mask is taken away.

const WITHOUT = {
  causal: say("Weights without the causal mask"),
  padding: say("Weights without the padding mask"),
};

// fields: of the view.
export const Removal = ({ fields }) => {
  const part = usePart();
  const { batch } = page.batch;
  const { row, mask_head: head, without: which } = fields;
  const wanted = { batch, row, site: siteName(siteChosen(fields)), head, which, dark: page.dark };
  const { answer, asked } = useAnswer(part, "removal", wanted);
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
