// The large picture of attention: a heatmap of a head or of many, or lines between tokens; its title and its
// switches.

import { pause } from "../../web/ask.js";
import { isAblated, SwitchOff } from "../../web/runs.js";
import { isStill, Switch } from "../../web/controls.js";
import { fieldsOf, pictureNamed, views } from "../../web/declared.js";
import { fields } from "../../web/fields.js";
import { capital, say } from "../../web/messages.js";
import { attentionOf, headName } from "../../web/sites.js";
import { knownName, SmallHead } from "../../web/head_grid.js";
import { STAGE_NAMES } from "../../web/head_numbers.js";
import { Heatmap } from "../../web/heatmap.js";
import { html, signal, useLayoutEffect, useRef, useState } from "../../web/preact.js";
import { headShown, page, nextPaint } from "../../web/store.js";
import { HeadLines } from "./head_lines.js";
import { Lines } from "./lines.js";
import { combined, headLabel, knownAtlas, pictureAsked, shownAs, useNumbers } from "./numbers.js";

const LEAST_PX = { tall: 480, low: 456 }; // the least side of the cells on a wide screen
const LOW_PX = 800; // a laptop's window
const MOST_ABOVE_PX = 200; // on a phone the content above is scrolled away
const SEEN_MS = 900; // of each stage, in motion
const TOOLS_SHOW = window.matchMedia("(hover: none)"); // always: they are above the colour bar
const TOOLS_PX = 34;

export const isHeatmap = () => !["lines", "alignment"].includes(fields.picture);
/** @type {(picture: string, kind: string) => boolean} */
export const isOffered = (picture, kind) => picture !== "alignment" || kind === "cross";

/**
 * @typedef {import("./types").ShownHead} ShownHead
 * @typedef {import("../../web/part.js").Part} Part
 */

// How often the large picture was asked to be brought into sight.
export const looked = signal(0);

// ---- words ----

/** @type {(at: ShownHead) => string} */
const titleOf = (at) => {
  const { stage: shown, depth, picture, over_heads: over } = fields;
  const { layer } = at;
  const attention = attentionOf(at);
  const last = depth === "all" ? at.n_layers - 1 : layer;
  const layers =
    last === 0 ? say("layer {layer}", { layer: 0 }) : say("layers 0 to {last}", { last });
  /** @type {Record<string, string>} */
  const whose = {
    head: headName(at),
    layer: say("the mean of the heads of layer {layer}", { layer }),
    all: say("the mean of all heads"),
  };
  const title = say(pictureNamed(picture)?.title || picture);
  const how = shownAs(at);
  const heads = say(fieldsOf("attention").which.options[how] ?? "");
  const averaged = depth === "all" ? say("all layers") : say("layer {layer}", { layer });
  /** @type {Record<string, [name: string, stage: string]>} */
  const words = {
    heatmap: [capital(headName(at)), STAGE_NAMES[shown]],
    lines: [capital(headName(at)), say("lines")],
    alignment: [capital(title), whose[over]],
    mean: [heads, averaged],
    rollout: [heads, layers],
    joint: [heads, layers],
  };
  const [first, stage] = words[how];
  return say("{name}: {attention}, {stage}", { name: first, attention, stage });
};

// The caption of a picture of several heads.
/** @type {(picture: string) => string | false} */
const noteOf = (picture) =>
  picture === "lines"
    ? say("Faint lines show all queries until you choose a token, in the text or here at the left.")
    : picture === "flow" && say(pictureNamed(picture)?.help ?? "");

// ---- motion ----

const STAGES = Object.keys(STAGE_NAMES);

// From scores to weights as one short motion: the scores, those that the mask leaves, and softmax. turn(whether
// the next stage is on its way).
/** @param {{ part: Part, turn: (isComing: boolean) => void, hidden: boolean }} props */
const Motion = ({ part, turn, hidden }) => {
  const ticket = useRef(0);
  const step = () => (fields.stage = STAGES[(STAGES.indexOf(fields.stage) + 1) % STAGES.length]);
  const play = async () => {
    if (isStill()) return step(); // each press is a step
    const mine = ++ticket.current;
    const root = part.element.current;
    const isDrawn = (/** @type {string} */ stage) => root.dataset.stage === stage && !root.ariaBusy;
    for (const stage of STAGES) {
      turn(true);
      fields.stage = stage;
      do await nextPaint();
      while (mine === ticket.current && !isDrawn(stage));
      turn(false);
      if (stage !== "weights") await pause(SEEN_MS);
      if (mine !== ticket.current || fields.stage !== stage) return;
    }
  };
  return html`<button type="button" class="motion" hidden=${hidden} onClick=${play}>${say("Watch softmax")}</button>`;
};

// ---- a switch for each field ----

/** @param {import("./types").FieldSwitchProps} props */
const FieldSwitch = ({ field, class: look, words = {}, offers = Boolean, hidden, disabled }) => {
  const { title, options } = fieldsOf("attention")[field];
  /** @type {[string, string][]} */
  const entries = Object.entries(options);
  const offered = entries
    .filter(([value]) => offers(value))
    .map(([value, text]) => [value, words[value] ?? say(text)]);
  return html`<${Switch} name=${`attention-${field}`} title=${say(title)} options=${offered}
    value=${fields[field]} set=${(/** @type {string} */ value) => (fields[field] = value)} data-field=${field}
    class=${look} hidden=${hidden ?? offered.length < 2} disabled=${disabled} />`;
};
// at: the chosen head; motion: a button among them; isMore: whether the rarer ones are shown.
/** @param {{ at: ShownHead, motion: import("preact").ComponentChild, isMore: boolean,
 *   showMore: (isMore: boolean) => void }} props */
