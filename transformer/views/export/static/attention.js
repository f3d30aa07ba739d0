// Attention in a page that carries its own data: the grid of all heads, the chosen head large, and the
// numbers under the pointer.

import { say } from "../../../web/messages.js";
import { setReader } from "../../../web/text.js";
import { siteName, sitesOf } from "../../../web/sites.js";
import { Select } from "../../../web/controls.js";
import { HeadGrid } from "../../../web/head_grid.js";
import { numbersOf, STAGE_NAMES } from "../../../web/head_numbers.js";
import { Heatmap } from "../../../web/heatmap.js";
import { usePart } from "../../../web/part.js";
import { batch, html, useLayoutEffect, useMemo, useRef } from "../../../web/preact.js";
import { emit, page, reactive, setHead, tracedFrom } from "../../../web/store.js";
import { CellNumbers, newShown, useCell } from "../../attention/cell.js";
import {
  HeadKinds,
  headShown,
  pictureTitle,
  readStack,
  useFollowing,
} from "../../attention/numbers.js";
import { flatAtlas, flatOf } from "./pack.js";

const LEAST_PX = 360; // of the large picture
const AROUND_PX = 120; // above and below it
const SCALES = { linear: say("linear"), sqrt: say("square root"), log: say("logarithmic") };

// Of the shown head, and what the page holds of its kind of attention, see html.py.
const numbersIn = ({ layers, layer, head, allowed, labels }) => {
  const part = (stored) => {
    const all = flatOf(stored);
    const size = all.length / stored.shape[0];
    return all.subarray(head * size, (head + 1) * size);
  };
  const recorded = Object.entries(layers[layer]).map(([name, stored]) => [name, part(stored)]);
  return numbersOf(Object.fromEntries(recorded), flatOf(allowed), labels.query.length);
};
const counted = (count) => Array.from({ length: count }, (_, place) => [place, place]);
const room = (box) => {
  const height = Math.max(LEAST_PX, window.innerHeight - AROUND_PX);
  return { side: { width: box.clientWidth, height }, top: 12 };
};

// What a token reads in the shown head, see web/text.js; null where it is no query there.
const readerOf = (shown, cell, isHidden) => async (token) => {
  const row = isHidden.current ? -1 : cell.rowOf(token);
  if (row < 0) return null;
  const { keys, labels, numbers } = shown;
  const width = labels.key.length;
  const weights = numbers.weights.subarray(row * width, (row + 1) * width);
  const whose = say("Layer {layer}, head {head}", page.head);
  return { stack: keys, whose, from: token.index, weights, first: tracedFrom(keys) };
};

// at: {site, head, stage, pin}, what is to be shown; null: as it is.
export const Attention = ({ at, hidden }) => {
  const part = usePart();
  const look = useMemo(() => reactive({ stage: "weights", scale: "sqrt" }), []);
  const shown = useMemo(newShown, []);
  const cell = useCell(shown);
  useFollowing(cell);
  /** @type {any} */
  const now = headShown();
  const { stack, kind, layer, head, labels } = now;
  useMemo(() => {
    const stacks = { queries: stack, keys: readStack(now) };
    batch(() => Object.assign(shown, { numbers: numbersIn(now), labels, ...stacks }));
  }, [page.run, page.head]);
  useLayoutEffect(() => {
    if (hidden || !at) return;
    const site = sitesOf(page.run).find((one) => siteName(one) === at.site);
    setHead(/** @type {any} */ ({ ...site, head: at.head }));
    look.stage = at.stage;
    Object.assign(cell, { pin: at.pin ?? null, over: null });
  }, [page.run, at, hidden]);
  const isHidden = useRef(hidden);
  isHidden.current = hidden;
  useMemo(() => setReader(readerOf(shown, cell, isHidden)), []);
  useLayoutEffect(() => emit("reading"), [page.run, page.head]);
  const { stage, scale } = look;
  const atlas = useMemo(() => flatAtlas(now.atlas), [now.atlas]);
  const title = pictureTitle({ picture: "heatmap", stage }, now);
  const pick = (name) => (value) => setHead({ stack, kind, layer, head, [name]: Number(value) });
  const set = (name) => (value) => (look[name] = value);
  const values = { stack, kind, layer, head, stage, scale };
  const one = (words, name, options, chosen, more = {}) => html`<label>${`${words} `}<${Select}
    name=${name} options=${options} value=${values[name]} set=${chosen} ...${more} /></label>`;
  const weighs = { disabled: stage !== "weights" };
  return html`<section id="attention" aria-labelledby="attention-title" hidden=${hidden}>
    <h2 id="attention-title">${say("Attention")}</h2>
    <div class="controls">
      <${HeadKinds} at=${now} />
      ${one(say("Layer"), "layer", counted(now.n_layers), pick("layer"))}
      ${one(say("Head"), "head", counted(atlas.shape[1]), pick("head"))}
      ${one(say("Stage"), "stage", Object.entries(STAGE_NAMES), set("stage"))}
      ${one(say("Colours"), "scale", Object.entries(SCALES), set("scale"), weighs)}
    </div>
    <div class="attention" ...${part.shows(values)}>
      <div class="heads-side">
        <h3>${say("Every head")}</h3>
        <${HeadGrid} role="group" aria-label=${say("Heads; arrow keys move")} atlas=${atlas}
          chosen=${{ layer, head }} choose=${(a, b) => setHead({ stack, kind, layer: a, head: b })} />
        <p class="note">${say("Layers go down, heads across. In each picture the rows read the columns.")}</p>
      </div>
      <${CellNumbers} keys="attention-keys" ...${{ cell, shown }} />
      <div class="large-side">
        <h3 class="large-title">${title}</h3>
        <${Heatmap} numbers=${shown.numbers} labels=${shown.labels} lit=${cell.lit()} keys="attention-keys"
          look=${{ stage, scale, range: "fixed" }} ...${cell.moves} ...${{ part, title, room }} />
      </div>
    </div>
  </section>`;
};
