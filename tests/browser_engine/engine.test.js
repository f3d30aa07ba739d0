// The browser's engine against Python's.
import assert from "node:assert/strict";
import test from "node:test";

import { refusal, wholeConfig } from "../../transformer/browser/config.js";
import { Kernel } from "../../transformer/browser/kernel.js";
import { Item } from "../../transformer/browser/item.js";
import { answers } from "../../transformer/browser/questions/head_metrics.js";
import { Text } from "../../transformer/browser/text.js";
import { tokenizerRefusal } from "../../transformer/browser/tokenizer.js";
import { apart, kernelBytes, modelOf, numbersOf, vectors } from "./vectors.js";

const LOGITS = 1e-4;
const WEIGHTS = 1e-5;
const SMALL = 30; // times as far apart: random networks spread rounding further than trained ones

/** @type {(read: Text, wanted: any, said: string) => void} */
const checkText = (read, { model, sites, head, streams, logits, parts }, said) => {
  const most = model.startsWith("small") ? SMALL : 1;
  for (const [site, weights] of Object.entries(sites))
    assert.ok(
      apart(read.weights(site, head), numbersOf(weights)) < most * WEIGHTS,
      `${site} of ${said}`,
    );
  for (const [stack, values] of Object.entries(streams)) {
    const rows = /** @type {any} */ (read.stacks)[stack];
    const wanted = numbersOf(values);
    const stream = rows.stream[rows.layers.length].subarray(0, wanted.length);
    const size = wanted.reduce((most, x) => Math.max(most, Math.abs(x)), 1);
    assert.ok(
      apart(stream, wanted) < most * LOGITS * size,
      `stream of ${said}: ${apart(stream, wanted)}`,
    );
  }
  if (logits) {
    const values = read.logitsAt(read.ids.length - 1);
    assert.ok(apart(values, numbersOf(logits)) < most * LOGITS, `logits of ${said}`);
  }
  const { norm, norm_embeddings: hasNorm } = read.network.config;
  if (parts && norm.startsWith("pre") && !hasNorm) {
    const made = read.contributions(parts.place, parts.target) ?? assert.fail(said);
    assert.ok(Math.abs(made.logit - parts.logit) < most * LOGITS, said);
    for (const [kind, heads] of Object.entries(parts.heads))
      assert.ok(
        apart(/** @type {any} */ (made.heads)[kind], numbersOf(heads)) < most * LOGITS,
        said,
      );
    assert.ok(apart(made.forward, numbersOf(parts.forward)) < most * LOGITS, said);
    assert.ok(apart(made.biases, numbersOf(parts.biases)) < most * LOGITS, said);
    assert.deepEqual(Object.keys(made.others).sort(), Object.keys(parts.others).sort(), said);
    for (const [name, value] of Object.entries(parts.others))
      assert.ok(Math.abs(made.others[name] - Number(value)) < most * LOGITS, `${name} of ${said}`);
  }
};

test("texts in five scripts have Python's ids, labels and bytes", async () => {
  for (const name of ["stories", "foreign"]) {
    const { tokenizer } = await modelOf(name);
    const { texts, labels } = vectors.tokenizers[name];
    assert.equal(texts.length, 200);
    for (const [text, ids, decoded] of texts) {
      assert.deepEqual(tokenizer.encode(text), ids, text);
      assert.equal(tokenizer.decode(ids), decoded);
    }
    assert.deepEqual(
      Array.from(labels, (_, id) => tokenizer.label(id)),
      labels,
    );
  }
});

