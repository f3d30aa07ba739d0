// A checkpoint's safetensors files: the header's length (8 bytes), the header as JSON, and the numbers
// of all tensors, which go into the kernel's memory.

/** @import { Tensor } from "./types.d.ts" */
/** @import { Kernel } from "./kernel.js" */

const TYPES = ["F32", "F16", "BF16"]; // as kernel.c counts them

export class Weights {
  /** @param {Kernel} kernel */
  constructor(kernel) {
    this.kernel = kernel;
    /** @type {Map<string, Tensor>} */
    this.tensors = new Map();
  }

  /** Copy the tensors of one file, which is not needed any more. @param {ArrayBuffer} file */
  add(file) {
    const size = Number(new DataView(file).getBigUint64(0, true));
    /** @type {Record<string, {dtype: string, shape: number[], data_offsets: number[]}>} */
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, size)));
    delete header.__metadata__;
    for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(header)) {
      const type = TYPES.indexOf(dtype);
      if (type < 0) throw new Error(`tensor type: ${dtype}`);
      const [from, to] = offsets;
      const numbers = new Uint8Array(file, 8 + size + from, to - from);
      this.tensors.set(name, this.kernel.store(numbers, type, shape));
    }
  }

  /** @param {string} name */
  get(name) {
    const tensor = this.tensors.get(name);
    if (!tensor) throw new Error(`missing tensor: ${name}`);
    return tensor;
  }
}