const Switches = ({ at, motion, isMore, showMore }) => {
  const { kind, layer } = at;
  const { picture, stage } = fields;
  const offers = (/** @type {string} */ value) =>
    isOffered(value, kind) && (isMore || value === picture || value !== "flow");
  /** @param {string} field @param {string} look @param {boolean} isShown @param {Record<string, string>} [words] */
  const one = (field, look, isShown, words = {}) =>
    html`<${FieldSwitch} field=${field} class=${look} hidden=${!isShown} words=${words}
      disabled=${["scale", "range"].includes(field) && isGreyed} />`;
  const upTo = combined(at) === "mean" || layer === 0 ? `${layer}` : say("0 to {layer}", { layer });
  const isColoured = isMore && isHeatmap();
  const isGreyed = picture === "heatmap" && stage !== "weights";
  return html`<${FieldSwitch} field="picture" class="pictures" offers=${offers} />
    ${one("stage", "stages", picture === "heatmap")}
    ${motion}
    ${one("which", "combining", picture === "flow" && kind === "self")}
    ${one("depth", "depths", picture === "flow", { layer: upTo })}
    ${one("line_heads", "over", picture === "lines")}
    ${one("threshold", "thresholds", picture === "lines")}
    ${one("over_heads", "over", picture === "alignment")}
    ${one("by", "by", picture === "alignment")}
    <button type="button" class="more-button" aria-expanded=${String(isMore)}
      onClick=${() => showMore(!isMore)}>${isMore ? say("Less") : say("More")}</button>
    ${one("scale", "scales", isColoured)}
    ${one("range", "ranges", isColoured)}`;
};

// ---- all of it ----

const ablates = views.some(({ name }) => name === "ablation"); // whether the page has such an experiment

// The room for the cells: the rest of the window.
/** @type {(root: HTMLElement) => (box: HTMLElement) => import("../../web/types").SquareFit} */
const room = (root) => (box) => {
  const start = root.getBoundingClientRect().top + window.scrollY;
  const above = box.getBoundingClientRect().top - root.getBoundingClientRect().top;
  const height =
    window.innerHeight -
    24 -
    (page.projector ? start - 16 : Math.min(start, MOST_ABOVE_PX)) -
    above;
  const side = { width: box.clientWidth, height: Math.max(360, height) };
  const top = TOOLS_SHOW.matches ? TOOLS_PX : 12;
  const least = window.innerHeight < LOW_PX ? LEAST_PX.low : LEAST_PX.tall;
  // Projected, all of it is in sight, with fewer labels.
  return { side, top, pan: true, isShort: page.projector, least: page.projector ? 0 : least };
};

/** @param {{ view: import("./types").AttentionView }} props */
export const Large = ({ view: { part, shown, cell } }) => {
  const at = headShown();
  useNumbers(part, shown, at && pictureAsked(at));
  const [isTurning, turn] = useState(false);
  const [isMore, showMore] = useState(false); // here, since the switches go while the picture changes
  const { picture, stage, scale, range, over_heads: over } = fields;
  /** @type {{ current: HTMLElement }} */
  const side = useRef(null);
  useLayoutEffect(() => {
    if (!looked.value) return;
    side.current.scrollIntoView({ block: "nearest", behavior: isStill() ? "instant" : "smooth" });
  }, [looked.value]);
  if (!at || !isOffered(picture, at.kind)) return html`<div class="large-side" ref=${side}></div>`;

  const ofLayer = picture === "lines" && fields.line_heads === "layer";
  const ofOne =
    ["heatmap", "lines"].includes(picture) || (picture === "alignment" && over === "head");
  const isOff = ofOne && isAblated(at);
  const title = knownName(titleOf(at), isOff);
  const label = ofOne && headLabel(at);
  const atlas = knownAtlas(at);
  const place = at.layer * page.run.n_heads + at.head;
  const meanwhile =
    atlas && html`<${SmallHead} class="first-head" atlas=${atlas} place=${place} />`;
  const motion = html`<${Motion} part=${part} turn=${turn} hidden=${picture !== "heatmap"} />`;
  const note = noteOf(picture);
  // Numbers of several heads, which have no scores, are shown until those of the head arrive.
  const isOfHead = picture === "heatmap" && shown.numbers?.scores !== null;
  const look = { stage: isOfHead ? stage : "weights", scale, range };
  return html`<div class=${isTurning ? "large-side turning" : "large-side"} ref=${side}>
    <div class="large-head">
      <h3 class="large-title">${title}${label && html`<span class="head-label">${label}</span>`}</h3>
      <span hidden=${!ofOne || !ablates}><${SwitchOff} of=${at} /></span>
      <${Switches} at=${at} motion=${motion} isMore=${isMore} showMore=${showMore} />
      <p class="picture-note" hidden=${!note}>${note}</p>
    </div>
    ${
      isHeatmap()
        ? html`<div class=${isOff ? "panned off" : "panned"}><${Heatmap} key=${shown.refusals} numbers=${shown.numbers} lit=${cell.lit()}
            keys="attention-keys" room=${room(part.element.current)} part=${part}
            over=${cell.moves.over} pin=${cell.moves.pin} start=${cell.moves.start}
            meanwhile=${meanwhile} look=${look} title=${title} /></div>`
        : html`<${ofLayer ? HeadLines : Lines} part=${part} cell=${cell} at=${at} />`
    }
  </div>`;
};
