// Colours and type of pictures: those of web/theme.css for pictures that the page draws, and
// the dark theme for Python's figures.

import { computed } from "./preact.js";
import { page } from "./store.js";

// A colour of theme.css at an element.
/** @type {(name: string, element?: Element) => string} */
export const themed = (name, element = globalThis.document?.body) =>
  getComputedStyle(element).getPropertyValue(`--viz-${name}`).trim();

// The family and the size of type in a picture.
const family = computed(() => themed("font"));
export const fontFamily = () => family.value;
const size = computed(() => Number(themed(page.projector ? "projected-px" : "font-px")));
export const fontPx = () => size.value;

// An evenly spaced Plotly colour scale, [[position, "#rrggbb"], ...].
/** @type {(colours: string[]) => [number, string][]} */
export const scaleOf = (colours) =>
  colours.map((colour, place) => [place / (colours.length - 1), colour]);

/** @type {(colour: string) => number[]} */
const channelsOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
// Red, green and blue of a scale's colour for a share from 0 to 1.
/** @type {(scale: [number, string][], share: number) => number[]} */
const channelsAt = (scale, share) => {
  const at = share * (scale.length - 1);
  const low = Math.min(Math.floor(at), scale.length - 2);
  const [from, to] = [scale[low], scale[low + 1]].map(([, colour]) => channelsOf(colour));
  return from.map((channel, place) => Math.round(channel + (at - low) * (to[place] - channel)));
};

/** @type {(scale: [number, string][], share: number) => string} */
export const colourAt = (scale, share) => `rgb(${channelsAt(scale, share).join(", ")})`;

// 256 colours of a scale as little-endian RGBA words, a canvas's pixel format.
/** @type {(scale: [number, string][]) => Uint32Array} */
const paletteWords = (scale) =>
  Uint32Array.from({ length: 256 }, (_, value) => {
    const [red, green, blue] = channelsAt(scale, value / 255);
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  });

// The palette of weights in the page's theme.
export const weightWords = computed(
  () => (page.dark, paletteWords(scaleOf(themed("weights").split(" ")))),
);

// Paint words of RGBA on a canvas, a pixel each.
/** @type {(canvas: HTMLCanvasElement, words: Uint32Array, width: number) => void} */
export const paintWords = (canvas, words, width) => {
  Object.assign(canvas, { width, height: words.length / width });
  const image = new ImageData(width, canvas.height);
  new Uint32Array(image.data.buffer).set(words);
  canvas.getContext("2d")?.putImageData(image, 0, 0);
};

// ---- a light figure's colours in the dark ----

/** @typedef {Record<string, string>} ColourTable what each colour becomes, see drawing/style.py */

/** @type {(value: unknown, table: ColourTable, isColour?: boolean) => unknown} */
const recolouredValue = (value, table, isColour = false) => {
  if (typeof value === "string") {
    const start = value.slice(0, value.lastIndexOf(",") + 1);
    const darkColour = () => table[value] ?? (table[start] ?? start) + value.slice(start.length);
    return isColour ? darkColour() : value;
  }
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return value.map((one) => recolouredValue(one, table, isColour));
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [
      key,
      recolouredValue(part, table, isColour || /color/.test(key)),
    ]),
  );
};
// Recolour a figure. Only colour properties change: a token may be "#ffffff".
export const recoloured = /** @type {<Value>(value: Value, table: ColourTable) => Value} */ (
  recolouredValue
);
