// The worker in which a page's networks run: loads models, makes runs and answers questions about them.

import { said } from "../web/later.js";
import { Model } from "./model.js";
import { unpackedParts, unzipped } from "./page/packed.js";
import { holdBackground } from "./pauses.js";
import { questions } from "./questions/every.js";
import { Runs } from "./runs.js";
import { serve } from "./worker.js";

/** @typedef {import("../web/types").PlainValues} Data */
/** @typedef {string | Uint8Array | null} Part of a file; null: there are no more */

const runs = new Runs();

// A file that the page sends in parts.
class Arriving {
  constructor() {
    /** @type {{ part: Part, taken: () => void }[]} */
    this.parts = [];
    this.wake = () => {};
    this.isGone = false; // nobody reads it
  }

  // Resolves once the part is taken; null: there are no more.
  /** @param {Part} part @returns {Promise<void>} */
  push(part) {
    if (this.isGone) return Promise.resolve();
    return new Promise((taken) => {
      this.parts.push({ part, taken });
      this.wake();
    });
  }

  end() {
    this.isGone = true;
    for (const { taken } of this.parts) taken();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (!this.parts.length) await new Promise((done) => (this.wake = () => done(undefined)));
      const { part, taken } = this.parts.splice(0, 1)[0];
      taken();
      if (part === null) return;
      yield part;
    }
  }
}
/** @type {Map<string, Arriving>} */
const arriving = new Map();

/** @type {(bytes: ArrayBuffer, of?: (text: string) => string) => any} */
const parsed = (bytes, of = String) => {
  const text = new TextDecoder().decode(bytes);
  return JSON.parse(text, (_, value) => (typeof value === "string" ? of(value) : value));
};

/** @type {(data: Data) => Promise<void>} */
const load = async ({ model: name, kernel, files, weights, isPacked, facts, batch }) => {
  for (const file of weights) arriving.set(file.name, new Arriving());
  const come = weights.map((/** @type {Data} */ file) => {
    const parts = /** @type {any} */ (arriving.get(file.name)); // texts where it is packed, else bytes
    return { size: file.size, parts: isPacked ? unpackedParts(parts) : parts, inPlanes: isPacked };
  });
  const [config, tokenizer] = ["config.json", "tokenizer.json"].map((file) => parsed(files[file]));
  try {
    const model = await Model.load({ name, config, tokenizer, files: come, kernel });
    const frames = parsed(await unzipped(files["frames.json.gz"]), said);
    runs.add(Object.assign(model, { frames }), facts, batch);
  } finally {
    for (const { name: file } of weights) arriving.get(file)?.end();
  }
};

// facts: of the run or batch that is asked about, as the page has them; others: of the run that it is compared with.
/** @type {(name: string) => (data: Data) => unknown} */
const answered =
  (name) =>
  ({ facts, others, ...data }) => {
    holdBackground();
    const other = data.other && others ? runs.itemOf({ run: data.other }, others) : null;
    const compared = /** @type {import("./item.js").Item} */ (other); // for questions about two runs
    return questions[name](runs.itemOf(data, facts), data, runs.rowsOf(data), compared);
  };
serve({
  ...Object.fromEntries(Object.keys(questions).map((name) => [name, answered(name)])),
  load,
  part: ({ name, part }) => arriving.get(name)?.push(part),
  runs: (data, { progress, signal }) => runs.write(data, progress, signal),
  batches: (data, { progress }) => runs.readBatch(data, progress),
  typed: (data) => runs.typed(data),
});
