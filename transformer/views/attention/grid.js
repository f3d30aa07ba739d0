// The grid of all heads: layers down, heads across, one small canvas each.

import { paletteWords } from "../../ui/static/colours.js";
import { el, onArrowKeys, setTabStop } from "../../ui/static/dom.js";
import { say } from "../../ui/static/messages.js";

/**
 * @typedef {object} Atlas all heads small, of one kind of attention
 * @property {number[]} shape (L, H, Sq, Sk)
 * @property {Uint8Array} pixels places in the palette, of every head
 * @property {Uint8Array} masked (Sq, Sk), 1 = nothing here may be read
 */

// Paint the head at a place of the atlas on a canvas, a pixel a cell; colours: see paletteWords.
/** @type {(canvas: HTMLCanvasElement, atlas: Atlas, place: number, colours: Uint32Array) => void} */
export const paintHead = (canvas, { shape, pixels, masked }, place, colours) => {
  const [height, width] = shape.slice(2);
  Object.assign(canvas, { width, height });
  const image = new ImageData(width, height);
  const words = new Uint32Array(image.data.buffer);
  for (let cell = 0; cell < words.length; cell += 1) {
    words[cell] = masked[cell] ? 0 : colours[pixels[place * words.length + cell]];
  }
  canvas.getContext("2d")?.putImageData(image, 0, 0);
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
// of: {run, stack, kind}, of which either is. choose(layer, head) is called on a click.
export const headGrid = (grid, stops, choose) => {
  const colours = paletteWords(stops);
  /** @type {{shown: string, of: string, heads: any[]}} */
  const labels = { shown: "", of: "", heads: [] };

  const makeButton = (layer, head) => {
    const button = el("button", "head");
    button.setAttribute("aria-label", headName(layer, head));
    button.append(el("canvas"));
    button.addEventListener("click", () => choose(layer, head));
    return button;
  };

  const makeButtons = (nLayers, nHeads) => {
    const { layers, heads } = grid.dataset;
    if (Number(layers) === nLayers && Number(heads) === nHeads) return;
    Object.assign(grid.dataset, { layers: nLayers, heads: nHeads });
    grid.style.setProperty("--heads", nHeads);
    const parts = [el("span", "corner")];
    for (let head = 0; head < nHeads; head += 1) parts.push(el("span", "number", head));
    for (let layer = 0; layer < nLayers; layer += 1) {
      parts.push(el("span", "number", layer));
      for (let head = 0; head < nHeads; head += 1) parts.push(makeButton(layer, head));
    }
    grid.replaceChildren(...parts);
  };

  const drawLabels = () => {
    const buttons = [...grid.querySelectorAll("button")];
    for (const button of buttons) {
      button.querySelector(".sign")?.remove();
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
    }
  };
  const label = (of, heads) => {
    Object.assign(labels, { of: JSON.stringify(of), heads });
    drawLabels();
  };

  const draw = (atlas, of) => {
    const [nLayers, nHeads] = atlas.shape;
    makeButtons(nLayers, nHeads);
    const canvases = [...grid.querySelectorAll("canvas")];
    canvases.forEach((canvas, place) => paintHead(canvas, atlas, place, colours));
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

  const mark = (layer, head) => {
    const buttons = [...grid.querySelectorAll("button")];
    const chosen = layer * Number(grid.dataset.heads) + head;
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", place === chosen));
    setTabStop(buttons, chosen);
  };

  onArrowKeys(grid, arrows(grid));
  return { draw, mark, cross, label };
};
