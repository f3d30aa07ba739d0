// The worker in which a page's networks run: loads models, makes runs and answers questions about them.

import { said } from "../web/later.js";
import { Model } from "./model.js";
import { joined, unpacked, unzipped } from "./page/packed.js";
import { questions } from "./questions/every.js";
import { Runs } from "./runs.js";
import { serve } from "./worker.js";

/** @typedef {Record<string, any>} Data */

const runs = new Runs();

// A file is its bytes, or the text that a page in one file holds.
/** @type {(file: ArrayBuffer | string) => Promise<ArrayBuffer>} */
const bytesOf = async (file) => (typeof file === "string" ? unpacked(file) : file);
/** @type {(file: ArrayBuffer | string) => Promise<ArrayBuffer>} */
const weightsOf = async (file) => (typeof file === "string" ? joined(await unpacked(file)) : file);
/** @type {(bytes: ArrayBuffer, of?: (text: string) => string) => any} */
const parsed = (bytes, of = String) => {
  const text = new TextDecoder().decode(bytes);
  return JSON.parse(text, (_, value) => (typeof value === "string" ? of(value) : value));
};

/** @type {(data: Data) => Promise<void>} */
const load = async ({ model: name, kernel, files, facts, batch }) => {
  const weights = Object.keys(files).filter((file) => file.endsWith(".safetensors"));
  const [config, tokenizer, frames] = await Promise.all(
    ["config.json", "tokenizer.json", "frames.json.gz"].map((file) => bytesOf(files[file])),
  );
  async function* contents() {
    for (const file of weights) yield await weightsOf(files[file]);
  }
  const checkpoint = { name, config: parsed(config), tokenizer: parsed(tokenizer) };
  const model = await Model.load({ ...checkpoint, files: contents(), kernel });
  runs.add(Object.assign(model, { frames: parsed(await unzipped(frames), said) }), facts, batch);
};

// facts: of the run or batch that is asked about, as the page has them.
/** @type {(name: string) => (data: Data) => any} */
const answered =
  (name) =>
  ({ facts, ...data }) =>
    questions[name](runs.itemOf(data, facts), data, runs.rowsOf(data));
serve({
  ...Object.fromEntries(Object.keys(questions).map((name) => [name, answered(name)])),
  load,
  runs: (data, { progress, signal }) => runs.write(data, progress, signal),
  batches: (data, { progress }) => runs.readBatch(data, progress),
  typed: (data) => runs.typed(data),
});
