// The grid of all heads: layers down, heads across, one small canvas each. A large one scrolls.

import { paletteWords } from "../../ui/static/colours.js";
import { el, onArrowKeys, setTabStop } from "../../ui/static/dom.js";
import { say } from "../../ui/static/messages.js";
import { sharedKeys } from "./shared_keys.js";

const FEW = 256; // heads: more canvases than this take a second to paint anew
export const MANY = 16; // layers or heads: with more, they are told apart in groups
const LAYERS_APART = 8;
const NUMBERS_APART = 4;
const EDGE = 6; // px around the chosen head

/**
 * @typedef {object} Atlas all heads small, of one kind of attention
 * @property {number[]} shape (L, H, Sq, Sk)
 * @property {Uint8Array} pixels places in the palette, of every head
 * @property {Uint8Array} masked (Sq, Sk), 1 = nothing here may be read
 */

/** @type {(atlas: Atlas, place: number, colours: Uint32Array) => ImageData} */
const imageOf = ({ shape, pixels, masked }, place, colours) => {
  const [height, width] = shape.slice(2);
  const image = new ImageData(width, height);
  const words = new Uint32Array(image.data.buffer);
  for (let cell = 0; cell < words.length; cell += 1) {
    words[cell] = masked[cell] ? 0 : colours[pixels[place * words.length + cell]];
  }
  return image;
};

// Paint the head at a place of the atlas on a canvas, a pixel a cell; colours: see paletteWords.
/** @type {(canvas: HTMLCanvasElement, atlas: Atlas, place: number, colours: Uint32Array) => void} */
export const paintHead = (canvas, atlas, place, colours) => {
  const [height, width] = atlas.shape.slice(2);
  Object.assign(canvas, { width, height });
  canvas.getContext("2d")?.putImageData(imageOf(atlas, place, colours), 0, 0);
};

// All heads in one picture, of which each button shows its part.
/** @type {(grid: HTMLElement, atlas: Atlas, colours: Uint32Array) => void} */
const paintAll = (grid, atlas, colours) => {
  const [nLayers, nHeads, height, width] = atlas.shape;
  const canvas = el("canvas");
  Object.assign(canvas, { width: nHeads * width, height: nLayers * height });
  const surface = canvas.getContext("2d");
  for (let place = 0; place < nLayers * nHeads; place += 1) {
    const [layer, head] = [Math.floor(place / nHeads), place % nHeads];
    surface?.putImageData(imageOf(atlas, place, colours), head * width, layer * height);
  }
  grid.style.setProperty("--all-heads", `url(${canvas.toDataURL()})`);
};

export const headName = (layer, head) => say("Layer {layer}, head {head}", { layer, head });

const arrows = (grid) => (key, here, count) => {
  const across = Number(grid.dataset.heads);
  const column = here % across;
  if (key === "ArrowRight") return column + 1 < across ? here + 1 : null;
  if (key === "ArrowLeft") return column > 0 ? here - 1 : null;
  if (key === "ArrowDown") return here + across < count ? here + across : null;
  return key === "ArrowUp" && here >= across ? here - across : null;
};

