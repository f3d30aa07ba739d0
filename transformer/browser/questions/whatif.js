// What a text becomes without a part, and what each part does to a token: as the Python functions of these names (views/whatif,
// views/journey/contribution.py).

import { say, sayList } from "../../web/messages.js";
import { frameOf } from "../frames.js";
import { SHORT_MS, finishedSlowly, pauses } from "../pauses.js";
import { largest, softmax } from "../sampling.js";
import { Text } from "../text.js";
import { boundOf, fixed, logsOf, rowsOf, signed, siteOf } from "./places.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 * @typedef {import("../types.d.ts").Intervention} Intervention
 */

const BROKEN_TOKENS = 24;

/** @type {Answerer<"broken_text">} */
const brokenText = async (item, { what = null, site = null, head = 0, position = null }) => {
  const { model, facts, text } = item;
  const { tokenizer, network } = model;
  /** @type {Intervention[]} */
  const interventions = what === null ? [] : [{ type: "break", what }];
  if (site !== null) interventions.push({ type: "ablate", ...siteOf(site), heads: [head] });
  if (facts.stack === "encoder") {
    const place = position ?? facts.last_read;
    const read = new Text(network, { interventions });
    read.read(
      text.ids.map((id, at) => (at === place && tokenizer.mask !== null ? tokenizer.mask : id)),
    );
    const probabilities = softmax(read.logitsAt(place));
    const [id] = largest(probabilities, 1);
    return { labels: [tokenizer.label(id)], probability: probabilities[id] };
  }
  const request = {
    text: facts.text,
    max_new_tokens: BROKEN_TOKENS,
    temperature: 0,
    interventions,
  };
  const { ids } = await model.generate(request);
  return { labels: ids.slice(facts.n_prompt).map((id) => tokenizer.label(id)) };
};

/** @type {Answerer<"intact_text">} */
const intactText = async (item, { forced = true }) => {
  const { model, facts } = item;
  const { text, max_new_tokens = 0, forced_tokens: tokens = [], ...settings } = facts.request;
  const { temperature, top_k: topK, top_p: topP, seed, beams, length_penalty } = settings;
  const [forcedTokens, sampled] = [forced ? tokens : [], facts.seed !== null];
  const request = {
    ...{ text, max_new_tokens, forced_tokens: forcedTokens, temperature: 0 },
    ...(sampled && { temperature, top_k: topK || null, top_p: topP === 1 ? null : topP, seed }),
    ...(settings.method === "beam" && !forcedTokens.length && { beams, length_penalty }),
  };
  const { ids } = await model.generate(request);
  const differs = ids.findIndex((id, at) => id !== facts.ids[at]);
  const same =
    differs < 0 ? Math.min(ids.length, facts.ids.length) : Math.min(differs, facts.ids.length);
  const equal = ids.length === facts.ids.length && differs < 0;
  return {
    labels: ids.map((id) => model.tokenizer.label(id)),
    n_prompt: facts.n_prompt,
    same,
    equal,
  };
};

// ---- what each head, and each part, does to a token ----

// The intact network's reading of the text before a token, and that token; after the end the likeliest.
/** @type {(item: Item, position: number) => { text: Text, target: number, logs: Float32Array }} */
export const before = (item, position) => {
  const row = position - 1 - item.start;
  const text = item.text.interventions.length
    ? item.text.changed([], { upTo: row + 1 })
    : item.text;
  const logs = logsOf(text.logitsAt(row));
  return { text, target: item.facts.ids[position] ?? largest(logs, 1)[0], logs };
};
/** @type {Answerer<"importance">} */
const importance = async (item, { position = 1, stack, kind, by = "zero" }) => {
  const pause = pauses(SHORT_MS);
  const { text, target, logs } = before(item, position);
  const row = position - 1 - item.start;
  const { n_layers: nLayers, n_heads: nHeads } = item.model.network.config;
  /** @type {Record<string, Float32Array>} */
  const change = {};
  for (const { stack: where, kind: which } of item.facts.kinds) {
    const changes = new Float32Array(nLayers * nHeads);
    for (const at of changes.keys()) {
      const site = { stack: where, kind: which, layer: Math.floor(at / nHeads) };
      /** @type {Intervention} */
      const off = { type: "ablate", ...site, heads: [at % nHeads], by };
      const changing = text.changing([off], { upTo: row + 1 });
      const changed = await finishedSlowly(changing, pause);
      changes[at] = logsOf(changed.logitsAt(row))[target] - logs[target];
    }
    change[`${where} ${which}`] = changes;
  }
  const of = Object.entries(change).reduce((a, b) => (boundOf(b[1], 0) > boundOf(a[1], 0) ? b : a));
  const at = of[1].reduce(
    (best, effect, place) => (Math.abs(effect) > Math.abs(of[1][best]) ? place : best),
    0,
  );
  const [bestStack, bestKind] = of[0].split(" ");
  const limit = Math.max(...Object.values(change).map((effects) => boundOf(effects, 1e-6)));
  const digits = Math.min(4, Math.max(2, 1 + Math.ceil(-Math.log10(limit))));
  const shown = rowsOf(change[`${stack} ${kind}`], nLayers);
  const figure = frameOf(item, "importance");
  const [cells] = figure.data;
  Object.assign(cells, {
    z: Array.from({ length: nHeads }, (_, head) => shown.map((effects) => effects[head])),
    zmin: -limit,
    zmax: limit,
  });
  if (cells.texttemplate) cells.texttemplate = `%{z:+.${digits}f}`;
  figure.layout.meta.limit = limit;
  return {
    ...{
      figure,
      change: shown.map((effects) => [...effects]),
      limit,
      label: item.model.tokenizer.label(target),
    },
    log_probability: logs[target],
    most: {
      ...{ stack: bestStack, kind: bestKind, layer: Math.floor(at / nHeads), head: at % nHeads },
      ...{ before: Math.exp(logs[target]), after: Math.exp(logs[target] + of[1][at]) },
    },
  };
};

