// The large picture of attention: a heatmap of a head or of many, or lines between tokens.

import { isAblated, SwitchOff } from "../../web/runs.js";
import { isStill } from "../../web/controls.js";
import { pictureNamed, views } from "../../web/declared.js";
import { useAnswer } from "../../web/part.js";
import { numeral, say } from "../../web/messages.js";
import { siteName } from "../../web/sites.js";
import { Figure, useMeta } from "../../web/figure.js";
import { knownName, SmallHead } from "../../web/head_grid.js";
import { Heatmap } from "../../web/heatmap.js";
import { html, useLayoutEffect, useRef } from "../../web/preact.js";
import { headShown, page, sameToken, setQuery, nextPaint } from "../../web/store.js";
import { headLabel } from "./metrics_cache.js";
import { isHeatmap, pictureTitle, Switches, looked, useNumbers } from "./numbers.js";

const LEAST_PX = 480; // the least side of the cells on a wide screen
const MOST_ABOVE_PX = 200; // on a phone the content above is scrolled away
const SEEN_MS = 900; // of each stage, in motion
const TOOLS_SHOW = window.matchMedia("(hover: none)"); // always: they are above the colour bar
const TOOLS_PX = 34;
const MOST_ROWS = 240; // of the table: lines of all queries can be thousands, the strongest come first

// The caption of a picture of several heads.
const noteOf = (picture) =>
  picture === "lines"
    ? say("Faint lines show all queries until you choose a token, in the text or here at the left.")
    : picture === "flow" && say(pictureNamed(picture)?.help ?? "");

// ---- lines ----

const named = (labels, at) => `${at} ${labels[at]}`;
// The numbers of the lines, one row per line; null without lines.
const tableOf = (names, { from, to, links }) => {
  const words = links
    .slice(0, MOST_ROWS)
    .map(([a, b, weight]) => [named(from, a), named(to, b), numeral(weight.toFixed(4))]);
  return words.length === 0
    ? null
    : {
        rows: words.map((_, place) => String(place)),
        columns: [...names, say("weight")],
        value: (row, column) => words[row][column],
        corner: say("line"),
      };
};
const spoken = ({ from, to, links }) =>
  links
    .slice(0, 12)
    .map(([a, b, weight]) =>
      say("{from} reads {to}, {weight}", {
        from: from[a],
        to: to[b],
        weight: numeral(weight.toFixed(2)),
      }),
    )
    .join("; ") || say("No line.");
const linked = (meta) => ({
  from: meta.query_labels ?? meta.target_labels,
  to: meta.key_labels ?? meta.source_labels,
  links: meta.links,
});
// Lines between two columns of tokens: of one head's queries, or an alignment.
const Lines = ({ part, fields, cell, at }) => {
  const { picture, over_heads: over, by, threshold } = fields;
  const isAlignment = picture === "alignment";
  const row = cell.pin?.row ?? cell.rowOf(page.query);
  const { run } = page.run;
  const wanted = isAlignment
    ? { layer: over === "all" ? "mean" : at.layer, head: over === "head" ? at.head : "mean", by }
    : {
        site: siteName(at),
        head: at.head,
        query: row >= 0 ? row : null,
        threshold: Number(threshold),
      };
  const question = isAlignment ? "alignment" : "lines";
  const { answer } = useAnswer(part, question, { run, ...wanted });
  const meta = useMeta(answer?.figure);
  const name = isAlignment ? say("Most-read source tokens") : say("Lines from queries to keys");
  const columns = isAlignment ? [say("target"), say("source")] : [say("query"), say("key")];
  const pick = ({ points: [{ x, y }] }) => {
    if (isAlignment || x !== 0) return;
    const token = cell.tokenOf(at.stack, y);
    setQuery(sameToken(page.query, token) ? null : token);
  };
  return html`<div>
    <${Figure} part=${part} name="lines" class="lines" figure=${answer?.figure}
      wide=${name} on=${{ plotly_click: pick }}
      label=${meta.links && `${name}. ${spoken(linked(meta))}`}
      table=${({ layout }) => tableOf(columns, linked(layout.meta))} />
  </div>`;
};

