// A checkpoint's safetensors files: the header's length (8 bytes), the header as JSON, and the numbers
// of all tensors. Files go into the kernel's memory part by part as they come.

/** @import { Tensor, WeightsFile } from "./types.d.ts" */
/** @import { Kernel } from "./kernel.js" */

const TYPES = ["F32", "F16", "BF16"]; // as kernel.c counts them
const ALIGNED = 16; // bytes, as the kernel's addresses

// Where a byte of float16 belongs whose first ones all came before the second ones.
/** @type {(at: number, half: number) => number} */
const placeOf = (at, half) => (at < half ? 2 * at : 2 * (at - half) + 1);

export class Weights {
  /** @param {Kernel} kernel */
  constructor(kernel) {
    this.kernel = kernel;
    /** @type {Map<string, Tensor>} */
    this.tensors = new Map();
  }

  /** Take the tensors of one file. Raises Error for one that ends early. @param {WeightsFile} file */
  async add({ size, parts, inPlanes = false }) {
    const start = this.kernel.allocate(size + ALIGNED); // before the numbers are moved
    let got = 0;
    for await (const part of parts) {
      const bytes = this.kernel.bytes(start, size);
      if (!inPlanes) bytes.set(part, got);
      else
        for (let at = 0; at < part.length; at += 1) bytes[placeOf(got + at, size / 2)] = part[at];
      got += part.length;
    }
    if (got < size) throw new Error(`weights: ${got} of ${size}`);
    this._read(start, size);
  }

  /** @param {number} start @param {number} size */
  _read(start, size) {
    const bytes = this.kernel.bytes(start, size + ALIGNED);
    const view = new DataView(bytes.buffer, start);
    const first = 8 + Number(view.getBigUint64(0, true));
    /** @type {Record<string, {dtype: string, shape: number[], data_offsets: number[]}>} */
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, first)));
    delete header.__metadata__;
    const moved = Math.ceil(first / ALIGNED) * ALIGNED;
    bytes.copyWithin(moved, first, size);
    for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(header)) {
      const type = TYPES.indexOf(dtype);
      if (type < 0) throw new Error(`tensor type: ${dtype}`);
      this.tensors.set(name, { address: start + moved + offsets[0], type, shape });
    }
  }

  /** @param {string} name */
  get(name) {
    const tensor = this.tensors.get(name);
    if (!tensor) throw new Error(`missing tensor: ${name}`);
    return tensor;
  }
}
