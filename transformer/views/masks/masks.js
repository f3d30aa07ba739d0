// Masks of a padded batch, their effect on the scores of one head, and the head without one of them.

import { FONT_PX, labelRoom, textWidth } from "../../web/labels.js";
import { fontPx } from "../../web/theme.js";
import { siteNamed, wholeNumber } from "../../web/declared.js";
import { capital, say, sayN } from "../../web/messages.js";
import { siteName, maskOf, kindOf } from "../../web/sites.js";
import { Select, Switch } from "../../web/controls.js";
import { Figure } from "../../web/figure.js";
import { useAnswer, usePart, mounted, Section } from "../../web/part.js";
import { html, useMemo } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { fields, followLinks } from "../../web/fields.js";

// The pictures of a batch and of its masks.

/**
 * @typedef {import("../../web/store.js").Site} Site
 * @typedef {{ stack: string, kind: string }} AttentionKind
 * @typedef {import("../../web/part.js").Part} Part
 */

/** @type {(kind: AttentionKind) => Site} */
const firstOf = (kind) => ({ ...kind, layer: 0 });
const firstSite = () => siteName(firstOf(page.batch.kinds[0]));
// The site that a link's fields name; "" is the first.
const siteChosen = () => siteNamed("mask_site", fields.mask_site || firstSite(), page.batch);

// In a field, "" is the first site.
const asField = (/** @type {Site} */ site) =>
  siteName(site) === firstSite() ? "" : siteName(site);
/** @type {(of: AttentionKind) => (kind: AttentionKind) => boolean} */
const isKind =
  ({ stack, kind }) =>
  (one) =>
    one.stack === stack && one.kind === kind;

// Whether layers' windows differ, so that the masks of each are shown.
/** @type {(kind: AttentionKind) => boolean} */
const layersDiffer = ({ kind }) => kind === "self" && new Set(page.batch.windows).size > 1;
// Positions hide what is outside a layer's window, if it has one; in an encoder, nothing else.
/** @type {(site: Site) => boolean} */
const hasWindow = ({ kind, layer }) => kind === "self" && page.batch.windows[layer] !== null;
const isWindow = (/** @type {Site} */ site) => site.stack === "encoder" && hasWindow(site);
/** @type {(which: string, site: Site) => string} */
const nameOf = (which, site) =>
  which === "causal" && isWindow(site) ? say("window") : maskOf(which);
const hides = (/** @type {Site} */ site) => {
  if (isWindow(site))
    return say("Hides the keys that are too far from the query, before it and after it.");
  return hasWindow(site)
    ? say("Hides the keys that come after the query, and those that are too far before it.")
    : say("Hides the keys that come after the query, in a decoder's self-attention only.");
};

/** @type {(many: number) => [number, string][]} */
const count = (many) => Array.from({ length: many }, (_, place) => [place, String(place)]);
const LayerPick = () => {
  const { kinds } = page.batch;
  const at = siteChosen();
  const { n_layers: nLayers } = kinds[kinds.findIndex(isKind(at))];
  const pick = (/** @type {string} */ layer) =>
    (fields.mask_site = asField({ ...at, layer: Number(layer) }));
  return html`<label>${`${capital(say("layer"))} `}<${Select} class="pick-layer"
    options=${count(nLayers)} value=${at.layer} set=${pick} /></label>`;
};
// Which head's scores are shown.
const HeadPick = () =>
  html`<${LayerPick} />
    <label>${`${capital(say("head"))} `}<${Select} class="pick-head"
      options=${count(page.batch.n_heads)} value=${fields.mask_head}
      set=${(/** @type {string} */ head) => (fields.mask_head = Number(head))} /></label>`;

// Larger labels leave the cells less: the picture grows with them.
const square = (/** @type {boolean} */ bar) => ({
  side: { height: (bar ? 460 : 278) + 12 * (fontPx() - FONT_PX) },
  bar,
});
// Wide enough for every label; scrolls on a narrower page. Sentences are numbered from 1 on the page.
/** @type {(figure: import("../../web/types").Figure) => void} */
const widened = ({ layout, data }) => {
  layout.margin = { l: 36 + fontPx(), r: 8, t: 4, b: 26 + 2 * fontPx() };
  const length = layout.xaxis.range[1] + 0.5;
  const words =
    data[0].texttemplate && !page.projector ? labelRoom({ ticktext: data[0].text.flat() }) : 0;
  layout.width = Math.max(layout.width, 58 + length * words);
  const rows = layout.height - layout.margin.t - layout.margin.b;
  if (textWidth(layout.yaxis.title.text) > rows) layout.yaxis.title.text = "";
  layout.yaxis.ticktext = layout.yaxis.tickvals.map((/** @type {number} */ place) =>
    String(place + 1),
  );
};

