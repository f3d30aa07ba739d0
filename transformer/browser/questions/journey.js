// The questions of the tab Journey, each answered as the Python function of its name (views/journey/journey.py).

import { largest, softmax } from "../sampling.js";
import { Text } from "../text.js";
import { finishedSlowly, inBackground } from "../pauses.js";
import { likeliestOf, named, nameOf, placeOf, siteOf, sitesOf, switchedOff } from "./places.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {import("../types.d.ts").Intervention} Intervention
 * @typedef {import("../types.d.ts").Kind} Kind
 * @typedef {import("./places.js").Site} Site
 */

const [N_LIKELIEST, N_WITHOUT, N_WRITTEN] = [10, 5, 8];
const SENTENCE_ENDS = /[.!?]/;

// The logits at a place with more interventions, kept: the card and the bars ask alike.
/** @type {(item: Item, interventions: Intervention[], place: number) => Float32Array} */
export const changedLogits = (item, interventions, place) => {
  const key = JSON.stringify([interventions, place]);
  const upTo = item.facts.stack === "encoder" ? item.text.ids.length : place + 1;
  const logits =
    item.changed.get(key) ?? item.text.changed(interventions, { upTo }).logitsAt(place);
  item.changed.set(key, logits);
  if (item.changed.size > 16) item.changed.delete([...item.changed.keys()][0]);
  return logits;
};
/** @type {(site: string, head: number) => import("../types.d.ts").Ablate} */
const off = (site, head) => ({ type: "ablate", ...siteOf(site), heads: [head] });
// Interventions with a head switched off, or on again where it is off in every token.
/** @type {(item: Item, site: string, head: number) => Intervention[]} */
const switched = (item, site, head) => {
  const { interventions } = item.text;
  if (!switchedOff(item, site).includes(head)) return [...interventions, off(site, head)];
  return interventions.flatMap((change) => {
    const isThis =
      change.type === "ablate" && nameOf({ kind: "self", ...change }) === site && !change.positions;
    if (!isThis) return [change];
    const heads = (change.heads ?? []).filter((other) => other !== head);
    return heads.length ? [{ ...change, heads }] : [];
  });
};

// The head that adds most to a logit, of those that read; null where none adds anything.
/** @type {(item: Item, heads: Record<string, Float32Array>, counted?: boolean) => (Site & { head: number, adds: number }) | null} */
const bestHead = (item, heads, counted = true) => {
  const { n_heads: nHeads } = item.model.network.config;
  const { stack } = item.facts;
  const all = Object.entries(heads).flatMap(([kind, values]) =>
    Array.from(values, (adds, at) => {
      const site = { stack, kind: /** @type {Kind} */ (kind), layer: Math.floor(at / nHeads) };
      return { ...site, head: at % nHeads, adds };
    }),
  );
  const reading = counted
    ? all.filter((part) => !switchedOff(item, nameOf(part)).includes(part.head))
    : all;
  const best = reading.reduce((a, b) => (b.adds > a.adds ? b : a));
  return best.adds > 0 || !counted ? best : null;
};

// ---- the journey ----

/** @type {(stream: Float32Array) => number} */
const normOf = (stream) => Math.sqrt(stream.reduce((sum, x) => sum + x * x, 0));

/** @type {(item: Item) => import("../../views/journey/types").JourneyAnswer["encoder"]} */
const encoderOf = ({ text, model }) => {
  const { family, n_layers: nLayers } = model.network.config;
  if (family !== "encoder-decoder") return null;
  const mean = (/** @type {number} */ layer) =>
    text.source.reduce((sum, _, at) => sum + normOf(text.streamAt(layer, at, "encoder")), 0) /
    text.source.length;
  return { norms: Float32Array.from({ length: nLayers + 1 }, (_, layer) => mean(layer)), lens: [] };
};

/** @type {Answerer<"journey">} */
const journey = (item, data) => {
  const { text, facts, model } = item;
  const { network, tokenizer } = model;
  const { place, row } = placeOf(item, data);
  const logits = text.logitsAt(row);
  const target = data.target ?? largest(logits, 1)[0];
  const parts = text.contributions(row, target);
  const layers = Array.from({ length: network.config.n_layers + 1 }, (_, layer) => layer);
  const next = facts.ids[place + Number(facts.stack !== "encoder")];
  const hasNext = next !== undefined && next !== tokenizer.mask;
  const best = parts && bestHead(item, parts.heads);
  return {
    ...{ position: place, target, target_label: tokenizer.label(target), stack: facts.stack },
    ...{ logits, never: network.never, likeliest: likeliestOf(item, logits, N_LIKELIEST) },
    next: hasNext ? { ...named(item, next), probability: softmax(logits)[next] } : null,
    lens: layers.map((layer) => likeliestOf(item, text.lens(layer, row), 1)[0]),
    norms: Float32Array.from(layers, (layer) => normOf(text.streamAt(layer, row))),
    ...{ heads: parts?.heads ?? null, feed_forward: parts?.forward ?? null },
    ...{ biases: parts?.biases ?? null, embedding: parts?.others ?? null },
    encoder: encoderOf(item),
    named: best && { stack: best.stack, kind: best.kind, layer: best.layer, head: best.head },
  };
};

