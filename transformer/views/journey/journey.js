// The journey: one token on its way through the network, what each part adds to the word that comes,
// and the chosen head large.

import { say, sayWith } from "../../web/messages.js";
import { kindOf, siteName } from "../../web/sites.js";
import { NumberTable } from "../../web/figure.js";
import { mounted, usePart } from "../../web/part.js";
import { html, useMemo } from "../../web/preact.js";
import { page, setHead, tracedFrom } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { newShown, useCell } from "../attention/cell.js";
import {
  firstHead,
  HeadKinds,
  headShown,
  numbersAsked,
  store,
  useAtlas,
} from "../attention/numbers.js";
import { HEATMAP, shared, useJourney } from "./asked.js";
import { Large, Readers, useReaders } from "./chosen_head.js";
import { OneLayer, Picture, signed } from "./layers.js";

const FEW = 96; // heads: more are cells until their layer is opened
const NARROW_PX = 440; // one layer at a time
const BESIDE_PX = 860; // the chosen head stands beside the picture
const SHARE = 0.54; // of the width is the picture's
const HEAD_PX = 50; // of a head in an opened layer, with the gap beside it
const HEIGHT = { least: 470, alone: 580, most: 660, beside: 70, above: 200 };

// Each kind of attention of the shown stack with its small pictures.
const useAtlases = (part, kinds) => {
  const of = (one) => one && { run: page.run.run, stack: one.stack, kind: one.kind };
  const found = [useAtlas(part, of(kinds[0])), useAtlas(part, of(kinds[1]))];
  const known = found.filter(({ atlas, of: asked }) => atlas && asked.run === page.run.run);
  return Object.fromEntries(
    known
      .filter(({ of: asked }) => asked.stack === kinds[0].stack)
      .map(({ atlas, of: asked }) => [asked.kind, atlas]),
  );
};

// What is left of the window, within bounds; what stands above on a phone is scrolled away.
const heightLeft = (element, isAlone) => {
  const { most, beside, above } = HEIGHT;
  const least = isAlone || page.projector ? HEIGHT.alone : HEIGHT.least;
  const top = Math.min(above, element.getBoundingClientRect().top + window.scrollY);
  return Math.min(most, Math.max(least, window.innerHeight - top - beside));
};

// What the picture is of: the answer, or of a stack that only prepares what is read (the encoder of a
// translator) its own stream, which adds nothing to a word.
const toldOf = (answer, stack) =>
  stack === page.run.stack
    ? answer
    : { ...answer, lens: [], ...answer.encoder, heads: null, feed_forward: null, vector: null };
export const largest = ({ heads, feed_forward: forward }) =>
  Math.max(
    0,
    ...[...Object.values(heads ?? {}), forward ?? []].flatMap((some) => Array.from(some, Math.abs)),
  );

const Legend = ({ answer }) => {
  const word = html`<strong><${Token} label=${answer.target_label} /></strong>`;
  return html`<p class="flow-legend">
    <i class="adds" />${sayWith("adds to {word}", { word })}
    <i class="takes" />${say("takes from it")}${" · "}
    ${say("the wider, the more (direct logit attribution)")}
  </p>`;
};

// The same as numbers: a row for each head and the feed-forward, a column for each layer.
const tableOf = ({ heads, feed_forward: forward }, kinds) => {
  const { n_heads: nHeads } = page.run;
  const named = kinds.flatMap(({ stack, kind }) =>
    Array.from({ length: nHeads }, (_, head) => ({
      title: `${kinds.length > 1 ? `${kindOf({ stack, kind })}, ` : ""}${say("head {head}", { head })}`,
      of: (layer) => heads[kind][layer * nHeads + head],
    })),
  );
  const rows = [...named, { title: say("feed-forward"), of: (layer) => forward[layer] }];
  return {
    rows: rows.map(({ title }) => title),
    columns: Array.from(forward, (_, layer) => say("layer {layer}", { layer })),
    value: (row, column) => signed(rows[row].of(column)),
    corner: "",
  };
};

