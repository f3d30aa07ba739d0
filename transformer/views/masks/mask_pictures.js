// The pictures of a batch and of its masks.

import { fontPx, labelRoom, squareCells } from "../../web/labels.js";
import { siteNamed } from "../../web/link_text.js";
import { say } from "../../web/messages.js";
import { siteName } from "../../web/sites.js";
import { Select } from "../../web/controls.js";
import { Figure } from "../../web/figure.js";
import { useAnswer } from "../../web/part.js";
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

export const Padded = ({ part, server, name, place, label }) => {
  const { batch, stacks, texts } = page.batch;
  return html`<${Asked} part=${part} question=${server.padded} data=${{ batch, stack: stacks[place] }}
    name=${name} wide=${label} height=${32 + 2 * fontPx() + 40 * texts.length} change=${widened} />`;
};
