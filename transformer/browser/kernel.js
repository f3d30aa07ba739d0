// The products of kernel.c (WebAssembly with SIMD), and the memory that holds a network's weights.

import { say } from "../web/messages.js";

/** @import { KernelExports, Tensor, Linear } from "./types.d.ts" */

const PAGE = 2 ** 16;

// One network's memory: weights in the type they are stored in, then scratch. Arrays of it are
// made after the last `allocate`, which may move it.
export class Kernel {
  /**
   * bytes: of kernel.wasm. Raises Error, a sentence, where it does not run.
   * @param {BufferSource} bytes
   */
  static async from(bytes) {
    const { instance } = await WebAssembly.instantiate(bytes, {}).catch(() => {
      throw new Error(say("This browser lacks WebAssembly with SIMD, or the page may not use it."));
    });
    return new Kernel(/** @type {KernelExports} */ (instance.exports));
  }

  /** @param {KernelExports} exports */
  constructor({ memory, multiply, widen, __heap_base: base }) {
    /** @type {WebAssembly.Memory} */
    this.memory = memory;
    this._multiply = multiply;
    this._widen = widen;
    this._end = Math.ceil(base.value / 16) * 16;
    this._rows = 0; // scratch of multiply, and its numbers
    this._nRows = 0;
  }

  /**
   * The address of so many bytes, a multiple of 16. Raises Error, a sentence, without the memory.
   * @param {number} count
   */
  allocate(count) {
    const address = this._end;
    this._end += Math.ceil(count / 16) * 16;
    const missing = this._end - this.memory.buffer.byteLength;
    if (missing <= 0) return address;
    try {
      this.memory.grow(Math.ceil(missing / PAGE));
    } catch {
      throw new Error(say("This browser does not have enough memory for the network."));
    }
    return address;
  }

  /** @param {number} address @param {number} count */
  floats(address, count) {
    return new Float32Array(this.memory.buffer, address, count);
  }

  /** @param {number} address @param {number} count */
  bytes(address, count) {
    return new Uint8Array(this.memory.buffer, address, count);
  }

  /** Room for `count` float32. @param {number} count */
  scratch(count) {
    return this.allocate(4 * count);
  }

  /** Prepare for maps of so many inputs. @param {number} nIn */
  reserve(nIn) {
    if (4 * nIn <= this._nRows) return;
    this._nRows = 4 * nIn;
    this._rows = this.scratch(this._nRows);
  }

  /**
   * A tensor's numbers from `first` on, as float32 in this memory until the next call.
   * @param {Tensor} tensor
   * @param {number} first a multiple of 4, as count
   * @param {number} count at most 4 times the largest nIn reserved
   */
  widened({ address, type }, first, count) {
    this._widen(address + first * (type === 0 ? 4 : 2), type, count, this._rows);
    return this.floats(this._rows, count);
  }

  /** A tensor's numbers as float32 in new memory outside. @param {Tensor} tensor @param {number} first @param {number} count */
  numbers(tensor, first, count) {
    const values = new Float32Array(count);
    for (let at = 0; at < count; at += this._nRows)
      values.set(this.widened(tensor, first + at, Math.min(this._nRows, count - at)), at);
    return values;
  }

  /**
   * y = W x + bias for n vectors, one behind the other, both in this memory.
   * @type {(linear: Linear, x: Float32Array, n: number, y: Float32Array) => void}
   */
  multiply({ weight: { address, type }, bias, nOut, nIn }, x, n, y) {
    this._multiply(address, type, bias, nOut, nIn, x.byteOffset, n, y.byteOffset, this._rows);
  }
}
