// Colours between the stops of a scale.

// The stop before a share from 0 to 1 of `count` evenly placed ones, and how far beyond it.
/** @type {(count: number, share: number) => {low: number, part: number}} */
const between = (count, share) => {
  const at = share * (count - 1);
  const low = Math.min(Math.floor(at), count - 2);
  return { low, part: at - low };
};
/** @type {(from: number[], to: number[], part: number) => number[]} */
const mixed = (from, to, part) =>
  from.map((channel, place) => Math.round(channel + part * (to[place] - channel)));

// Colour stops [r, g, b] as 256 words of RGBA, little-endian, as a canvas has its pixels.
/** @type {(stops: number[][]) => Uint32Array} */
export const paletteWords = (stops) =>
  Uint32Array.from({ length: 256 }, (_, value) => {
    const { low, part } = between(stops.length, value / 255);
    const [red, green, blue] = mixed(stops[low], stops[low + 1], part);
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  });

/** @type {(colour: string) => number[]} */
const channelsOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
// A colour of Plotly's scale [[place, "#rrggbb"], ...] for a share from 0 to 1.
/** @type {(scale: [number, string][], share: number) => string} */
export const colourAt = (scale, share) => {
  const { low, part } = between(scale.length, share);
  const [from, to] = [scale[low], scale[low + 1]].map(([, colour]) => channelsOf(colour));
  return `rgb(${mixed(from, to, part).join(", ")})`;
};
