// Attention: the grid of all heads, the chosen head large, and the numbers under the pointer.

import { fillSelect, finder } from "../../../ui/static/dom.js";
import { say } from "../../../ui/static/messages.js";
import { drawFigure } from "../../../ui/static/plots.js";
import { attentionOf, kindOf } from "../../../ui/static/site_words.js";
import { emit, setHead, setQuery, tracedFrom } from "../../../web/store.js";
import { mountCells } from "../../attention/cells.js";
import { headGrid, headName } from "../../attention/grid.js";
import { STAGE_NAMES, cellTexts, colourValues } from "../../attention/values.js";
import { figureOf } from "./gallery.js";
import { headNumbers } from "./head_numbers.js";
import { flatOf } from "./pack.js";

const LEAST_PX = 360; // of the large picture
const AROUND_PX = 120; // above and below it

// element: its part of the page; given: the page's data, of one run. Returns draw(table), see
// figureOf; show(data, {site, head, stage, pin}), which shows another run; and readBy(token): the weights
// {stack, weights, first} of what a token reads in the shown head, null where it is not a query there.
export const mountAttention = (element, given) => {
  let data = given;
  const find = finder(element);
  const large = find(".large");
  /** @type {Record<string, any>} */
  const state = { kind: 0, layer: 0, head: 0, pin: null, over: null, numbers: null, labels: null };
  /** @type {any} */
  let colours = null;
  const kind = () => data.attention[state.kind];
  const keyStack = () => (kind().kind === "cross" ? "encoder" : kind().stack);
  const chosen = (name) => find(`[name=${name}]`);

  const cells = mountCells(element, state, {
    queryStack: () => kind().stack,
    keyStack,
    isHeatmap: () => true,
  });

  const cellStyle = (stage, scale) => {
    if (stage === "weights") return data.styles[scale];
    const bound = state.numbers.scores.reduce((most, one) => Math.max(most, Math.abs(one)), 0) || 1;
    return { ...data.styles.score, zmin: -bound, zmax: bound };
  };

  const drawLarge = async () => {
    const { query_labels: query, key_labels: key, figure } = kind();
    const { layer, head } = state;
    const [stage, scale] = [chosen("stage").value, chosen("scale").value];
    const numbers = headNumbers(kind(), layer, head);
    Object.assign(state, { numbers, labels: { query, key } });
    chosen("scale").disabled = stage !== "weights";
    const trace = { type: "heatmap", hoverinfo: "none", ...cellStyle(stage, scale) };
    const made = figureOf({ ...figure, data: [trace] }, colours);
    cells.closer.fill(made.data[0], query.length, key.length, (part) =>
      colourValues(numbers, key.length, stage, scale, data.floor, part),
    );
    const height = Math.max(LEAST_PX, window.innerHeight - AROUND_PX);
    await drawFigure(large, made, {
      fit: { side: { width: find(".large-box").clientWidth, height }, top: 26, bar: true },
      tools: true,
      on: cells.listeners,
      numbers: cellTexts(numbers, key.length, stage),
    });
    const title = say("{name}: {attention}, {stage}", {
      name: headName(layer, head),
      attention: attentionOf(kind()),
      stage: STAGE_NAMES[stage],
    });
    find(".large-title").textContent = title;
    large.setAttribute("aria-label", say("{title}; heatmap of query by key", { title }));
    cells.show();
    large.dataset.rev = String(Number(large.dataset.rev ?? 0) + 1);
  };

  const chooseHead = (layer, head) => {
    Object.assign(state, { layer, head });
    Object.assign(chosen("layer"), { value: layer });
    Object.assign(chosen("head"), { value: head });
    heads.mark(layer, head);
    setHead({ stack: kind().stack, kind: kind().kind, layer, head });
    drawLarge();
  };
  const heads = headGrid(find(".head-grid"), data.palette, chooseHead);

  const chooseKind = (at) => {
    Object.assign(state, { kind: at, pin: null, over: null });
    const { shape, pixels, masked } = kind().atlas;
    const [nLayers, nHeads] = shape;
    const counted = (count) => Array.from({ length: count }, (_, place) => [place, place]);
    fillSelect(chosen("layer"), counted(nLayers), 0);
    fillSelect(chosen("head"), counted(nHeads), 0);
    heads.draw({ shape, pixels: flatOf(pixels), masked: flatOf(masked) });
    chooseHead(Math.min(state.layer, nLayers - 1), Math.min(state.head, nHeads - 1));
  };

  const fillKinds = () => {
    const names = data.attention.map((one, at) => [at, kindOf(one)]);
    fillSelect(chosen("kind"), names, state.kind);
  };
  fillKinds();
  chosen("kind").addEventListener("change", (event) => chooseKind(Number(event.target.value)));
  for (const name of ["layer", "head"]) {
    const choose = () => chooseHead(Number(chosen("layer").value), Number(chosen("head").value));
    chosen(name).addEventListener("change", choose);
  }
  for (const name of ["stage", "scale"]) chosen(name).addEventListener("change", drawLarge);
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    emit("escape");
    setQuery(null);
  });
  let started = false;
  const draw = (table) => {
    colours = table && { ...table };
    if (started) return drawLarge();
    started = true;
    return chooseKind(state.kind);
  };
  const show = (shown, { site, head, stage, pin = null }) => {
    data = shown;
    const [stack, layer, name] = site.split(".");
    const at = data.attention.findIndex((one) => one.stack === stack && one.kind === name);
    Object.assign(state, { kind: Math.max(0, at), layer: Number(layer), head });
    chosen("stage").value = stage;
    fillKinds();
    if (started) chooseKind(state.kind);
    state.pin = pin;
  };
  const readBy = (token) => {
    const row = token ? cells.rowOf(token) : -1;
    if (row < 0) return null;
    const nKeys = state.labels.key.length;
    const weights = state.numbers.weights.subarray(row * nKeys, (row + 1) * nKeys);
    return { stack: keyStack(), weights, first: tracedFrom(keyStack()) };
  };
  return { draw, show, readBy };
};