/** @param {import("./types").AnswerFigureProps} props */
const AnswerFigure = ({ part, question, data, ...how }) => {
  const { answer } = useAnswer(part, question, data);
  return html`<${Figure} part=${part} figure=${answer?.figure} ...${how} />`;
};

/** @param {{ part: Part, name: string, place: number, label: string }} props */
const Padded = ({ part, name, place, label }) => {
  const { batch, stacks, texts } = page.batch;
  return html`<${AnswerFigure} part=${part} question="padded" data=${{ batch, stack: stacks[place] }}
    name=${name} wide=${label} height=${32 + 2 * fontPx() + 30 * texts.length} change=${widened} />`;
};

const TRANSLATOR = "translate-en-fr"; // of the bundled models
// How much of a head's weight the padding mask keeps from padding, or does not.
/** @param {{ part: Part }} props */
const OnPadding = ({ part }) => {
  const { batch } = page.batch;
  const { row, mask_head: head } = fields;
  const wanted = { batch, row, site: siteName(siteChosen()), head, which: "padding" };
  const { answer } = useAnswer(part, "removal", wanted);
  const [stack] = page.batch.stacks;
  const isElsewhere = stack === "decoder" && page.models.includes(TRANSLATOR);
  return html`<p class="on-padding" role="status">${answer?.sentence}${
    isElsewhere &&
    html` <a href=${`#model=${TRANSLATOR}&tab=masks`}>${say("Look at it in the translator")}</a>`
  }</p>`;
};

// The effect of removing a mask on one head.

const Removal = () => {
  const part = usePart();
  const { batch } = page.batch;
  const { row, mask_head: head, without: which } = fields;
  const wanted = { batch, row, site: siteName(siteChosen()), head, which };
  const { answer, asked } = useAnswer(part, "removal", wanted);
  const none = answer && !answer.figure; // only masks that act here can be removed
  const facts = asked && {
    batch: asked.batch,
    row: asked.row,
    site: asked.site,
    head: asked.head,
    which: answer?.which ?? "",
    share: answer?.share ?? "",
  };
  return html`<div class="removal" ...${part.attributes(facts)}>
    <div class="masks-head">
      <${HeadPick} />
      <${Switch} name="mask-removed" title=${say("Without the")} value=${answer?.which}
        options=${(answer?.acting ?? []).map((/** @type {string} */ name) => [name, nameOf(name, siteChosen())])}
        set=${(/** @type {string} */ name) => (fields.without = name)} />
    </div>
    <p class="removal-says" role="status">${answer?.sentence}</p>
    <section hidden=${none}>
      <h4>${say("Weights without this mask")}</h4>
      <${Figure} part=${part} name="without" figure=${answer?.figure} fit=${square(true)} />
    </section>
    <p class="hint">${say("This repeats the softmax of this one head, over the scores that the network computed with its masks in place. In a network without the mask, later layers would read something else, so their scores would change too.")}</p>
  </div>`;
};

// ---- what is chosen ----

const Sentences = () => {
  const { texts, lengths, outputs } = page.batch;
  /** @param {string} text @param {number} row */
  const sentence = (
    text,
    row,
  ) => html`<button type="button" class="sentence" role="radio" key=${row}
    aria-checked=${String(row === fields.row)} onClick=${() => (fields.row = row)}>
    <b>${`${row + 1} `}</b><bdi>${text}</bdi>
    <small>${` ${sayN("{n} token", "{n} tokens", lengths[row])}`}</small>
    ${outputs[row] !== undefined && html`<span class="output">${outputs[row]}</span>`}
  </button>`;
  return html`<div class="sentences" role="radiogroup" aria-label=${say("Sentence of the batch")}>
    ${texts.map(sentence)}
  </div>`;
};

