// Python's numbers, and the bundled models on the browser's engine (see test_engine.py).
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { Model } from "../../transformer/browser/model.js";

const FOLDER = process.env.VECTORS;
if (!FOLDER) throw new Error("run these tests by pytest tests/browser_engine/test_engine.py");

export const vectors = JSON.parse(readFileSync(join(FOLDER, "vectors.json"), "utf8"));

/** @type {(path: string) => ArrayBuffer} */
const bytesOf = (path) => Uint8Array.from(readFileSync(path)).buffer;
/** @type {(folder: string, name: string) => any} */
const jsonOf = (folder, name) => JSON.parse(readFileSync(join(folder, name), "utf8"));

export const kernelBytes = () => bytesOf(join(vectors.package, "browser", "kernel.wasm"));

/** @type {Map<string, Promise<Model>>} */
const loaded = new Map();

/**
 * A model of the vectors, loaded once.
 * @param {string} name
 * @returns {Promise<Model>}
 */
export const modelOf = (name) => {
  const folder = vectors.folders[name];
  const load = () =>
    Model.load({
      name,
      config: jsonOf(folder, "config.json"),
      tokenizer: jsonOf(folder, "tokenizer.json"),
      files: readdirSync(folder)
        .filter((file) => file.endsWith(".safetensors"))
        .sort()
        .map((file) => readFileSync(join(folder, file)))
        .map((bytes) => ({ size: bytes.length, parts: [bytes] })),
      kernel: kernelBytes(),
    });
  const model = loaded.get(name) ?? load();
  loaded.set(name, model);
  return model;
};

/**
 * The largest difference of two equally long rows of numbers.
 * @param {ArrayLike<number>} values
 * @param {ArrayLike<number>} wanted
 */
export const apart = (values, wanted) => {
  if (values.length !== wanted.length) return Infinity;
  let most = 0;
  for (let at = 0; at < wanted.length; at += 1) {
    const difference = Math.abs(values[at] - wanted[at]);
    if (!(difference <= most)) most = Number.isNaN(difference) ? Infinity : difference;
  }
  return most;
};

/** Float32 from base64. @param {any} text */
export const numbersOf = (text) => {
  const { buffer, byteOffset, length } = Buffer.from(text, "base64");
  return new Float32Array(buffer.slice(byteOffset, byteOffset + length));
};