// Returns draw(atlas, of), mark(layer, head), cross(isSilent), which crosses out silenced heads, and
// label(of, heads), which puts a sign on each head that has one, [{layer, head, sign, label}];
// of: {run, stack, kind}, of which either is; share: how many heads read the same keys.
// choose(layer, head) is called on a click, press(layer, head) as a finger or a button goes down.
/** @type {(grid: any, stops: any, choose: Function, press?: Function) => any} */
export const headGrid = (grid, stops, choose, press) => {
  const colours = paletteWords(stops);
  /** @type {{shown: string, of: string, heads: any[]}} */
  const labels = { shown: "", of: "", heads: [] };

  const makeButton = (layer, head) => {
    const button = el("button", "head");
    button.setAttribute("aria-label", headName(layer, head));
    const { layers, heads } = grid.dataset;
    const picture = el(layers * heads > FEW ? "span" : "canvas", "small");
    const at = (place, count) => `${(100 * place) / Math.max(1, count - 1)}%`;
    picture.style.backgroundPosition = `${at(head, heads)} ${at(layer, layers)}`;
    button.append(picture);
    if (press) button.addEventListener("pointerdown", () => press(layer, head));
    button.addEventListener("click", () => choose(layer, head));
    return button;
  };

  // The number of a column; a bracket over it joins the heads that share their keys.
  const makeNumber = (head, nHeads, share) => {
    const number = el("span", "number across", head);
    number.classList.toggle("minor", nHeads > MANY && head % NUMBERS_APART > 0);
    if (share > 1) {
      number.classList.add("joined");
      number.classList.toggle("first", head % share === 0);
      number.classList.toggle("last", head % share === share - 1);
      number.title = say("Head {head} {shared}", { head, shared: sharedKeys(head, share) });
    }
    return number;
  };

  const makeButtons = (nLayers, nHeads, share) => {
    const shape = [nLayers, nHeads, share].join();
    if (grid.dataset.shape === shape) return;
    Object.assign(grid.dataset, { layers: nLayers, heads: nHeads, shape });
    grid.style.setProperty("--heads", nHeads);
    grid.style.setProperty("--layers", nLayers);
    grid.classList.toggle("many", Math.max(nLayers, nHeads) > MANY);
    const heads = Array.from({ length: nHeads }, (_, head) => head);
    const parts = [el("span", "corner")];
    parts.push(...heads.map((head) => makeNumber(head, nHeads, share)));
    for (let layer = 0; layer < nLayers; layer += 1) {
      const row = [el("span", "number", layer), ...heads.map((head) => makeButton(layer, head))];
      const apart = nLayers > MANY && layer > 0 && layer % LAYERS_APART === 0;
      for (const part of row) part.classList.toggle("apart", apart);
      parts.push(...row);
    }
    grid.replaceChildren(...parts);
  };

  const drawLabels = () => {
    const buttons = [...grid.querySelectorAll("button")];
    for (const button of buttons) {
      button.querySelector(".sign")?.remove();
      button.classList.remove("signed");
      const silent = button.classList.contains("silent");
      const name = button.getAttribute("aria-label");
      button.title = silent ? say("{name}, silenced", { name }) : name;
    }
    if (labels.of !== labels.shown) return;
    for (const { layer, head, sign, label } of labels.heads.filter((one) => one.sign)) {
      const button = buttons[layer * Number(grid.dataset.heads) + head];
      button.title += `: ${label}`;
      const mark = el("span", "sign", sign);
      mark.ariaHidden = "true"; // the title says it
      button.append(mark);
      button.classList.add("signed");
    }
  };
  const label = (of, heads) => {
    Object.assign(labels, { of: JSON.stringify(of), heads });
    drawLabels();
  };

  const draw = (atlas, of, share = 1) => {
    const [nLayers, nHeads] = atlas.shape;
    makeButtons(nLayers, nHeads, share);
    const canvases = [...grid.querySelectorAll("canvas")];
    if (canvases.length) {
      canvases.forEach((canvas, place) => paintHead(canvas, atlas, place, colours));
    } else {
      paintAll(grid, atlas, colours);
    }
    const future = atlas.masked[atlas.shape[3] - 1]; // a corner that holds no weight has room for a sign
    grid.classList.toggle("filled", !future);
    labels.shown = JSON.stringify(of);
    drawLabels();
    grid.dataset.rev = String(Number(grid.dataset.rev ?? 0) + 1);
  };

  // Cross out the heads that are silenced: isSilent(layer, head).
  const cross = (isSilent) => {
    const across = Number(grid.dataset.heads);
    [...grid.querySelectorAll("button")].forEach((button, place) => {
      const silent = isSilent(Math.floor(place / across), place % across);
      button.classList.toggle("silent", silent);
    });
    drawLabels();
  };

  // Scrolls the grid alone, never the page.
  const bringIntoView = (button) => {
    const [inside, around] = [button, grid].map((one) => one.getBoundingClientRect());
    const [left, top] = [grid.firstElementChild.offsetWidth, grid.firstElementChild.offsetHeight];
    const by = (from, to, least, most) => Math.min(0, from - least) + Math.max(0, to - most);
    grid.scrollBy(
      by(inside.left, inside.right, around.left + left + EDGE, around.right - EDGE),
      by(inside.top, inside.bottom, around.top + top + EDGE, around.bottom - EDGE),
    );
  };

  const mark = (layer, head) => {
    const buttons = [...grid.querySelectorAll("button")];
    const chosen = layer * Number(grid.dataset.heads) + head;
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", place === chosen));
    setTabStop(buttons, chosen);
    if (grid.classList.contains("many") && buttons[chosen]) bringIntoView(buttons[chosen]);
  };

  onArrowKeys(grid, arrows(grid));
  return { draw, mark, cross, label };
};
