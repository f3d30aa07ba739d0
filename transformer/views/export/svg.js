// Shapes of an SVG as text, with colours that every program reads: many know none of CSS's newer ones.

/** @type {(text: string) => string} */
export const escaped = (text) =>
  text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`).replace(/\p{Cc}/gu, "");
export const px = (/** @type {number} */ length) => String(Math.round(length * 100) / 100);
/** @type {(name: string, values: Record<string, string | number | null>, inner?: string) => string} */
export const tag = (name, values, inner = "") => {
  const written = Object.entries(values).map(([key, value]) => {
    if (value === null || value === "") return "";
    return ` ${key}="${typeof value === "number" ? px(value) : escaped(value)}"`;
  });
  return `<${name}${written.join("")}>${inner}</${name}>`;
};

/** @type {OffscreenCanvasRenderingContext2D | null} */
let context = null; // drawn on once it is needed
// A canvas of one pixel, on which colours and letters are tried.
export const canvas = () => {
  context ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  return /** @type {OffscreenCanvasRenderingContext2D} */ (context);
};

/** @type {Map<string, [string, number]>} */
const colours = new Map();
// Red, green and blue of any colour of a style sheet, and how opaque it is.
/** @type {(colour: string) => [string, number]} */
const plainColour = (colour) => {
  const cached = colours.get(colour);
  if (cached) return cached;
  const pixel = canvas();
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = colour;
  pixel.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
  /** @type {[string, number]} */
  const plain = [`rgb(${red},${green},${blue})`, alpha / 255];
  colours.set(colour, plain);
  return plain;
};
/** @type {(colour: string) => boolean} */
export const isClear = (colour) => plainColour(colour)[1] === 0;
/** @type {(name: "fill" | "stroke", colour: string) => Record<string, string | null>} */
export const paint = (name, colour) => {
  const [plain, opacity] = plainColour(colour);
  return { [name]: plain, [`${name}-opacity`]: opacity < 1 ? opacity.toFixed(3) : null };
};
// A colour of a gradient.
export const COLOUR = /(?:rgba?|color|oklch|oklab|lab|hsla?)\([^()]*\)/g;