test("runs have Python's tokens, weights, streams, logits and contributions", async () => {
  assert.ok(vectors.cases.length > 270);
  for (const wanted of vectors.cases) {
    const model = await modelOf(wanted.model);
    const said = `${wanted.model}, ${JSON.stringify(wanted.request)}`;
    const { text, ids, source, stopped, search, start } = await model.generate(wanted.request);
    assert.deepEqual([ids, source, stopped], [wanted.ids, wanted.source, wanted.stopped], said);
    checkText(text, wanted, said);
    if (wanted.beams) {
      const { hypotheses, steps } = search ?? assert.fail();
      assert.deepEqual(
        hypotheses.map((one) => one.ids),
        wanted.beams.map((/** @type {any} */ one) => one[0]),
      );
      assert.deepEqual(
        hypotheses.map((one) => one.ended),
        wanted.beams.map((/** @type {any} */ one) => one[2]),
      );
      assert.ok(
        apart(
          hypotheses.map((one) => one.score),
          wanted.beams.map((/** @type {any} */ one) => one[1]),
        ) < 1e-4,
      );
      assert.deepEqual(
        steps.map((nodes) => nodes.map(({ token, parent, state }) => [token, parent, state])),
        wanted.nodes,
      );
    }
    const { interventions = [] } = wanted.request;
    if (start || !interventions.length) continue;
    // What the text is read with at once is what it becomes by changes, and the way back.
    const changes = model.resolved(interventions, ids);
    const plain = new Text(model.network, { source });
    plain.read(text.ids);
    const changed = plain.changed(changes);
    checkText(changed, { ...wanted, logits: null, parts: null }, `changed ${said}`);
    const back = changed.changed([]);
    const rows = (/** @type {Text} */ read) =>
      read.last.stream[model.config.n_layers].subarray(0, read.ids.length * model.config.d_model);
    assert.ok(apart(rows(back), rows(plain)) < SMALL * LOGITS, `back from ${said}`);
  }
});

test("a text that is shortened and read on has the numbers of one read at once", async () => {
  for (const name of ["stories", "translate-en-fr", "small-0", "small-2", "small-3"]) {
    const { network, tokenizer } = await modelOf(name);
    const ids = tokenizer.encode("The fox said hello to the bird.").slice(0, 9);
    const options = network.config.family === "encoder-decoder" ? { source: ids } : {};
    const mean = { type: "ablate", stack: "decoder", layer: 0, heads: [0], by: "mean" };
    for (const interventions of /** @type {any[]} */ ([[], [mean]])) {
      const read = new Text(network, { ...options, interventions });
      read.read([...ids.slice(0, 6), 4, 5, 6]);
      read.keep(6);
      ids.slice(6).forEach((id) => read.read([id]));
      const whole = new Text(network, { ...options, interventions });
      assert.ok(apart(read.logits ?? [], whole.read(ids) ?? [1]) < 1e-4, name);
      const part = read.changed(interventions, { upTo: 4 });
      assert.ok(apart(part.logits ?? [], whole.logitsAt(3)) < 1e-4, name);
      assert.equal(part.ids.length, 4);
    }
  }
});

test("padded sources and targets are read as in Python's batch", async () => {
  const { network } = await modelOf(vectors.batch.model);
  assert.equal(vectors.batch.rows.length, 4);
  for (const { interventions, source, target, n_text: nText, sites } of vectors.batch.rows) {
    const text = new Text(network, { source, interventions, nText });
    text.read(target);
    checkText(
      text,
      { model: vectors.batch.model, sites, head: 2, streams: {} },
      JSON.stringify(interventions),
    );
  }
});

test("hidden words are guessed as in Python", async () => {
  const model = await modelOf("fill-in");
  for (const { text, guesses } of vectors.fills) {
    const made = model.fill(text).guesses.flat();
    const wanted = guesses.flat();
    assert.deepEqual(
      made.map(({ id, label }) => [id, label]),
      wanted.map((/** @type {any} */ one) => one.slice(0, 2)),
    );
    assert.ok(
      apart(
        made.map(({ probability }) => probability),
        wanted.map((/** @type {any} */ one) => one[2]),
      ) < 1e-5,
    );
  }
});