// picture(name): of a mask of this site.
/** @param {{ picture: (which: string) => import("preact").ComponentChild, site: Site }} props */
const EachMask = ({ picture, site }) => {
  const hidden = page.batch.padding_hidden;
  return html`<div class="three">
    <section>
      <h3>${capital(maskOf("padding"))}</h3>
      <p class="padding-note">${
        hidden
          ? say("Hides the keys that are not text, from every query. It depends on the sentence.")
          : say("Taken away: padding is read like text.")
      }</p>
      ${picture("padding")}
    </section>
    <section>
      <h3>${capital(nameOf("causal", site))}</h3>
      <p>${hides(site)}</p>
      ${picture("causal")}
    </section>
    <section>
      <h3>${say("Combined")}</h3>
      <p class="combined-note">${
        hidden
          ? say("A key may be read only if both masks allow it. This is what the network used.")
          : say("What the network used, without the padding mask.")
      }</p>
      ${picture("combined")}
    </section>
  </div>`;
};

const InPlace = () => {
  const part = usePart();
  const { batch, kinds } = page.batch;
  const { row } = fields;
  const at = siteChosen();
  const { stack, kind } = at;
  const byLayer = layersDiffer(at);
  const layer = byLayer ? at.layer : 0;
  const place = kinds.findIndex(isKind(at));
  const mask = (
    /** @type {string} */ which,
  ) => html`<${AnswerFigure} part=${part} question="mask" name=${which}
    data=${{ batch, row, which, stack, kind, layer }} fit=${square(false)} />`;
  const pickKind = (/** @type {string} */ index) => {
    const mask_site = asField(firstOf(kinds[Number(index)]));
    Object.assign(fields, { mask_site, without: null });
  };
  const many = kinds.length > 1;
  return html`<div class="masks" ...${part.attributes({ batch, row, site: siteName(at) })}>
    <section>
      <h3>${say("The batch, padded to one length")}</h3>
      <p>${say("Sentences differ in length, but a batch is a rectangle, so the shorter ones are filled up with padding.")}</p>
      <${Padded} name="padded" place=${0} label=${say("The batch, padded to one length")} part=${part} />
    </section>
    <div class="masks-head">
      <${Sentences} />
      <${Select} class="pick-kind" aria-label=${say("Attention")} hidden=${!many} value=${place}
        options=${kinds.map((each, index) => [index, kindOf(each)])} set=${pickKind} />
    </div>
    <div class="masks-head">
      <${OnPadding} part=${part} />
      ${byLayer && html`<${LayerPick} />`}
    </div>
    <${EachMask} picture=${mask} site=${{ stack, kind, layer }} />
  </div>`;
};

const Targets = () => {
  const part = usePart();
  return html`<div class="targets" ...${part.attributes({ batch: page.batch.batch })}>
    <${Padded} name="padded-targets" place=${1} label=${say("Their translations, which the decoder reads")}
      part=${part} />
  </div>`;
};

const Scores = () => {
  const part = usePart();
  const { batch } = page.batch;
  const { row, mask_head: head } = fields;
  const site = siteName(siteChosen());
  /** @param {string} title @param {string} stage */
  const scores = (title, stage) => html`<section>
    <h4>${title}</h4>
    <${AnswerFigure} part=${part} question="heatmap" name=${stage}
      data=${{ run: batch, site, head, stage, row }} fit=${square(false)} />
  </section>`;
  return html`<div class="mask-scores" ...${part.attributes({ batch, row, site, head })}>
    <div class="masks-head">
      <${HeadPick} />
    </div>
    <div class="three">
      ${scores(capital(say("scores before the mask")), "scores")}
      ${scores(capital(say("scores after the mask")), "masked")}
      ${scores(say("Weights: softmax of what is left"), "weights")}
    </div>
  </div>`;
};

// ---- the tab ----

// Throws an Error with a sentence for a site that the batch does not have.
const check = () => {
  if (!page.batch) return;
  siteChosen();
  wholeNumber("row", fields.row, 0, page.batch.texts.length - 1);
  wholeNumber("mask_head", fields.mask_head, 0, page.batch.n_heads - 1);
};

const Masks = () => {
  useMemo(() => followLinks("masks", check), []);
  if (!page.batch) return null;
  const { stacks } = page.batch;
  return html`<${InPlace} />
    ${
      stacks.length > 1 &&
      html`<${Section} name="targets" title=${say("Their translations, which the decoder reads")}><${Targets} /><//>`
    }
    <${Section} name="scores" title=${say("What it does to one head's scores")}><${Scores} /><//>
    <${Section} name="removal" title=${say("What changes when a mask is taken away")}>
      <${Removal} /><//>`;
};
export const mount = mounted(Masks);
