// Edit the mask of an attention cell by cell, and run the text with it.

import { unpackBits } from "../../web/ask.js";
import { alter, experiment, interventions } from "../../web/runs.js";
import { capital, say, sayN } from "../../web/messages.js";
import { attentionOf } from "../../web/sites.js";
import { KindButtons, Select } from "../../web/controls.js";
import { mounted, useAnswer, useEvent, usePart } from "../../web/part.js";
import { html, useMemo, useRef, useState } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { Board } from "./mask_board.js";
import {
  editCell,
  editLine,
  editsByPlace,
  isEdited,
  masksOf,
  noEdits,
  planOf,
} from "./mask_edits.js";

/**
 * @typedef {import("../../web/store.js").Kind} Kind
 * @typedef {import("./mask_edits.js").Edits} Edits
 * @typedef {import("./types").BoardCell} BoardCell
 * @typedef {import("./types").BoardState} BoardState
 */

/** @type {(kind: Kind) => boolean} */
const isCausal = ({ stack, kind }) => stack === "decoder" && kind === "self";
/** @type {(kind: Kind, layer: string | number) => string} */
const placeOf = ({ stack, kind }, layer) => `${stack}.${layer}.${kind}`;

// ---- in words ----

const NOTES = {
  slid: say(
    "The text is longer than what the network reads at once: the rows and columns are " +
      "those of the last window.",
  ),
  causal: say(
    "Without the causal mask a token reads what comes after it, so the rows of earlier " +
      "tokens change as the text grows. The pictures are of the finished text; each step " +
      "saw a shorter one.",
  ),
  padding: say(
    "Without the padding mask, padding is read like text. A single text has no padding, so " +
      "nothing changes here; for several texts read together, see the Masks tab.",
  ),
  widest: say("The layers have different masks; the one shown hides the least."),
  row: say("A row with nothing allowed reads all keys equally."),
};
// A cell in words, or a label: query or key -1.
/** @type {(cell: BoardCell, board: Pick<BoardState, "labels" | "lineEdit" | "edit" | "planned">) => string} */
const cellWords = ({ query, key }, { labels, lineEdit, edit, planned }) => {
  /** @type {Record<string, string>} */
  const lines = { forbid: say("forbidden by you"), allow: say("allowed by you") };
  /** @type {(list: string[], place: number) => string} */
  const token = (list, place) => `${place} ${list[place]}`;
  const ofLine = (/** @type {string} */ line) =>
    lines[lineEdit(line) ?? ""] ?? say("not edited as a whole");
  if (key < 0)
    return say("Row of query {query}: {how}", {
      query: token(labels.queries, query),
      how: ofLine(`${query},*`),
    });
  if (query < 0)
    return say("Column of key {key}: {how}", {
      key: token(labels.keys, key),
      how: ofLine(`*,${key}`),
    });
  const mine = edit(query, key);
  const how = planned(query, key)
    ? mine
      ? say("allowed by you")
      : say("allowed")
    : mine
      ? say("forbidden by you")
      : say("hidden by the mask");
  return say("Query {query}, key {key}: {how}", {
    query: token(labels.queries, query),
    key: token(labels.keys, key),
    how,
  });
};

// ---- what the mask is and will be ----

const isApplied = (/** @type {Map<string, Edits>} */ edits) =>
  JSON.stringify(masksOf(edits)) === JSON.stringify(masksOf(editsByPlace(interventions())));

// A layer without a window, if there are such; else all have the same.
/** @type {(kind: Kind) => number} */
const widestLayer = ({ kind }) =>
  kind === "self" ? Math.max(0, page.run.windows.indexOf(null)) : 0;
/** @type {(kind: Kind) => boolean} */
const layersDiffer = ({ kind }) => kind === "self" && new Set(page.run.windows).size > 1;

