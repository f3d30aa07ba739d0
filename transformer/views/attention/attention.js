// Attention: the grid of all heads, the chosen head large, and the numbers under the pointer.

import { readStack } from "../../web/selection.js";
import { fields, followLinks } from "../../web/fields.js";
import { isAblated } from "../../web/runs.js";
import { wholeNumber } from "../../web/declared.js";
import { say } from "../../web/messages.js";
import { setReader } from "../../web/text.js";
import { siteName } from "../../web/sites.js";
import { HeadGrid, MANY, sharedKeys } from "../../web/head_grid.js";
import { mounted, usePart } from "../../web/part.js";
import { computed, html, signal, useLayoutEffect, useMemo, useState } from "../../web/preact.js";
import { headShown, labelsOf, page, setHead, setQuery, tracedFrom } from "../../web/store.js";
import { HeadFinding } from "./finding.js";
import { knownHeads } from "./metrics_cache.js";
import { CellNumbers, newShown, useCell } from "./cell.js";
import { Large } from "./large.js";
import {
  HeadKinds,
  isHeatmap,
  numbersAsked,
  store,
  tokenReader,
  useAtlas,
  useFollowing,
  isOffered,
} from "./numbers.js";

// ---- every head ----

const Heads = ({ view }) => {
  const part = usePart();
  const at = headShown();
  const { stack = "", kind = "" } = at ?? {};
  const { atlas, of } = useAtlas(part, at && { run: page.run.run, stack, kind });
  const [isZoomed, zoom] = useState(false);
  useLayoutEffect(() => {
    view.shown.small = atlas && { atlas, ...of };
  }, [atlas]);

  const choose = (layer, head) => {
    view.part.startTimer();
    setHead({ stack, kind, layer, head });
  };
  const press = (layer, head) => {
    if (isHeatmap(fields.picture))
      view.store.prefetch(numbersAsked(fields, { stack, kind, layer, head }));
  };
  const isHere = of?.stack === stack && of?.kind === kind;
  return html`<div class="heads-side" ...${part.attributes(of ?? {})}>
    <${HeadKinds} at=${at} />
    <h3>${say("Every head")} <small class="hint">${`${say("head")} ↓ ${say("layer")} →`}</small></h3>
    <button type="button" class="zoom" aria-pressed=${String(isZoomed)} onClick=${() => zoom(!isZoomed)}
      hidden=${!(atlas?.shape[1] > MANY)}>${say("Larger pictures")}</button>
    ${
      atlas &&
      html`<${HeadGrid} role="group" aria-label=${say("Layers and heads; arrow keys move")} chosen=${isHere ? at : null}
        signs=${[...page.marks.heads, ...((of && knownHeads(of)) ?? [])]} share=${page.run.heads_per_key}
        isAblated=${(layer, head) => isAblated({ ...of, layer, head })}
        ...${{ atlas, choose, press, isZoomed }} />`
    }
    <${HeadFinding} />
    <p class="hint">${say("In each picture the rows read the columns.")}</p>
  </div>`;
};

// ---- the view ----

const Numbers = ({ view: { cell, shown } }) => {
  const at = headShown();
  const more = at && isHeatmap(fields.picture) && sharedKeys(at.head, page.run.heads_per_key);
  return html`<${CellNumbers} keys="attention-keys" ...${{ cell, shown, more }} />`;
};

// The pinned cell in a link: "row,column", or "row" alone.
const cellAt = (text) => {
  const [row, column] = text.split(",");
  return { row: Number(row), column: column ? Number(column) : null };
};
const pinned = {
  at: computed(() => (fields.cell ? cellAt(fields.cell) : null)),
  get value() {
    return this.at.value;
  },
  set value(at) {
    fields.cell = at ? [at.row, at.column].filter((place) => place !== null).join() : "";
  },
};
// The token of a linked cell's row becomes the query.
const follow = () => {
  const at = headShown();
  if (fields.cell === "" || !at) return;
  const last = (stack) => labelsOf(stack).length - tracedFrom(stack) - 1;
  const [row, column] = fields.cell.split(",");
  const index = wholeNumber("cell's row", row, 0, last(at.stack)) + tracedFrom(at.stack);
  if (column) wholeNumber("cell's column", column, 0, last(readStack(at)));
  setQuery({ stack: at.stack, index });
};

const newView = (part) => {
  followLinks("attention", follow);
  const shown = newShown({ small: /** @type {any} */ (null) }); // all heads small
  setReader(tokenReader(fields, () => !part.isHidden));
  return { part, fields, shown, store, turning: signal(false) };
};

export const Attention = () => {
  const part = usePart();
  const made = useMemo(() => newView(part), []);
  const { shown, turning } = made;
  const cell = useCell(/** @type {any} */ (shown), pinned);
  const view = useMemo(() => ({ ...made, cell }), []);
  useFollowing(cell);
  const { isHidden } = part;
  useLayoutEffect(() => void (page.readings += 1), [isHidden]);

  const at = headShown();
  const { stage, scale, range } = fields;
  const picture = at && !isOffered(fields.picture, at.kind) ? "heatmap" : fields.picture;
  useLayoutEffect(() => void (fields.picture = picture), [picture]);
  const { row, column } = cell.lit();
  const facts = at && {
    site: siteName(at),
    head: at.head,
    ...{ stage, scale, range, picture, run: page.run.run },
  };
  const sides = useMemo(
    () => html`<${Heads} view=${view} /><${Numbers} view=${view} /><${Large} view=${view} />`,
    [],
  );
  return html`<div class=${turning.value ? "attention turning" : "attention"}
    data-row=${row ?? ""} data-column=${column ?? ""} ...${part.attributes(facts ?? {})}>${sides}</div>`;
};
export const mount = mounted(Attention);
