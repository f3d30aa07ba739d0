// The browser's answers from the files of a folder against the server's (see test_answers.py).
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gunzipSync } from "node:zlib";

import { Model } from "../../transformer/browser/model.js";
import { questions } from "../../transformer/browser/questions/every.js";
import { QUESTIONS } from "../../transformer/browser/questions/names.js";
import { Runs } from "../../transformer/browser/runs.js";
import { headNumbers } from "../../transformer/web/head_numbers.js";
import { said } from "../../transformer/web/later.js";

const FOLDER = process.env.FOLDER;
if (!FOLDER) throw new Error("run these tests by pytest tests/static_page");
const OUT = join(FOLDER, "out");
const CLOSE = 2e-3; // of a number, or of 1: weights are float16, sums in another order

/** @type {(bytes: Buffer) => any} */
const parsed = (bytes) =>
  JSON.parse(bytes.toString("utf8"), (_, value) =>
    typeof value === "string" ? said(value) : value,
  );
/** @type {Record<string, any>} */
const TYPES = {
  u1: Uint8Array,
  i1: Int8Array,
  i2: Int16Array,
  i4: Int32Array,
  f4: Float32Array,
  f8: Float64Array,
};
/** @type {Record<string, any>} */
const NAMED = {
  uint8: Uint8Array,
  int32: Int32Array,
  int64: BigInt64Array,
  float32: Float32Array,
  float64: Float64Array,
};

/** @type {(value: any) => any} */
const arrayOf = (value) => {
  const packed = value?.bdata ?? value?.base64;
  if (!packed) return value;
  const bytes = Uint8Array.from(Buffer.from(packed, "base64"));
  return new (TYPES[value.dtype] ?? NAMED[value.dtype])(bytes.buffer);
};
// Arrays as flat lists of numbers, null for NaN; empty parts left out.
/** @type {(value: any) => any} */
const plain = (value) => {
  if (value === undefined || value === null || Number.isNaN(value)) return null;
  if (ArrayBuffer.isView(value)) return Array.from(/** @type {any} */ (value), plain);
  if (Array.isArray(value)) {
    const parts = value.map(plain);
    return parts.length &&
      parts.every((one) => one === null || typeof one === "number" || Array.isArray(one))
      ? parts.flat(9)
      : parts;
  }
  if (typeof value !== "object") return value;
  if (value.bdata ?? value.base64) return plain(arrayOf(value));
  const all = Object.entries(value).map(([name, part]) => [name, plain(part)]);
  return Object.fromEntries(all.filter(([, part]) => part !== null));
};

const UNSEEN = ["title", "template"]; // of a figure: the page says its title
/** @type {(got: any, wanted: any, path: string) => void} */
const same = (got, wanted, path) => {
  if (typeof wanted === "number" && typeof got === "number") {
    const room = CLOSE * Math.max(1, Math.abs(wanted));
    return assert.ok(Math.abs(got - wanted) <= room, `${path}: ${got}, not ${wanted}`);
  }
  if (typeof wanted === "string" && typeof got === "string" && /\d/.test(wanted)) {
    const numbers = /-?\d+(\.\d+)?/g;
    assert.equal(got.replace(numbers, "#"), wanted.replace(numbers, "#"), path);
    const [mine, theirs] = [got, wanted].map((text) => (text.match(numbers) ?? []).map(Number));
    return theirs.forEach((one, at) =>
      assert.ok(
        Math.abs(mine[at] - one) <= 0.02 * Math.max(1, Math.abs(one)),
        `${path}: ${got}, not ${wanted}`,
      ),
    );
  }
  if (wanted === null || typeof wanted !== "object") return assert.equal(got, wanted, path);
  assert.equal(
    Array.isArray(got),
    Array.isArray(wanted),
    `${path}: ${JSON.stringify(got)?.slice(0, 80)}`,
  );
  if (Array.isArray(wanted)) {
    assert.equal(got.length, wanted.length, `${path}: length`);
    return wanted.forEach((one, at) => same(got[at], one, `${path}[${at}]`));
  }
  const isLayout = path.endsWith(".layout") || path.endsWith("figure");
  for (const name of new Set([...Object.keys(wanted), ...Object.keys(got ?? {})]))
    if (!(isLayout && UNSEEN.includes(name))) same(got?.[name], wanted[name], `${path}.${name}`);
};