// used: the mask of the shown run's attention. layer: "*" for every layer; these edits are applied before a
// layer's own, as in the network.
/** @type {(used: import("./types").UsedMask, of: import("./types").BoardOf) => BoardState} */
const boardOf = (used, { kind, layer, edits }) => {
  const at = (/** @type {string | number} */ place) => edits.get(placeOf(kind, place)) ?? noEdits();
  const own = at(layer);
  const acting = layer === "*" ? [own] : [at("*"), own];
  const plan = planOf(acting, isCausal(kind), used.window);
  const labels = { queries: used.query_labels, keys: used.key_labels };
  const across = labels.keys.length;
  const total = labels.queries.length * across;
  // "Every layer" shows the mask of one, which edits of that layer may change.
  const applied = isApplied(edits);
  const shows = applied && !(layer === "*" && isEdited(at(widestLayer(kind))));
  const cells = shows
    ? unpackBits(used.allowed, total)
    : Uint8Array.from({ length: total }, (_, cell) =>
        Number(plan.planned(Math.floor(cell / across), cell % across)),
      );
  /** @type {BoardState["lineEdit"]} */
  const lineEdit = (line) =>
    own.forbid.has(line) ? "forbid" : own.allow.has(line) ? "allow" : null;
  return {
    labels,
    applied,
    total,
    allowed: (query, key) => cells[query * across + key] === 1,
    count: cells.reduce((sum, cell) => sum + cell, 0),
    hasEmptyRow: labels.queries.some((_, row) =>
      cells.subarray(row * across, (row + 1) * across).every((cell) => !cell),
    ),
    where: say("{attention}, {layer}", {
      attention: attentionOf(kind),
      layer: layer === "*" ? say("all layers") : say("layer {layer}", { layer }),
    }),
    ...plan,
    lineEdit,
    words: (cell) => cellWords(cell, { labels, lineEdit, ...plan }),
  };
};
/** @type {(board: BoardState) => string} */
const inWords = ({ applied, where, count, total }) =>
  applied
    ? sayN(
        "{where}: {n} of {total} cells is allowed, as in the run that is shown.",
        "{where}: {n} of {total} cells are allowed, as in the run that is shown.",
        count,
        { where, total },
      )
    : sayN(
        "{where}: {n} cell would be allowed. Not yet applied.",
        "{where}: {n} cells would be allowed. Not yet applied.",
        count,
        { where },
      );

// ---- the part ----