/** @type {Answerer<"without_head">} */
const withoutHead = (item, data) => {
  const { row } = placeOf(item, data);
  const interventions = [...item.text.interventions, off(data.site, data.head)];
  const logits = changedLogits(item, interventions, row);
  return { logits, likeliest: likeliestOf(item, logits, N_WITHOUT) };
};

const MOST_OPERATIONS = 1e11; // of trying all heads: some seconds of one core
// The heads without each of which alone another token would follow; n null: trying them takes too long.
/** @type {Answerer<"deciding">} */
const deciding = (item, data) =>
  inBackground(async (pause) => {
    const { row } = placeOf(item, data);
    const { text, model, facts } = item;
    const upTo = facts.stack === "encoder" ? text.ids.length : row + 1;
    const heads = facts.kinds
      .flatMap(({ stack, kind }) => sitesOf(item, stack, kind))
      .flatMap((site) =>
        Array.from({ length: model.network.config.n_heads }, (_, head) => ({ site, head })),
      )
      .filter(({ site, head }) => !switchedOff(item, site).includes(head));
    const read = upTo + text.source.length;
    if (2 * model.network.nWeights * read * heads.length > MOST_OPERATIONS)
      return { n: null, heads: [] };
    const [likeliest] = largest(text.logitsAt(row), 1);
    const deciders = [];
    /** @type {Text | null} */
    let last = null;
    for (const { site, head } of heads) {
      const changes = [...text.interventions, off(site, head)];
      /** @type {Text} */
      const without = await finishedSlowly(text.changing(changes, { upTo, into: last }), pause);
      last = without;
      const [other] = largest(without.logitsAt(row), 1);
      if (other !== likeliest) deciders.push({ ...siteOf(site), head });
    }
    return { n: deciders.length, heads: deciders };
  });

// The text up to a place, as a generation reads it.
/** @type {(item: Item, interventions: Intervention[], place: number, row: number) => Text} */
export const textTo = ({ text, facts, model, start }, interventions, place, row) => {
  if (!start) return text.changed(interventions, { upTo: row + 1 });
  const window = new Text(model.network, { interventions });
  window.read(facts.ids.slice(0, place + 1).slice(-model.network.last.maxLen));
  return window;
};
// Labels of the likeliest tokens after a text, to the end of the sentence, at most N_WRITTEN.
/** @type {(item: Item, text: Text) => string[]} */
export const writtenAfter = ({ model: { tokenizer, network } }, text) => {
  /** @type {string[]} */
  const labels = [];
  const isFull = () => text.ids.length === network.last.maxLen;
  while (labels.length < N_WRITTEN) {
    const [first, second] = largest(text.logits ?? [], 2);
    const id = first === network.never ? second : first;
    if (id === tokenizer.end) break;
    labels.push(tokenizer.label(id));
    if (SENTENCE_ENDS.test(labels[labels.length - 1])) break;
    if (text.source.length && isFull()) break;
    const ids = isFull() ? [...text.ids.slice(1), id] : [id]; // the window slides
    if (isFull()) text.keep(0);
    text.read(ids);
  }
  return labels;
};
/** @type {Answerer<"continuation">} */
const continuation = (item, data) => {
  if (item.facts.stack === "encoder") return { labels: [] };
  const { place, row } = placeOf(item, data);
  const { interventions } = item.text;
  const changes = data.site ? switched(item, data.site, data.head ?? 0) : interventions;
  return { labels: writtenAfter(item, textTo(item, changes, place, row)) };
};

/** @type {Answerer<"telling">} */
const telling = (item) => {
  const { text, facts, model } = item;
  const [first, last] = [facts.n_prompt - 1, facts.ids.length - 1];
  if (facts.stack === "encoder" || first >= last || last >= model.network.last.maxLen)
    return { position: null };
  const written = [];
  for (let place = first; place < last; place += 1) {
    const target = text.ids[place + 1];
    const parts = text.contributions(place, target);
    if (!parts) return { position: null };
    if (model.tokenizer.special.has(target)) continue;
    const { adds, ...head } = /** @type {Site & { head: number, adds: number }} */ (
      bestHead(item, parts.heads, false)
    );
    const others = Object.entries(parts.heads).flatMap(([kind, values]) =>
      [...values].filter(
        (_, at) =>
          kind !== head.kind || at !== head.layer * model.network.config.n_heads + head.head,
      ),
    );
    const lead = adds - Math.max(...others, ...parts.forward);
    written.push({ position: place, head, lead, likely: softmax(text.logitsAt(place))[target] });
  }
  if (!written.length) return { position: null };
  const best = written.reduce((a, b) => (b.lead > a.lead ? b : a));
  const { position, head, lead } =
    best.lead > 0 ? best : written.reduce((a, b) => (b.likely < a.likely ? b : a));
  return { position, head, leads: lead > 0 };
};

export const answers = { journey, without_head: withoutHead, continuation, telling, deciding };