// ---- motion ----

const STAGES = ["scores", "masked", "weights"];

// From scores to weights as one short motion: the scores, those that the mask leaves, and softmax.
const Motion = ({ view: { part, fields, turning }, hidden }) => {
  const ticket = useRef(0);
  const step = () => (fields.stage = STAGES[(STAGES.indexOf(fields.stage) + 1) % STAGES.length]);
  const play = async () => {
    if (isStill()) return step(); // each press is a step
    const mine = ++ticket.current;
    const root = part.element.current;
    const isDrawn = (stage) => root.dataset.stage === stage && !root.ariaBusy;
    for (const stage of STAGES) {
      turning.value = true;
      fields.stage = stage;
      do await nextPaint();
      while (mine === ticket.current && !isDrawn(stage));
      turning.value = false;
      if (stage !== "weights") await new Promise((done) => setTimeout(done, SEEN_MS));
      if (mine !== ticket.current || fields.stage !== stage) return;
    }
  };
  return html`<button type="button" class="motion" hidden=${hidden} onClick=${play}>${say("Watch softmax")}</button>`;
};

// ---- the chosen head, switched off or on again, where the page has such an experiment ----

const ablates = views.some(({ name }) => name === "ablation");

// ---- all of it ----

// The room for the cells: the rest of the window.
const room = (root) => (box) => {
  const top = root.getBoundingClientRect().top + window.scrollY;
  const above = box.getBoundingClientRect().top - root.getBoundingClientRect().top;
  const height = window.innerHeight - 24 - Math.min(top, MOST_ABOVE_PX) - above;
  const side = { width: box.clientWidth, height: Math.max(360, height) };
  return { side, top: TOOLS_SHOW.matches ? TOOLS_PX : 12, least: LEAST_PX, pan: true };
};

export const Large = ({ view }) => {
  const { part, fields, shown, cell } = view;
  const at = headShown();
  useNumbers(view, at);
  const { picture, which, stage, scale, range, by, depth, over_heads: over } = fields;
  // The text's shading follows this picture.
  useLayoutEffect(() => void (page.readings += 1), [shown.key, picture, which, by, depth, over]);
  const side = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    if (!looked.value) return;
    side.current.scrollIntoView({ block: "nearest", behavior: isStill() ? "instant" : "smooth" });
  }, [looked.value]);
  if (!at) return html`<div class="large-side" ref=${side}></div>`;

  const ofOne =
    ["heatmap", "lines"].includes(picture) || (picture === "alignment" && over === "head");
  const isOff = ofOne && isAblated(at);
  const title = knownName(pictureTitle(fields, at), isOff);
  const label = ofOne && headLabel(page.run.run, siteName(at), at.head);
  const { small } = shown;
  const atlas = small?.stack === at.stack && small.kind === at.kind && small.atlas;
  const place = at.layer * page.run.n_heads + at.head;
  const meanwhile = atlas && html`<${SmallHead} class="first-head" ...${{ atlas, place }} />`;
  const motion = html`<${Motion} view=${view} hidden=${picture !== "heatmap"} />`;
  const note = noteOf(picture);
  const look = { stage: picture === "heatmap" ? stage : "weights", scale, range };
  return html`<div class="large-side" ref=${side}>
    <div class="large-head">
      <h3 class="large-title">${title}${label && html`<span class="head-label">${label}</span>`}</h3>
      <span hidden=${!ofOne || !ablates}><${SwitchOff} of=${at} /></span>
      <${Switches} ...${{ fields, at, motion }} />
      <p class="picture-note" hidden=${!note}>${note}</p>
    </div>
    ${
      isHeatmap(picture)
        ? html`<div class=${isOff ? "panned off" : "panned"}><${Heatmap} numbers=${shown.numbers} figure=${shown.figure} lit=${cell.lit()}
            keys="attention-keys" room=${room(part.element.current)} ...${cell.moves}
            ...${{ part, meanwhile, look, title }} /></div>`
        : html`<${Lines} ...${{ part, fields, cell, at }} />`
    }
  </div>`;
};
