// The worker in which a page's networks run: loads models, makes runs and answers questions about them.

import { said } from "../web/later.js";
import { Model } from "./model.js";
import { partsOf, wholeOf } from "./page/fetched.js";
import { unzipped } from "./page/packed.js";
import { holdBackground } from "./pauses.js";
import { questions } from "./questions/every.js";
import { Runs } from "./runs.js";
import { collect, serve } from "./worker.js";

/** @typedef {import("../web/types").PlainValues} PlainValues */
/** @typedef {import("./item.js").Item} Item */
/** @typedef {{ name: string, size: number, source: import("./page/fetched.js").FileContent }} File */

const runs = new Runs();

/** @type {(bytes: ArrayBuffer, of?: (text: string) => string) => PlainValues} */
const parsed = (bytes, of = String) => {
  const text = new TextDecoder().decode(bytes);
  return JSON.parse(text, (_, value) => (typeof value === "string" ? of(value) : value));
};

const REPORTS = 8; // of how much has come
// Load a model, telling `progress` how many bytes of its weights have come.
/** @type {(data: PlainValues, context: import("./types.d.ts").CallContext) => Promise<void>} */
const load = async ({ model: name, kernel, files, facts, batch }, { progress }) => {
  const isOfWeights = (/** @type {File} */ file) => file.name.endsWith(".safetensors");
  /** @type {File[]} */
  const weights = files.filter(isOfWeights);
  const all = weights.reduce((sum, { size }) => sum + size, 0);
  let [got, reported] = [0, 0];
  /** @type {(source: File["source"]) => AsyncGenerator<Uint8Array>} */
  async function* counted(source) {
    for await (const part of partsOf(source)) {
      got += part.length;
      if (got - reported > all / REPORTS) progress((reported = got));
      yield part;
    }
  }
  const others = files
    .filter((/** @type {File} */ file) => !isOfWeights(file))
    .map(async (/** @type {File} */ file) => [
      file.name.split("/").at(-1),
      await wholeOf(file.source),
    ]);
  const contents = Object.fromEntries(await Promise.all(others));
  const [config, tokenizer] = ["config.json", "tokenizer.json"].map((file) =>
    parsed(contents[file]),
  );
  const read = /** @type {Pick<import("./types.d.ts").Checkpoint, "config" | "tokenizer">} */ (
    /** @type {unknown} */ ({ config, tokenizer })
  );
  const model = await Model.load({
    ...{ ...read, name, kernel: await wholeOf(kernel) },
    files: weights.map(({ size, source }) => ({
      ...{ size, parts: counted(source), inPlanes: typeof source !== "string" },
    })),
  });
  const frames = parsed(await unzipped(contents["frames.json.gz"]), said);
  runs.add(
    Object.assign(model, { frames: /** @type {import("./questions/types").Frames} */ (frames) }),
    facts,
    batch,
  );
  collect(); // the files, as they came
};

// facts: of the run or batch that is asked about, as the page has them; others: of the run that it is compared with.
/** @type {(name: keyof typeof questions) => (data: PlainValues) => unknown} */
const answered =
  (name) =>
  ({ facts, others, ...data }) => {
    holdBackground();
    const other = data.other && others ? runs.itemOf({ run: data.other }, others) : null;
    const compared = /** @type {Item} */ (other); // for questions about two runs
    const answer = /** @type {(...asked: [Item, object, Item[], Item]) => unknown} */ (
      questions[name]
    );
    return answer(runs.itemOf(data, facts), data, runs.rowsOf(data), compared);
  };
const names = /** @type {(keyof typeof questions)[]} */ (Object.keys(questions));
serve({
  ...Object.fromEntries(names.map((name) => [name, answered(name)])),
  load,
  runs: (data, { progress, signal }) => runs.write(data, progress, signal),
  batches: (data, { progress }) => runs.readBatch(data, progress),
  typed: (data) => runs.typed(data),
});