test("heads have Python's numbers and names", async () => {
  const labels = new Set();
  for (const {
    model: name,
    ids,
    source,
    source_labels: sources,
    asked,
    answer,
  } of vectors.metrics) {
    /** @type {import("../../transformer/browser/item.js").Model} */
    const model = Object.assign(await modelOf(name), {
      frames: /** @type {any} */ ({ measures: vectors.measures }),
    });
    const text = new Text(model.network, { source: source.length ? source : undefined });
    text.read(ids);
    const stack = model.network.last.name;
    const item = new Item(model, text, /** @type {any} */ ({ stack, source_labels: sources }));
    const got = await answers.metrics(item, asked);
    const alike = (/** @type {any} */ a, /** @type {any} */ b, /** @type {string} */ said) =>
      assert.ok(
        typeof b === "number" ? Math.abs(a - b) < 1e-3 : a === b,
        `${name}, ${said}: ${a}, not ${b}`,
      );
    assert.equal(got.heads.length, answer.heads.length);
    for (const [at, { label, sign, key, values }] of answer.heads.entries()) {
      const head = got.heads[at];
      assert.deepEqual(
        [head.label, head.sign, head.key],
        [label, sign, key],
        `${name}, head ${at}`,
      );
      for (const [metric, value] of Object.entries(values))
        alike(head.values[metric], value, metric);
      labels.add(label);
    }
    for (const [at, { name: metric, shuffled, shuffled_most: most }] of answer.metrics.entries()) {
      assert.equal(got.metrics[at].name, metric);
      alike(got.metrics[at].shuffled, shuffled, metric);
      alike(got.metrics[at].shuffled_most, most, metric);
    }
    assert.equal(got.finding === null, answer.finding === null, name);
    for (const [fact, value] of Object.entries(answer.finding ?? {}))
      alike(Object(got.finding)[fact], value, fact);
  }
  assert.ok(labels.size > 5, [...labels].join());
});

test("a generation that is cancelled gives what there is", async () => {
  const model = await modelOf("stories");
  const stop = new AbortController();
  /** @type {(step: {index: number}) => void} */
  const onStep = ({ index }) => {
    if (index === 3) stop.abort();
  };
  const run = await model.generate({ text: "Once" }, { onStep, signal: stop.signal });
  assert.deepEqual([run.steps.length, run.stopped], [4, "cancelled"]);
  assert.equal(run.text.ids.length, run.ids.length);
});

test("missing memory and a kernel that does not run are said in a sentence", async () => {
  const kernel = await Kernel.from(kernelBytes());
  assert.throws(() => kernel.allocate(2 ** 33), /^Error: This browser does not have enough memory/);
  await assert.rejects(Kernel.from(new Uint8Array(8)), /^Error: This browser lacks WebAssembly/);
});

test("a network that is not computed is refused in a sentence", () => {
  assert.deepEqual({ ...wholeConfig({}) }, vectors.defaults);
  assert.equal(refusal({}), null);
  const content = {
    model: { type: "BPE", vocab: {}, merges: [] },
    added_tokens: [],
    normalizer: null,
  };
  const split = { type: "ByteLevel" };
  const tokenizer = { ...content, pre_tokenizer: split, post_processor: null };
  assert.equal(tokenizerRefusal(tokenizer), null);
  /** @type {(tokens: object) => any} */
  const framed = (tokens) => ({ type: "TemplateProcessing", special_tokens: tokens });
  assert.equal(tokenizerRefusal({ ...tokenizer, post_processor: framed({}) }), null);
  const begins = { ...tokenizer, post_processor: framed({ "<s>": {} }) };
  assert.match(String(tokenizerRefusal(begins)), /^The browser .*\.$/);
  for (const odd of [{ pre_tokenizer: { type: "Split" } }, { normalizer: { type: "NFKC" } }])
    assert.match(String(tokenizerRefusal({ ...tokenizer, ...odd })), /^The browser .*\.$/);
  for (const odd of [{ positions: "alibi" }, { head: "none" }, { d_model: 18, n_heads: 2 }])
    assert.match(String(refusal(odd)), /^The browser .*\.$/);
});
