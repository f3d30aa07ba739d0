// All heads small and one large, for a notebook, in English.

import { attentionOf, headName, kindOf } from "../../../web/sites.js";
import { useCellKeys } from "../../../web/cells.js";
import { Select } from "../../../web/controls.js";
import { HeadGrid, knownName, SmallHead } from "../../../web/head_grid.js";
import { capital } from "../../../web/messages.js";
import { html, render, useState } from "../../../web/preact.js";
import { canUnpack, flatAtlas, unpack } from "./pack.js";

/** @import { Cell } from "../../../web/types" */
/** @import { NotebookKind, StoredAtlas } from "../types" */

const SIDE_PX = 330; // of the large picture

/** @param {Cell} cell @param {NotebookKind} kind @param {number} place of the head */
const readOut = ({ row, column }, kind, place) => {
  const { query_labels: queries, key_labels: keys, atlas } = kind;
  const at = row * keys.length + column;
  const weight = (atlas.pixels[place * queries.length * keys.length + at] / 255) ** 2;
  const layer = Math.floor(place / atlas.shape[1]);
  const isMasked = atlas.masked[layer * queries.length * keys.length + at];
  const reading = isMasked ? "hidden by the mask" : `weight ${weight.toFixed(2)}`;
  return html`query ${kind.queries_before + row} <bdi>${queries[row]}</bdi>${" reads "}
    key ${kind.keys_before + column} <bdi>${keys[column]}</bdi>: ${reading}`;
};

/** @param {{ kinds: NotebookKind[] }} props */
const Notebook = ({ kinds }) => {
  const [state, setState] = useState({
    kind: kinds.length - 1,
    layer: 0,
    head: 0,
    cell: /** @type {Cell | null} */ (null),
  });
  const change = (/** @type {Partial<typeof state>} */ changed) =>
    setState((now) => ({ ...now, ...changed }));
  const { layer, head, cell } = state;
  const kind = kinds[state.kind];
  const { atlas, queries_before: before, query_labels: queries, key_labels: keys } = kind;
  const last = { row: queries.length - 1, column: keys.length - 1 };
  const place = layer * atlas.shape[1] + head;
  /** @type {(layer: number, head: number) => boolean} */
  const isOff = (a, b) => kind.off[a].includes(b);
  const name = knownName(capital(headName({ layer, head })), isOff(layer, head));
  const title =
    before || kind.keys_before
      ? `${name}, the last ${queries.length} of ${before + queries.length} queries`
      : name;
  /** @param {PointerEvent & { currentTarget: HTMLElement }} event */
  const point = ({ offsetX, offsetY, currentTarget: { clientWidth, clientHeight } }) => {
    /** @type {(offset: number, all: number, most: number) => number} */
    const at = (offset, all, most) =>
      Math.min(most, Math.max(0, Math.floor((offset / all) * (most + 1))));
    const row = at(offsetY, clientHeight, last.row);
    change({ cell: { row, column: at(offsetX, clientWidth, last.column) } });
  };
  const walk = useCellKeys({
    last: () => last,
    start: () => cell,
    move: (to) => change({ cell: to }),
    pin: () => {},
    leave: () => {},
  });
  const ratio = keys.length / queries.length;
  const size = {
    width: `${SIDE_PX * Math.min(1, ratio)}px`,
    height: `${SIDE_PX * Math.min(1, 1 / ratio)}px`,
  };
  return html`<p>
      <label>Attention${" "}<${Select} id="kind" value=${state.kind}
        options=${kinds.map((each, at) => [at, kindOf(each)])}
        set=${(/** @type {string} */ at) => change({ kind: Number(at), layer: 0, head: 0, cell: null })} /></label>
      <span id="title"> ${title}</span>
    </p>
    <div class="heads">
      <${HeadGrid} id="grid" role="group" aria-label="Every head: layers across, heads down"
        atlas=${atlas} isAblated=${isOff} chosen=${{ layer, head }} choose=${(/** @type {number} */ a, /** @type {number} */ b) => change({ layer: a, head: b })} />
      <div>
        <${SmallHead} id="large" role="img" tabindex="0" style=${size} atlas=${atlas} place=${place}
          aria-label=${`${attentionOf(kind)}, ${name}`}
          onPointerMove=${point} ...${walk} />
        <p id="readout" aria-live="polite">${
          cell ? readOut(cell, kind, place) : "Point at a cell, or walk with the arrow keys."
        }</p>
      </div>
    </div>`;
};

const start = async () => {
  const place = /** @type {HTMLElement} */ (document.getElementById("shown"));
  if (!canUnpack) {
    const refused = html`<p>This browser has no DecompressionStream, so it cannot unpack the data.</p>`;
    return render(refused, place);
  }
  const data = await unpack(document.getElementById("data")?.textContent ?? "");
  const { kinds: stored } = /** @type {{ kinds: (NotebookKind & StoredAtlas)[] }} */ (data);
  const kinds = stored.map((kind) => ({ ...kind, atlas: flatAtlas(kind) }));
  return render(html`<${Notebook} kinds=${kinds} />`, place);
};
start();
