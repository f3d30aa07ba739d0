// All heads small: layers across, heads down, one small canvas each. A large grid scrolls.

import { paintWords, weightWords } from "./theme.js";
import { useButtonKeys } from "./cells.js";
import { decodeBytes } from "./ask.js";
import { capital, say, sayList, sayN } from "./messages.js";
import { html, useLayoutEffect, useMemo, useRef } from "./preact.js";
import { headName } from "./sites.js";
import { page } from "./store.js";

const MAX_CANVASES = 256; // heads: more canvases than this take a second to paint anew
export const MANY = 16; // layers or heads: with more, they are grouped
const LAYERS_APART = 8;
const NUMBERS_APART = 4;
const EDGE = 6; // px around the chosen head

/**
 * @typedef {object} Atlas all heads small, of one kind of attention
 * @property {number[]} shape (L, H, Sq, Sk)
 * @property {Uint8Array} pixels places in the palette, of every head
 * @property {Uint8Array} masked (L, Sq, Sk), 1 = nothing here may be read
 */
/** @type {(sent: import("./types").SentAtlas) => Atlas} */
export const atlasOf = ({ shape, pixels, masked }) => ({
  shape,
  pixels: decodeBytes(pixels),
  masked: decodeBytes(masked),
});

// The label of a head's button, with its state.
/** @type {(name: string, isOff: boolean) => string} */
export const knownName = (name, isOff) => (isOff ? say("{name}, switched off", { name }) : name);

/**
 * The other heads that share a head's keys: "9–15", "4, 6, 7".
 * @type {(head: number, share: number) => string}
 */
const sharers = (head, share) => {
  const first = head - (head % share);
  const others = Array.from({ length: share }, (_, at) => first + at).filter((one) => one !== head);
  const inOneRow = others.length > 2 && others.length - 1 === others[others.length - 1] - others[0];
  return inOneRow ? `${others[0]}–${others[others.length - 1]}` : sayList(others.map(String));
};
/** @type {(head: number, share: number) => string} */
export const sharedKeys = (head, share) => {
  if (!(share > 1)) return "";
  const heads = sharers(head, share);
  return sayN(
    "Head {head} shares its keys with head {heads}.",
    "Head {head} shares its keys with heads {heads}.",
    share - 1,
    { head, heads },
  );
};

// ---- pictures ----

/** @type {(atlas: Atlas, place: number) => Uint32Array} */
const wordsOf = ({ shape, pixels, masked }, place) => {
  const words = new Uint32Array(shape[2] * shape[3]);
  const colours = weightWords.value;
  const before = Math.floor(place / shape[1]) * words.length; // of the layers before
  for (let cell = 0; cell < words.length; cell += 1)
    words[cell] = masked[before + cell] ? 0 : colours[pixels[place * words.length + cell]];
  return words;
};
// One head of an atlas, a pixel a cell.
/** @param {{ atlas: Atlas, place: number } & import("./types").Attributes} props */
export const SmallHead = ({ atlas, place, ...attributes }) => {
  /** @type {{ current: HTMLCanvasElement }} */
  const canvas = useRef(null);
  useLayoutEffect(
    () => paintWords(canvas.current, wordsOf(atlas, place), atlas.shape[3]),
    [atlas, place, page.dark],
  );
  return html`<canvas ref=${canvas} ...${attributes} />`;
};
// All heads in one image; each button shows its part of it.
/** @type {(atlas: Atlas) => string} */
const allInOne = (atlas) => {
  const [nLayers, nHeads, height, width] = atlas.shape;
  const words = new Uint32Array(nLayers * nHeads * height * width);
  for (let place = 0; place < nLayers * nHeads; place += 1) {
    const one = wordsOf(atlas, place);
    const [layer, head] = [Math.floor(place / nHeads), place % nHeads];
    for (let row = 0; row < height; row += 1) {
      const start = ((layer * height + row) * nHeads + head) * width;
      words.set(one.subarray(row * width, (row + 1) * width), start);
    }
  }
  const canvas = document.createElement("canvas");
  paintWords(canvas, words, nHeads * width);
  return `url(${canvas.toDataURL()})`;
};

// ---- the grid ----

// The number of a row; a bracket beside it joins the heads that share their keys.
/** @param {{ head: number, share: number }} props */
const HeadNumber = ({ head, share }) => {
  const joined = share > 1 && [
    "joined",
    head % share === 0 && "first",
    head % share === share - 1 && "last",
  ];
  const look = ["number", ...(joined || [])].filter(Boolean).join(" ");
  const title = joined && sharedKeys(head, share);
  return html`<span class=${look} title=${title || undefined}>${head}</span>`;
};

/**
 * @param {import("./types").HeadProps} props
 */
