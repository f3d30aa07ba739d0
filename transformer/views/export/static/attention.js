// Attention in a page that carries its own data: the grid of all heads, the chosen head large, and the
// numbers under the pointer.

import { say } from "../../../web/messages.js";
import { setReader } from "../../../web/text.js";
import { attentionOf, kindOf } from "../../../web/sites.js";
import { Select } from "../../../web/controls.js";
import { HeadGrid, headName } from "../../../web/head_grid.js";
import { numbersOf, STAGE_NAMES } from "../../../web/head_numbers.js";
import { Heatmap } from "../../../web/heatmap.js";
import { usePart } from "../../../web/part.js";
import { computed, html, useLayoutEffect, useMemo, useRef } from "../../../web/preact.js";
import { emit, reactive, setHead, tracedFrom } from "../../../web/store.js";
import { CellNumbers, useCell } from "../../attention/cell.js";
import { readStack } from "../../attention/numbers.js";
import { flatOf } from "./pack.js";

const LEAST_PX = 360; // of the large picture
const AROUND_PX = 120; // above and below it
const SCALES = { linear: say("linear"), sqrt: say("square root"), log: say("logarithmic") };

// A head's numbers from what the page holds of its kind of attention.
const numbersIn = ({ layers, allowed, query_labels: queries }, layer, head) => {
  const part = (stored) => {
    const all = flatOf(stored);
    const size = all.length / stored.shape[0];
    return all.subarray(head * size, (head + 1) * size);
  };
  const recorded = Object.entries(layers[layer]).map(([name, stored]) => [name, part(stored)]);
  return numbersOf(Object.fromEntries(recorded), flatOf(allowed), queries.length);
};

const newView = (data) => {
  const state = reactive({ data, kind: 0, layer: 0, head: 0, stage: "weights", scale: "sqrt" });
  const kind = computed(() => state.data.attention[state.kind]);
  const numbers = computed(() => numbersIn(kind.value, state.layer, state.head));
  const labels = computed(() => ({ query: kind.value.query_labels, key: kind.value.key_labels }));
  const shown = {
    get numbers() {
      return numbers.value;
    },
    get labels() {
      return labels.value;
    },
    get queries() {
      return kind.value.stack;
    },
    get keys() {
      return readStack(kind.value);
    },
    shift: 0,
  };
  const choose = (at) => {
    Object.assign(state, at);
    const [nLayers, nHeads] = kind.value.atlas.shape;
    const [layer, head] = [Math.min(state.layer, nLayers - 1), Math.min(state.head, nHeads - 1)];
    Object.assign(state, { layer, head });
    setHead({ stack: kind.value.stack, kind: kind.value.kind, layer, head });
  };
  return { state, kind, shown, choose };
};

const counted = (count) => Array.from({ length: count }, (_, place) => [place, place]);
const room = (box) => {
  const height = Math.max(LEAST_PX, window.innerHeight - AROUND_PX);
  return { side: { width: box.clientWidth, height }, top: 12 };
};

// What a token reads in the shown head, see web/text.js; null where it is no query there.
const readerOf =
  ({ shown, state }, cell, isHidden) =>
  async (token) => {
    await null; // a run that is shown anew has its numbers then
    if (isHidden.current) return null;
    const { keys, labels, numbers } = shown;
    const row = cell.rowOf(token);
    if (row < 0) return null;
    const width = labels.key.length;
    const weights = numbers.weights.subarray(row * width, (row + 1) * width);
    const whose = say("Layer {layer}, head {head}", { layer: state.layer, head: state.head });
    return { stack: keys, whose, from: token.index, weights, first: tracedFrom(keys) };
  };

// data: of a run, see html.py. at: {site, head, stage, pin}, what is to be shown; null: as it is.
export const Attention = ({ data, at, hidden }) => {
  const part = usePart();
  const view = useMemo(() => newView(data), []);
  const { state, shown, choose } = view;
  const cell = useCell(shown);
  useLayoutEffect(() => {
    if (hidden || !at) return choose({ data });
    const [stack, layer, name] = at.site.split(".");
    const kind = data.attention.findIndex((one) => one.stack === stack && one.kind === name);
    choose({ data, kind: Math.max(0, kind), layer: Number(layer), head: at.head, stage: at.stage });
    Object.assign(cell, { pin: at.pin ?? null, over: null });
  }, [data, at, hidden]);
  const isHidden = useRef(hidden);
  isHidden.current = hidden;
  useMemo(() => setReader(readerOf(view, cell, isHidden)), []);
  useLayoutEffect(() => emit("reading"), [state.data, state.kind, state.layer, state.head]);
  const { layer, head, stage, scale } = state;
  const kind = view.kind.value;
  const [nLayers, nHeads] = kind.atlas.shape;
  const atlas = useMemo(() => {
    const { shape, pixels, masked } = kind.atlas;
    return { shape, pixels: flatOf(pixels), masked: flatOf(masked) };
  }, [kind]);
  const title = say("{name}: {attention}, {stage}", {
    name: headName(layer, head),
    attention: attentionOf(kind),
    stage: STAGE_NAMES[stage],
  });
  const pickKind = (place) => {
    cell.letGo();
    choose({ kind: Number(place), layer: 0, head: 0 });
  };
  const pick = (name) => (value) => choose({ [name]: Number(value) });
  const set = (name) => (value) => (state[name] = value);
  const one = (words, name, options, chosen, more = {}) => html`<label>${`${words} `}<${Select}
    name=${name} options=${options} value=${state[name]} set=${chosen} ...${more} /></label>`;
  const kinds = state.data.attention.map((each, place) => [place, kindOf(each)]);
  const weighs = { disabled: stage !== "weights" };
  return html`<section id="attention" aria-labelledby="attention-title" hidden=${hidden}>
    <h2 id="attention-title">${say("Attention")}</h2>
    <div class="controls">
      ${one(say("Kind"), "kind", kinds, pickKind)}
      ${one(say("Layer"), "layer", counted(nLayers), pick("layer"))}
      ${one(say("Head"), "head", counted(nHeads), pick("head"))}
      ${one(say("Stage"), "stage", Object.entries(STAGE_NAMES), set("stage"))}
      ${one(say("Colours"), "scale", Object.entries(SCALES), set("scale"), weighs)}
    </div>
    <div class="attention" ...${part.shows({ kind: state.kind, layer, head, stage, scale })}>
      <div class="heads-side">
        <h3>${say("Every head")}</h3>
        <${HeadGrid} role="group" aria-label=${say("Heads; arrow keys move")} atlas=${atlas}
          chosen=${{ layer, head }} choose=${(a, b) => choose({ layer: a, head: b })} />
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
