// Another text's activity in place of this one's: views/whatif/patching.py.

import { say } from "../../web/messages.js";
import { frameOf, hover, label, namedAxis } from "../frames.js";
import { largest } from "../sampling.js";
import { Text } from "../text.js";
import { boundOf, logsOf } from "./places.js";
import { before } from "./whatif.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 */

const [PATCH_PX, MIN_PATCH_PX] = [38, 480];

// As analysis/patching.py.
const PAIRS =
  "cat dog,boy girl,boys girls,man woman,men women,fox bear,bird frog,king queen,mom dad,black white,red blue,big little,happy sad,hot cold,day night,Tom Ben,Lily Lucy,he she,his her,ball toy,park forest,train bus,book letter,car house,new old"
    .split(",")
    .flatMap((pair) => [pair.split(" "), pair.split(" ").reverse()]);
/** @type {(item: Item) => number} */
const firstWritten = ({ facts }) => Math.min(facts.n_prompt, facts.ids.length - 1);
/** @type {Answerer<"other_text">} */
const otherText = (item, { position = null }) => {
  const { model, facts, text } = item;
  const here = facts.source_labels.length
    ? facts.text
    : model.tokenizer.decode(text.ids.slice(0, (position ?? firstWritten(item)) - item.start));
  const length = (/** @type {string} */ typed) => {
    const { source, ids } = model.prepare(typed);
    return (source.length ? source : ids).length;
  };
  const words = new Set(here.match(/\p{L}+/gu));
  const capital = (/** @type {string} */ word) =>
    word[0].toUpperCase() + word.slice(1).toLowerCase();
  const changed = PAIRS.flatMap(([word, other]) => [
    [word, other],
    [capital(word), capital(other)],
  ])
    .filter(([word]) => words.has(word))
    .map(([word, other]) =>
      here.replace(new RegExp(`(?<![\\p{L}\\p{N}_])${word}(?![\\p{L}\\p{N}_])`, "gu"), other),
    )
    .find((variant) => length(variant) === length(here));
  return { variant: changed ?? null, teaching: model.frames.teaching };
};
/** @type {(item: Item, other: Text) => number} */
const mostChanged = ({ text, facts }, other) => {
  const intact = text.changed([]);
  const drops = facts.ids
    .slice(1, text.ids.length + 1)
    .map(
      (/** @type {number} */ id, /** @type {number} */ at) =>
        logsOf(intact.logitsAt(at))[id] - logsOf(other.logitsAt(at))[id],
    );
  return 1 + drops.indexOf(Math.max(...drops));
};
/** @type {Answerer<"patching">} */
const patching = (
  item,
  {
    other,
    position = null,
    stack = "decoder",
    part = "resid_post",
    kind = "self",
    target = "other",
  },
) => {
  const { model, facts } = item;
  const { network, tokenizer } = model;
  if (item.start)
    throw new Error(
      say(
        "this text is longer than the {max_len} tokens that {model} reads at once, so its places move; patch a shorter one",
        {
          ...{ max_len: network.last.maxLen, model: model.name },
        },
      ),
    );
  const prepared = model.prepare(other);
  const translates = prepared.source.length > 0;
  const theirs = (/** @type {number[]} */ decoded) => {
    const text = new Text(network, { source: translates ? prepared.source : undefined });
    text.read(translates ? decoded : prepared.ids);
    return text;
  };
  const at =
    position ?? (translates ? mostChanged(item, theirs(item.text.ids)) : firstWritten(item));
  const { text: intact, target: likeliestHere, logs } = before(item, at);
  const ids = intact.ids.slice(0, at);
  const there = theirs(ids);
  const after = logsOf(there.logitsAt(there.ids.length - 1));
  const token = facts.ids[at] ?? likeliestHere;
  const wanted = target === "here" ? token : largest(after, 1)[0];
  const mine = intact.changed([], { upTo: at });
  const [here, others] = stack === "encoder" ? [intact.source, there.source] : [ids, there.ids];
  const n = Math.min(here.length, others.length);
  const change = Array.from({ length: network.config.n_layers }, (_, layer) =>
    Float32Array.from({ length: n }, (__, place) => {
      /** @type {import("../types.d.ts").Patch} */
      const patch = { type: "patch", stack, layer, positions: [place], part, kind };
      const values = [there.partAt(patch, place)];
      const changed = mine.changed([{ ...patch, values }], { upTo: at });
      return logsOf(changed.logitsAt(at - 1))[wanted] - logs[wanted];
    }),
  );
  const names = (/** @type {number[]} */ all) => all.map((id) => tokenizer.label(id));
  const [labels, otherLabels] = [names(here), names(others)];
  const limit = Math.max(...change.map((line) => boundOf(line, 0))) || 1e-6;
  const paired = Array.from({ length: n }, (_, place) => {
    const [a, b] = [labels[place], otherLabels[place]];
    return a === b ? a : `${a} ← ${b}`;
  });
  const figure = frameOf(item, "patching");
  const { layout, data: [cells, above] } = figure; // prettier-ignore
  Object.assign(cells, {
    z: change,
    zmin: -limit,
    zmax: limit,
    hovertext: change.map(() => paired.map(hover)),
  });
  Object.assign(above, { x: [], y: [] });
  const axis = (
    /** @type {import("../frames.js").Axis} */ where,
    /** @type {string[]} */ own,
    /** @type {string[]} */ their,
  ) => {
    const texts = own
      .slice(0, n)
      .map((name, place) => (name === their[place] ? label(name) : `<b>${label(name)}</b>`));
    namedAxis(where, texts);
  };
  axis(layout.xaxis, labels, otherLabels);
  axis(layout.xaxis2, otherLabels, labels);
  layout.width = Math.max(MIN_PATCH_PX, layout.margin.l + PATCH_PX * n + layout.margin.r);
  Object.assign(layout.meta, {
    column_labels: paired,
    limit,
    before: logs[wanted],
    other: after[wanted],
  });
  return {
    ...{ figure, position: at, token: tokenizer.label(token), target: tokenizer.label(wanted) },
    ...{
      before: logs[wanted],
      other: after[wanted],
      limit,
      lengths: [labels.length, otherLabels.length],
    },
    altered: item.text.interventions.length > 0,
  };
};

export const answers = { other_text: otherText, patching };