// What the page makes of an answer, where the same numbers may come in two forms; a figure that it does not draw is left out.
/** @type {(name: string, data: any, answer: any) => any} */
const comparable = (name, data, answer) => {
  // How little rounding moves a score is another number each time.
  if (name === "rotary") return plain({ ...answer, says: { ...answer.says, distance: null } });
  if (name === "attention_math") return plain({ ...answer, figure: null, tolerance: null });
  if (name !== "heatmap" || !data.numbers) return plain(answer);
  const arrays = Object.entries(answer).map(([key, value]) => [key, arrayOf(value)]);
  const { weights, allowed } = headNumbers(/** @type {any} */ (Object.fromEntries(arrays)));
  return plain({ figure: answer.figure, weights, allowed });
};

const runs = new Runs();
/** @type {Record<string, any>} facts of the stored runs and batches */
const stored = {};
const site = parsed(gunzipSync(readFileSync(join(OUT, "site.json.gz"))));
for (const [name, { files, page }] of Object.entries(
  /** @type {Record<string, any>} */ (site.models),
)) {
  const [first] = Object.keys(files);
  const folder = join(OUT, first, "..");
  const read = (/** @type {string} */ file) => readFileSync(join(folder, file));
  const weights = readdirSync(folder).filter((file) => file.endsWith(".safetensors"));
  const model = await Model.load({
    ...{
      name,
      config: parsed(read("config.json")),
      tokenizer: JSON.parse(read("tokenizer.json").toString()),
    },
    files: weights.map(read).map((bytes) => ({ size: bytes.length, parts: [bytes] })),
    kernel: readFileSync(join(OUT, "kernel.wasm")),
  });
  const frames = parsed(gunzipSync(read("frames.json.gz")));
  runs.add(Object.assign(model, { frames }), page.run, page.batch);
  Object.assign(stored, { [page.run.run]: page.run, [page.batch.batch]: page.batch });
}

test("the page asks what is answered", () => {
  assert.deepEqual([...QUESTIONS].sort(), Object.keys(questions).sort());
});

const FACTS = ["labels", "source_labels", "ids", "special", "source_special", "hidden", "last_read", "n_prompt",
  "probabilities", "trace_start", "kinds", "stopped", "hypotheses", "text", "forced_tokens", "how", "seed",
  "interventions", "request", "opening"]; // prettier-ignore
/** @type {Record<string, any[]>} facts of each model's runs, in their order */
const earlier = {};
const answers = JSON.parse(readFileSync(join(FOLDER, "answers.json"), "utf8"));
/** @type {(says: string) => string} */
const timeless = (says) => says.replace(/(\d+ ms|[\d.]+ s)\./, "#.");
for (const { model, key, request, facts, says, questions: asked } of answers) {
  let id = key;
  /** @type {any} the facts of a run that was made here */
  let made = null;
  if (!request && key.startsWith("run")) earlier[model] = [stored[key]];
  if (request)
    test(`${model} writes ${request.text} as the server`, async () => {
      /** @type {any[]} */
      const lines = [];
      await runs.write(request, (line) => lines.push(line), new AbortController().signal);
      const { tokens, status } = lines[lines.length - 1];
      made = tokens;
      earlier[model].push(made);
      assert.equal(timeless(status.text), timeless(says));
      id = made.run;
      for (const name of FACTS) same(plain(made[name]), plain(facts[name]), name);
    });
  for (const { name, data, answer, other } of asked)
    test(`${model}: ${name} ${JSON.stringify(data)} ${other ?? ""} of ${request?.text ?? key}`, async () => {
      const of = id.startsWith("batch") ? { batch: id } : { run: id };
      const whole = { ...data, ...of };
      const item = runs.itemOf(whole, made ?? stored[id]);
      const beside = earlier[model]?.[other];
      const second = beside && runs.itemOf({ run: beside.run }, beside);
      const got = await Object(questions)[name](item, whole, runs.rowsOf(whole), second);
      const [mine, theirs] = [got, answer].map((one) => comparable(name, data, one));
      same(mine, theirs, name);
    });
}

test("of a text with a head switched off its logits alone are kept", () => {
  const items = [...runs.kept.values()].flat();
  const changed = items.flatMap((item) => [...item.changed.values()]);
  assert.notEqual(changed.length, 0);
  for (const logits of changed) assert.equal(logits.buffer.byteLength, 4 * logits.length);
});
