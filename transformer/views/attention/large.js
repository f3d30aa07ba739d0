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

const LEAST_PX = 480; // the least side of the cells on a wide screen
const MOST_ABOVE_PX = 200; // on a phone the content above is scrolled away
const SEEN_MS = 900; // of each stage, in motion
const TOOLS_SHOW = window.matchMedia("(hover: none)"); // always: they are above the colour bar
const TOOLS_PX = 34;

export const isHeatmap = () => !["lines", "alignment"].includes(fields.picture);
export const isOffered = (picture, kind) => picture !== "alignment" || kind === "cross";

// How often the large picture was asked to be brought into sight.
export const looked = signal(0);

// ---- words ----

const titleOf = (at) => {
  const { stage: shown, depth, picture, over_heads: over } = fields;
  const { layer } = at;
  const attention = attentionOf(at);
  const last = depth === "all" ? at.n_layers - 1 : layer;
  const layers =
    last === 0 ? say("layer {layer}", { layer: 0 }) : say("layers 0 to {last}", { last });
  const whose = {
    head: headName(at),
    layer: say("the mean of the heads of layer {layer}", { layer }),
    all: say("the mean of all heads"),
  };
  const title = say(pictureNamed(picture).title || picture);
  const how = shownAs(at);
  const heads = say(fieldsOf("attention").which.options[how] ?? "");
  const averaged = depth === "all" ? say("all layers") : say("layer {layer}", { layer });
  const [first, stage] = {
    heatmap: [capital(headName(at)), STAGE_NAMES[shown]],
    lines: [capital(headName(at)), say("lines")],
    alignment: [capital(title), whose[over]],
    mean: [heads, averaged],
    rollout: [heads, layers],
    joint: [heads, layers],
  }[how];
  return say("{name}: {attention}, {stage}", { name: first, attention, stage });
};

// The caption of a picture of several heads.
const noteOf = (picture) =>
  picture === "lines"
    ? say("Faint lines show all queries until you choose a token, in the text or here at the left.")
    : picture === "flow" && say(pictureNamed(picture)?.help ?? "");

// ---- motion ----

const STAGES = Object.keys(STAGE_NAMES);

// From scores to weights as one short motion: the scores, those that the mask leaves, and softmax. turn(whether
// the next stage is on its way).
const Motion = ({ part, turn, hidden }) => {
  const ticket = useRef(0);
  const step = () => (fields.stage = STAGES[(STAGES.indexOf(fields.stage) + 1) % STAGES.length]);
  const play = async () => {
    if (isStill()) return step(); // each press is a step
    const mine = ++ticket.current;
    const root = part.element.current;
    const isDrawn = (stage) => root.dataset.stage === stage && !root.ariaBusy;
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

// words: {value: other words}; offers(value): whether it can be chosen.
const FieldSwitch = ({ field, words = {}, offers = Boolean, ...how }) => {
  const { title, options } = fieldsOf("attention")[field];
  const offered = Object.entries(options)
    .filter(([value]) => offers(value))
    .map(([value, text]) => [value, words[value] ?? say(text)]);
  return html`<${Switch} name=${`attention-${field}`} title=${say(title)} options=${offered}
    value=${fields[field]} set=${(value) => (fields[field] = value)} data-field=${field}
    hidden=${offered.length < 2} ...${how} />`;
};
// at: the chosen head; motion: a button among them.
const Switches = ({ at, motion }) => {
  const { kind, layer } = at;
  const { picture, stage } = fields;
  const [isMore, showMore] = useState(false);
  const offers = (value) =>
    isOffered(value, kind) && (isMore || value === picture || value !== "flow");
  const one = (field, look, isShown, more = {}) =>
    html`<${FieldSwitch} class=${look} hidden=${!isShown} ...${{ field, ...more }} />`;
  const upTo = combined(at) === "mean" || layer === 0 ? `${layer}` : say("0 to {layer}", { layer });
  const isColoured = isMore && isHeatmap();
  const disabled = picture === "heatmap" && stage !== "weights";
  return html`<${FieldSwitch} field="picture" class="pictures" offers=${offers} />
    ${one("stage", "stages", picture === "heatmap")}
    ${motion}
    ${one("which", "combining", picture === "flow" && kind === "self")}
    ${one("depth", "depths", picture === "flow", { words: { layer: upTo } })}
    ${one("line_heads", "over", picture === "lines")}
    ${one("threshold", "thresholds", picture === "lines")}
    ${one("over_heads", "over", picture === "alignment")}
    ${one("by", "by", picture === "alignment")}
    <button type="button" class="more-button" aria-expanded=${String(isMore)}
      onClick=${() => showMore(!isMore)}>${isMore ? say("Less") : say("More")}</button>
    ${one("scale", "scales", isColoured, { disabled })}
    ${one("range", "ranges", isColoured, { disabled })}`;
};

// ---- all of it ----

const ablates = views.some(({ name }) => name === "ablation"); // whether the page has such an experiment

// The room for the cells: the rest of the window.
const room = (root) => (box) => {
  const top = root.getBoundingClientRect().top + window.scrollY;
  const above = box.getBoundingClientRect().top - root.getBoundingClientRect().top;
  const height = window.innerHeight - 24 - Math.min(top, MOST_ABOVE_PX) - above;
  const side = { width: box.clientWidth, height: Math.max(360, height) };
  return { side, top: TOOLS_SHOW.matches ? TOOLS_PX : 12, least: LEAST_PX, pan: true };
};

export const Large = ({ view: { part, shown, cell } }) => {
  const at = headShown();
  useNumbers(part, shown, at && pictureAsked(at));
  const [isTurning, turn] = useState(false);
  const { picture, stage, scale, range, over_heads: over } = fields;
  const side = useRef(/** @type {any} */ (null));
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
  const meanwhile = atlas && html`<${SmallHead} class="first-head" ...${{ atlas, place }} />`;
  const motion = html`<${Motion} ...${{ part, turn }} hidden=${picture !== "heatmap"} />`;
  const note = noteOf(picture);
  // Numbers of several heads, which have no scores, are shown until those of the head arrive.
  const isOfHead = picture === "heatmap" && shown.numbers?.scores !== null;
  const look = { stage: isOfHead ? stage : "weights", scale, range };
  return html`<div class=${isTurning ? "large-side turning" : "large-side"} ref=${side}>
    <div class="large-head">
      <h3 class="large-title">${title}${label && html`<span class="head-label">${label}</span>`}</h3>
      <span hidden=${!ofOne || !ablates}><${SwitchOff} of=${at} /></span>
      <${Switches} ...${{ at, motion }} />
      <p class="picture-note" hidden=${!note}>${note}</p>
    </div>
    ${
      isHeatmap()
        ? html`<div class=${isOff ? "panned off" : "panned"}><${Heatmap} key=${shown.refusals} numbers=${shown.numbers} lit=${cell.lit()}
            keys="attention-keys" room=${room(part.element.current)} ...${cell.moves}
            ...${{ part, meanwhile, look, title }} /></div>`
        : html`<${ofLayer ? HeadLines : Lines} ...${{ part, cell, at }} />`
    }
  </div>`;
};
