// Unpacks a page's data (written by packing.py), and reads arrays in it.

/** @import { Atlas } from "../../../web/head_grid.js" */
/** @import { FlatArray, NestedArray, StoredArray, StoredAtlas } from "../types" */

/** @type {Record<string, new (buffer: ArrayBuffer) => FlatArray>} */
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

export const canUnpack = typeof DecompressionStream === "function";

// The bytes of base64 of gzip.
/** @type {(text: string) => Promise<ArrayBuffer>} */
const gunzip = (text) => {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
};

/** @type {(shape: number[]) => number} */
const sizeOf = (shape) => shape.reduce((a, b) => a * b, 1);

// The content, its arrays as StoredArray; numbers are little endian, as on every machine that runs a browser today.
// textOf: what becomes of each text in it.
/** @type {(whole: ArrayBuffer, textOf?: (text: string) => string) => unknown} */
export const contentOf = (whole, textOf = String) => {
  const length = new DataView(whole).getUint32(0, true);
  const json = new TextDecoder().decode(new Uint8Array(whole, 4, length));
  /** @type {{ array: number, shape: number[] }[]} */
  const placeholders = [];
  /** @type {{ arrays: [kind: string, count: number][], content: unknown }} */
  const { arrays: table, content } = JSON.parse(json, (_, value) => {
    if (isStored(value)) placeholders.push(value);
    return typeof value === "string" ? textOf(value) : value;
  });
  let at = 4 + length;
  const arrays = table.map(([kind, count]) => {
    const size = Number(kind[1]);
    const planes = new Uint8Array(whole, at, count * size);
    at += count * size;
    const joined = new Uint8Array(count * size);
    for (let plane = 0; plane < size; plane += 1) {
      for (let i = 0; i < count; i += 1) joined[i * size + plane] = planes[plane * count + i];
    }
    return new TYPES[kind](joined.buffer);
  });
  for (const placeholder of placeholders) {
    const { array: number, shape } = placeholder;
    Object.assign(placeholder, { array: arrays[number].subarray(0, sizeOf(shape)) });
  }
  return content;
};
// The place of an array in the JSON, by its number; afterwards the array itself.
/** @type {(value: { array?: unknown, shape?: unknown } | null) => boolean} */
const isStored = (value) => value?.array !== undefined && Boolean(value.shape);
/** @type {(text: string) => Promise<unknown>} */
export const unpack = async (text) => contentOf(await gunzip(text));

// All heads small, see HeadGrid.
/** @type {(stored: StoredAtlas) => Atlas} */
export const flatAtlas = ({ pixels, masked }) => ({
  shape: pixels.shape,
  pixels: /** @type {Uint8Array} */ (pixels.array),
  masked: /** @type {Uint8Array} */ (masked.array),
});

// Flat numbers as lists of rows, the last dimension flat.
/** @type {(flat: FlatArray, shape: number[]) => NestedArray} */
const nested = (flat, [count, ...rest]) => {
  if (!rest.length) return flat;
  const size = flat.length / count;
  return Array.from({ length: count }, (_, at) =>
    nested(flat.subarray(at * size, (at + 1) * size), rest),
  );
};

// A value with the numbers of its stored arrays, as lists of rows, in place of these.
/** @type {(value: unknown) => unknown} */
export const filled = (value) => {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(filled);
  if (isStored(value)) {
    const { array, shape } = /** @type {StoredArray} */ (value);
    return nested(array, shape);
  }
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, filled(part)]));
};