/** @type {Answerer<"contribution">} */
const contribution = (item, { position, target }) => {
  const { model, facts, text } = item;
  const row = (position ?? facts.last_read) - item.start;
  const wanted = target ?? largest(text.logitsAt(row), 1)[0];
  const parts = text.contributions(row, wanted);
  const none = say("What each part adds cannot be told apart in this network.");
  if (!parts || !model.frames.contribution) return { figure: null, sentence: none };
  const figure = frameOf(item, "contribution");
  const { layout, data: [cells] } = figure; // prettier-ignore
  const { n_heads: nHeads, n_layers: nLayers } = model.network.config;
  const { row_labels: rows, column_labels: columns } = layout.meta;
  const named = ["token", "position", "embedding norm"].filter((one) => one in parts.others);
  const after = ["final norm", "output bias"].filter((one) => one in parts.others);
  const kinds = Object.values(parts.heads);
  const empty = () => new Float32Array(columns.length).fill(NaN);
  const alone = (/** @type {string} */ name) => {
    const line = empty();
    line[columns.length - 1] = parts.others[name];
    return line;
  };
  const layers = Array.from({ length: nLayers }, (_, layer) =>
    Float32Array.from([
      ...kinds.flatMap((heads) => [...heads.subarray(layer * nHeads, (layer + 1) * nHeads)]),
      ...[parts.forward[layer], parts.biases[layer]],
    ]),
  );
  const z = [...named.map(alone), ...layers, ...after.map(alone)];
  const limit =
    Math.max(
      ...z.map((line) =>
        boundOf(
          line.filter((x) => !Number.isNaN(x)),
          0,
        ),
      ),
    ) || 1e-6;
  Object.assign(cells, { z, zmin: -limit, zmax: limit });
  cells.customdata = rows.map((/** @type {string} */ one) =>
    columns.map((/** @type {string} */ other) => sayList([one, other])),
  );
  layout.meta.limit = limit;
  layout.xaxis.title.text = `${say("part")} (Σ = ${fixed(parts.logit, 2)})`;
  return { figure, logit: parts.logit, sentence: contributionSays(item, parts) };
};
/** @type {(item: Item, parts: import("../types.d.ts").Contributions) => string} */
const contributionSays = ({ model }, parts) => {
  const { n_heads: nHeads } = model.network.config;
  const several = Object.keys(parts.heads).length > 1;
  /** @type {Record<string, string>} */
  const words = {
    token: say("the token's own vector"),
    position: say("the vector of its position"),
    "embedding norm": say("the shift of the embeddings' norm"),
    "final norm": say("the shift of the final norm"),
    "output bias": say("the output bias"),
  };
  const heads = Object.entries(parts.heads).flatMap(([kind, values]) =>
    Array.from(values, (adds, at) => {
      const place = { layer: Math.floor(at / nHeads), head: at % nHeads };
      const attention =
        kind === "cross" ? say("decoder cross-attention") : say("decoder self-attention");
      const name = several
        ? say("layer {layer}, head {head} ({attention})", { ...place, attention })
        : say("layer {layer}, head {head}", place);
      return { name, adds };
    }),
  );
  const all = [
    ...heads,
    ...Array.from(parts.forward, (adds, layer) => ({
      name: say("the feed-forward of layer {layer}", { layer }),
      adds,
    })),
    ...Array.from(parts.biases, (adds, layer) => ({
      name: say("the biases of layer {layer}", { layer }),
      adds,
    })),
    ...Object.entries(parts.others).map(([name, adds]) => ({
      name: words[name],
      adds,
    })),
  ].sort((a, b) => b.adds - a.adds);
  const [most, second, least] = [all[0], all[1], all[all.length - 1]];
  const start = say(
    "Of the logit {logit}, {most} adds most: {adds}. Next comes {second} with {then}.",
    {
      ...{ logit: fixed(parts.logit, 2), most: most.name, adds: signed(most.adds, 2) },
      ...{ second: second.name, then: signed(second.adds, 2) },
    },
  );
  if (least.adds >= 0) return start;
  return `${start} ${say("The largest reduction comes from {least}: {takes}.", { least: least.name, takes: signed(least.adds, 2) })}`;
};

export const answers = {
  ...{ broken_text: brokenText, intact_text: intactText, importance, contribution },
  broken: (/** @type {Item} */ { model }) => model.frames.broken,
  architecture: (/** @type {Item} */ { model }) => structuredClone(model.frames.architecture),
};