const Steps = ({ layer, count, go }) => html`<div class="layer-steps">
  <button type="button" aria-label=${say("Previous layer")} disabled=${layer === 0} onClick=${() => go(layer - 1)}>‹</button>
  <strong>${say("Layer {layer} of {last}", { layer, last: count - 1 })}</strong>
  <button type="button" aria-label=${say("Next layer")} disabled=${layer === count - 1} onClick=${() => go(layer + 1)}>›</button>
</div>`;

const Side = ({ view, at, width, height, many }) => {
  const { answer } = view;
  const isNarrow = width < NARROW_PX;
  const go = (layer) => setHead({ ...firstHead(at), head: at.head, layer });
  const encoder = page.run.kinds.find(({ stack }) => stack !== page.run.stack);
  const source = encoder && at.stack === page.run.stack ? () => setHead(firstHead(encoder)) : null;
  const open = html`<${OneLayer} view=${{ ...view, small: true }} layer=${at.layer} />`;
  const across = Math.floor(width / HEAD_PX);
  const lines = Math.ceil((view.kinds.length * page.run.n_heads) / across) + 1; // and the feed-forward
  const room = { width, height: height - (many ? lines * HEAD_PX : 0) };
  return html`<div class="journey-side">
    ${(isNarrow || !source) && html`<${HeadKinds} at=${at} />`}
    ${isNarrow ? html`<${Steps} layer=${at.layer} count=${at.n_layers} go=${go} />` : html`<${Picture} ...${{ view, source, room }} />`}
    ${(isNarrow || many) && open}
    ${answer.heads && html`<${Legend} answer=${answer} /><${NumberTable} content=${tableOf(answer, view.kinds)} />`}
  </div>`;
};

const Body = ({ part, answer, shown, cell }) => {
  const at = /** @type {any} */ (headShown());
  const { run, query } = page;
  const kinds = run.kinds.filter(({ stack }) => stack === at.stack);
  const atlases = useAtlases(part, kinds);
  const found = useReaders(part);
  const told = toldOf(answer, at.stack);
  const many = run.n_heads * at.n_layers * kinds.length > FEW;
  const isOwn = at.stack === run.stack;
  const beside = part.width >= BESIDE_PX;
  const view = {
    ...{ answer: told, atlases, kinds, small: !many, chosen: at, shown, cell },
    choose: (head) => {
      part.clicked();
      setHead(head);
    },
    press: (head) => store.foresee(numbersAsked(HEATMAP, head)),
    point: (head) => isOwn && (shared.preview = head),
    lit: found && found.heads,
    most: largest(told),
    height: heightLeft(part.element.current, !beside),
  };
  const width = beside ? Math.round(SHARE * part.width) : part.width;
  const place = query?.stack === at.stack ? query.index : isOwn ? answer.place : null;
  const row = place === null ? null : place - tracedFrom(at.stack);
  const columns = { gridTemplateColumns: beside ? `${width}px minmax(0, 1fr)` : "minmax(0, 1fr)" };
  return html`<div class="journey-body" style=${columns}>
    <${Side} ...${{ view, at, width, many }} height=${view.height} />
    <div class="head-side">
      <${Large} ...${{ part, view, at, row }} />
      ${found ? html`<${Readers} found=${found} />` : html`<p class="finding">${answer.finding}</p>`}
    </div>
  </div>`;
};

const Journey = () => {
  const part = usePart();
  const shown = useMemo(newShown, []);
  const cell = useCell(/** @type {any} */ (shown));
  const { answer, asked } = useJourney(part);
  const { head } = page;
  const facts = answer && {
    run: asked.run,
    place: answer.place,
    site: head && siteName(head),
    head: head?.head,
  };
  return html`<div class="journey" ...${part.shows(facts ?? {})}>
    ${answer && part.width > 0 && !part.left && html`<${Body} ...${{ part, answer, shown, cell }} />`}
  </div>`;
};
export const mount = mounted(Journey);