const Editor = () => {
  const part = usePart();
  const { run, kinds, trace_start: start } = page.run;
  const [chosen, choose] = useState({ kind: 0, layer: "" }); // "": the layer that is edited alone, else all
  const [edited, setEdited] = useState(/** @type {Map<string, Edits> | null} */ (null)); // since the run was shown
  useEvent("run", () => setEdited(null));
  const kind = kinds[chosen.kind] ?? kinds[0];
  const ofRun = useMemo(() => editsByPlace(interventions()), [page.run]);
  const layers = Array.from({ length: kind.n_layers }, (_, number) => String(number));
  const altered = ["*", ...layers].filter((name) => ofRun.has(placeOf(kind, name)));
  const picked = chosen.layer || (altered.length === 1 ? altered[0] : "*");
  const layer = layers.includes(picked) ? picked : "*";
  const place = placeOf(kind, layer);
  const edits = edited ?? ofRun;
  const own = edits.get(place) ?? noEdits();

  const wanted = { run, site: placeOf(kind, layer === "*" ? widestLayer(kind) : layer) };
  const { answer, asked } = useAnswer(part, "used_mask", wanted);
  const isNew = asked?.run === run && asked.site === wanted.site;
  const last = useRef(/** @type {BoardState | null} */ (null)); // kept until the next one arrives
  last.current = useMemo(
    () => (isNew && answer ? boardOf(answer, { kind, layer, edits }) : last.current),
    [isNew, answer, edits, place],
  );
  const shown = last.current;
  const notes = shown
    ? [
        start > 0 && NOTES.slid,
        layer === "*" && layersDiffer(kind) && NOTES.widest,
        isCausal(kind) && shown.isRemoved("causal") && NOTES.causal,
        shown.isRemoved("padding") && NOTES.padding,
        shown.hasEmptyRow && NOTES.row,
      ].filter(Boolean)
    : [];

  const edit = (/** @type {(mine: Edits) => void} */ change) => {
    const all = structuredClone(edits);
    const mine = all.get(place) ?? noEdits();
    all.set(place, mine);
    change(mine);
    setEdited(all);
  };
  const change = (/** @type {BoardCell} */ { query, key }) =>
    edit((mine) => {
      if (!shown) return;
      const counts = { queries: shown.labels.queries.length, keys: shown.labels.keys.length };
      if (key < 0) editLine(mine, `${query},*`);
      else if (query < 0) editLine(mine, `*,${key}`);
      else editCell(mine, query, key, shown.before(query, key), counts);
    });
  /** @param {string} mask @param {string} words @param {boolean} hidden */
  const without = (mask, words, hidden) => html`<label hidden=${hidden}><input type="checkbox"
    class=${`no-${mask}`} checked=${own.without.has(mask)} onChange=${(
      /** @type {import("../../web/types").ChangeOf} */ { target },
    ) =>
      edit(
        (mine) => void mine.without[target.checked ? "add" : "delete"](mask),
      )} />${words}</label>`;
  const clear = () => setEdited(new Map([...edits].filter(([name]) => name !== place)));
  const apply = () =>
    alter([...interventions().filter(({ type }) => type !== "mask"), ...masksOf(edits)]);
  /** @param {string} look @param {string} sign @param {string} words */
  const key = (look, sign, words) => html`<span><i class=${look}>${sign}</i>${words}</span>`;
  return html`<section class="maskedit whatif"
    data-allowed=${shown?.count} data-applied=${shown && String(shown.applied)}
    ...${part.attributes({ run: asked?.run, site: isNew ? place : undefined })}>
    <p>${say("Which keys (columns) each query (row) may read, in every head of a layer. Click a cell to forbid or allow it. Click a token's label to forbid its whole row or column; a second click allows all of it, a third leaves it as it was.")}</p>
    <div class="whatif-head">
      <${KindButtons} name=${say("Which attention")} kinds=${kinds}
        chosen=${kinds.indexOf(kind)} choose=${(/** @type {number} */ index) => choose({ kind: index, layer: "" })} />
      <label>${`${capital(say("layer"))} `}<${Select} class="edit-layer" value=${layer}
        options=${[["*", say("all")], ...layers.map((name) => [name, name])]} set=${(/** @type {string} */ name) => choose({ ...chosen, layer: name })} /></label>
      ${without("causal", say("without the causal mask"), !isCausal(kind))}
      ${without("padding", say("without the padding mask"), false)}
    </div>
    <p class="mask-note">${notes.join(" ")}</p>
    <p class="mask-key">
      ${key("open", "", say("allowed"))}
      ${key("", "", say("hidden by the mask"))}
      ${key("forbid", "×", say("forbidden by you"))}
      ${key("allow", "+", say("allowed by you"))}
    </p>
    ${shown && html`<${Board} key=${place} part=${part} shown=${shown} change=${isNew ? change : null} />`}
    <div class="whatif-buttons">
      <button type="button" class="main apply" disabled=${!shown || shown.applied} onClick=${apply}>
        ${say("Run with this mask")}</button>
      <button type="button" class="clear" disabled=${!isEdited(own)} onClick=${clear}>
        ${say("Clear these edits")}</button>
    </div>
    <p class="mask-says" role="status">${shown && inWords(shown)}</p>
  </section>`;
};

const finding = () => {
  const edited = interventions().some(({ type }) => type === "mask");
  return edited && say("The mask is edited.");
};
export const mount = mounted(...experiment(Editor, finding));