const Head = ({
  atlas,
  layer,
  head,
  isChosen,
  isStop,
  isAblated,
  sign,
  choose,
  press,
  apart,
  keys,
}) => {
  const [nLayers, nHeads] = atlas.shape;
  const label = knownName(capital(headName({ layer, head })), isAblated);
  /** @type {(place: number, count: number) => string} */
  const at = (place, count) => `${(100 * place) / Math.max(1, count - 1)}%`;
  const backgroundPosition = `${at(head, nHeads)} ${at(layer, nLayers)}`;
  const picture =
    nLayers * nHeads > MAX_CANVASES
      ? html`<span class="small" style=${{ backgroundPosition }} />`
      : html`<${SmallHead} class="small" atlas=${atlas} place=${layer * nHeads + head} />`;
  const look = ["head", isAblated && "ablated", sign && "signed", apart].filter(Boolean).join(" ");
  return html`<button type="button" class=${look} aria-label=${label} aria-pressed=${String(isChosen)}
    title=${sign ? say("{title}: {part}", { title: label, part: sign.label }) : label} tabindex=${isStop ? 0 : -1}
    onPointerDown=${press && (() => press(layer, head))} onClick=${() => choose(layer, head)} ...${keys}
  >${picture}${sign && html`<span class="sign" aria-hidden="true">${sign.sign}</span>`}</button>`;
};

// Scroll the grid, never the page.
/** @type {(grid: HTMLElement, button: HTMLElement) => void} */
const bringIntoView = (grid, button) => {
  const [inside, around] = [button, grid].map((element) => element.getBoundingClientRect());
  const corner = /** @type {HTMLElement} */ (grid.firstElementChild);
  const { offsetWidth: left, offsetHeight: top } = corner;
  /** @type {(from: number, to: number, least: number, most: number) => number} */
  const by = (from, to, least, most) => Math.min(0, from - least) + Math.max(0, to - most);
  grid.scrollBy(
    by(inside.left, inside.right, around.left + left + EDGE, around.right - EDGE),
    by(inside.top, inside.bottom, around.top + top + EDGE, around.bottom - EDGE),
  );
};

/**
 * atlas: see Atlas. chosen: {layer, head}, or null. choose(layer, head) follows a click, press(layer,
 * head) as a finger or a button goes down. isAblated(layer, head): whether it is crossed out. signs:
 * [{layer, head, sign, label}] of heads that carry one. share: how many heads read the same keys.
 * @param {import("./types").HeadGridProps} props
 */
export const HeadGrid = ({
  atlas,
  chosen = null,
  choose,
  press,
  isAblated = () => false,
  signs = [],
  share = 1,
  isZoomed = false,
  ...attributes
}) => {
  /** @type {{ current: HTMLElement }} */
  const grid = useRef(null);
  const draws = useRef(0);
  const rev = useMemo(() => (draws.current += 1), [atlas]);
  const [nLayers, nHeads, nQueries, nKeys] = atlas.shape;
  const all = useMemo(
    () => (nLayers * nHeads > MAX_CANVASES ? allInOne(atlas) : ""),
    [atlas, page.dark],
  );
  const place = chosen ? chosen.head * nLayers + chosen.layer : -1; // of its button
  const isMany = Math.max(nLayers, nHeads) > MANY;
  const last = { row: nHeads - 1, column: nLayers - 1 };
  const keysOf = useButtonKeys(last, ({ row: head, column: layer }) => choose(layer, head));
  useLayoutEffect(() => {
    const button = grid.current.querySelectorAll("button")[place];
    if (isMany && button) bringIntoView(grid.current, button);
  }, [atlas.shape.join(), place, isZoomed]);

  const layers = Array.from({ length: nLayers }, (_, layer) => layer);
  // put the sign in a corner without weights
  const future = layers.every((layer) => atlas.masked[(layer * nQueries + 1) * nKeys - 1]);
  const look = [
    "head-grid",
    isMany && "many",
    isZoomed && "zoomed",
    !future && "filled",
    attributes.class,
  ];
  const style = { "--heads": nHeads, "--layers": nLayers, "--all-heads": all || undefined };
  const apartAt = (/** @type {number} */ layer) =>
    nLayers > MANY && layer > 0 && layer % LAYERS_APART === 0 ? "apart" : "";
  const layerNumber = (/** @type {number} */ layer) => {
    const minor = nLayers > MANY && layer % NUMBERS_APART > 0 && "minor";
    const named = ["number across", apartAt(layer), minor].filter(Boolean).join(" ");
    return html`<span class=${named}>${layer}</span>`;
  };
  /** @param {unknown} _ @param {number} head */
  const row = (_, head) => {
    const one = (/** @type {number} */ layer) => {
      const at = head * nLayers + layer;
      const signed = signs.find((each) => each.layer === layer && each.head === head && each.sign);
      return html`<${Head} isChosen=${at === place} isStop=${at === Math.max(0, place)}
        isAblated=${isAblated(layer, head)} sign=${signed} keys=${keysOf(head, layer)}
        apart=${apartAt(layer)} ...${{ atlas, layer, head, choose, press }} />`;
    };
    return [html`<${HeadNumber} ...${{ head, share }} />`, layers.map(one)];
  };
  return html`<div ...${attributes} class=${look.filter(Boolean).join(" ")} style=${style} ref=${grid}
    data-heads=${nHeads} data-layers=${nLayers} data-rev=${rev}>
    <span class="corner"></span>
    ${layers.map(layerNumber)}
    ${Array.from({ length: nHeads }, row)}
  </div>`;
};
