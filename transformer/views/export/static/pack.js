// Unpacks a page's data (written by packing.py), and reads arrays in it.

/**
 * @typedef {Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | Uint8Array | Uint16Array | Uint32Array} Flat
 * @typedef {{array: number, shape: number[]}} Stored a reference to an array
 */

const TYPES = {
  f4: Float32Array,
  f8: Float64Array,
  i1: Int8Array,
  i2: Int16Array,
  i4: Int32Array,
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
};
/** @type {Flat[]} */
let arrays = [];

export const canUnpack = typeof DecompressionStream === "function";

// The bytes of base64 of gzip.
/** @type {(text: string) => Promise<ArrayBuffer>} */
const gunzip = (text) => {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
};

// The content; numbers are little endian, as on every machine that runs a browser today. textOf: what becomes of
// each text in it.
/** @type {(whole: ArrayBuffer, textOf?: (text: string) => string) => any} */
export const contentOf = (whole, textOf = String) => {
  const length = new DataView(whole).getUint32(0, true);
  const json = new TextDecoder().decode(new Uint8Array(whole, 4, length));
  const held = JSON.parse(json, (_, value) => (typeof value === "string" ? textOf(value) : value));
  let at = 4 + length;
  arrays = held.arrays.map(([kind, count]) => {
    const size = Number(kind[1]);
    const planes = new Uint8Array(whole, at, count * size);
    at += count * size;
    const joined = new Uint8Array(count * size);
    for (let plane = 0; plane < size; plane += 1) {
      for (let i = 0; i < count; i += 1) joined[i * size + plane] = planes[plane * count + i];
    }
    return new TYPES[kind](joined.buffer);
  });
  return held.content;
};
/** @type {(text: string) => Promise<any>} */
export const unpack = async (text) => contentOf(await gunzip(text));

// The numbers of a stored array, flat.
/** @type {(stored: Stored) => any} */
export const flatOf = ({ array, shape }) =>
  arrays[array].subarray(
    0,
    shape.reduce((a, b) => a * b, 1),
  );

// All heads small, see HeadGrid.
/** @type {(stored: {pixels: Stored, masked: Stored}) => any} */
export const flatAtlas = ({ pixels, masked }) => ({
  shape: pixels.shape,
  pixels: flatOf(pixels),
  masked: flatOf(masked),
});

// Flat numbers as lists of rows, the last dimension flat.
/** @type {(flat: any, shape: number[]) => any} */
const nested = (flat, [count, ...rest]) => {
  if (!rest.length) return flat;
  const size = flat.length / count;
  return Array.from({ length: count }, (_, at) =>
    nested(flat.subarray(at * size, (at + 1) * size), rest),
  );
};

// A value with the placeholders replaced by the numbers themselves.
/** @type {(value: any) => any} */
export const filled = (value) => {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(filled);
  if (value.array !== undefined && value.shape) return nested(flatOf(value), value.shape);
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, filled(part)]));
};
