// Unpacks the page's data (written by packing.py) and reads arrays in it.
(() => {
  'use strict';
  const viz = (window.viz = {});
  const TYPES = {
    f4: Float32Array, f8: Float64Array, i1: Int8Array, i2: Int16Array, i4: Int32Array,
    u1: Uint8Array, u2: Uint16Array, u4: Uint32Array,
  };
  let arrays = [];

  viz.canUnpack = typeof DecompressionStream === 'function';

  /** The content; numbers are little endian, as on every machine that runs a browser today. */
  viz.unpack = async (text) => {
    const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
    const whole = await new Response(stream).arrayBuffer();
    const length = new DataView(whole).getUint32(0, true);
    const said = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 4, length)));
    let at = 4 + length;
    arrays = said.arrays.map(([kind, count]) => {
      const size = Number(kind[1]);
      const planes = new Uint8Array(whole, at, count * size);
      at += count * size;
      const joined = new Uint8Array(count * size);
      for (let plane = 0; plane < size; plane++) {
        for (let i = 0; i < count; i++) joined[i * size + plane] = planes[plane * count + i];
      }
      return new TYPES[kind](joined.buffer);
    });
    return said.content;
  };

  /** The flat numbers of a stored array, of a worked-out one, or of a list. */
  viz.values = (value) => {
    if (value === undefined || value === null) return [];
    if (value.array !== undefined) {
      return arrays[value.array].subarray(0, value.shape.reduce((a, b) => a * b, 1));
    }
    if (value.sum) return add(...value.sum.map(viz.values));
    if (value.cosine) return (value.kept ??= cosines(viz.values(value.cosine), value.cosine.shape));
    return value.flat ? value.flat() : value;
  };

  /** [rows, columns] of a matrix, however it is given. */
  viz.shape = (value) => {
    if (value.array !== undefined) return value.shape;
    if (value.sum) return viz.shape(value.sum[0]);
    if (value.cosine) return [value.cosine.shape[0], value.cosine.shape[0]];
    return value.shape ?? [value.length, value[0]?.length ?? 0];
  };

  const add = (a, b) => a.map((one, at) => one + b[at]);

  /** The cosine between every two rows of a (T, C) matrix. */
  const cosines = (matrix, [count, size]) => {
    const rows = Array.from({ length: count }, (_, at) => {
      const row = Float64Array.from(matrix.subarray(at * size, (at + 1) * size));
      const length = Math.hypot(...row) || 1;
      return row.map((x) => x / length);
    });
    const found = new Float32Array(count * count);
    for (let a = 0; a < count; a++) {
      for (let b = 0; b <= a; b++) {
        let sum = 0;
        for (let at = 0; at < size; at++) sum += rows[a][at] * rows[b][at];
        found[a * count + b] = found[b * count + a] = sum;
      }
    }
    return found;
  };
})();
