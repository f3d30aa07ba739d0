// The questions about masks, each answered as the Python function of its name (views/masks).

import { packBits } from "../flow.js";
import { numeral, say, sayList, sayN } from "../../web/messages.js";
import { frameOf, label, matrixOf, stretched } from "../frames.js";
import { softmax } from "../sampling.js";
import { labelsAt, readings, rowsOf, scoresOf, siteOf } from "./places.js";

/** @import { Answerer, AnswererOfBatch } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 */

const TEXT_LIMIT = 64; // tokens on a side
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 10 ** 6]; // of labelled positions

/** @type {(item: Item, site: string) => { padding: boolean, byPosition: boolean }} */
const actingOf = ({ text, model }, site) => {
  const { stack, layer, kind } = siteOf(site);
  const { window } = model.network.stacks[stack]?.layers[layer] ?? {
    window: Infinity,
  };
  const reads = text.interventions.some(
    (change) => change.type === "mask" && change.without?.includes("padding"),
  );
  return {
    padding: !reads,
    byPosition: kind === "self" && (stack === "decoder" || window !== Infinity),
  };
};
// Each mask of an attention, (Tq, Tk) of 0 and 1.
/** @type {(item: Item, site: string) => Record<string, Uint8Array>} */
const masksOf = (item, site) => {
  const { stack, kind } = siteOf(site);
  const { causal, window } = item.text.attention(site);
  const { queries, keys } = labelsAt(item, site);
  const { padding, byPosition } = actingOf(item, site);
  const nText = item.facts.n_text[kind === "cross" ? "encoder" : stack];
  const cells = (/** @type {(query: number, key: number) => boolean} */ may) =>
    Uint8Array.from({ length: queries.length * keys.length }, (_, at) =>
      Number(may(Math.floor(at / keys.length), at % keys.length)),
    );
  const inReach = (/** @type {number} */ query, /** @type {number} */ key) =>
    (!causal || key <= query) && Math.abs(query - key) < window;
  return {
    padding: cells((_, key) => !padding || key < nText),
    causal: cells((query, key) => !byPosition || inReach(query, key)),
    combined: item.text.allowed(site),
  };
};
/** @type {Answerer<"mask">} */
const mask = (item, { which = "combined", stack = item.facts.stack, kind = "self", layer = 0 }) => {
  const site = `${stack}.${layer}.${kind}`;
  const { queries, keys } = labelsAt(item, site);
  const allowed = masksOf(item, site)[which];
  const figure = matrixOf(frameOf(item, "mask"), queries, keys);
  Object.assign(figure.data[0], {
    z: rowsOf(
      Float32Array.from(allowed, (may) => (may ? 1 : NaN)),
      queries.length,
    ),
    customdata: rowsOf(allowed, queries.length),
    ...{ xgap: Number(keys.length <= TEXT_LIMIT), ygap: Number(queries.length <= TEXT_LIMIT) },
    ...readings(queries, keys),
  });
  return { figure };
};

/** @type {AnswererOfBatch<"padded">} */
const padded = (item, { stack = item.facts.stack }, rows) => {
  const labels = rows.map((row) => row.labelsOf(stack));
  const counts = rows.map((row) => row.facts.n_text[stack]);
  const length = labels[0].length;
  const isText = labels.map((_, row) =>
    Float32Array.from({ length }, (__, at) => (at < counts[row] ? 1 : NaN)),
  );
  const figure = frameOf(item, "padded");
  const { layout, data: [trace] } = figure; // prettier-ignore
  layout.shapes[0].path = stretched(figure, labels.length, length);
  Object.assign(layout.xaxis, {
    range: [-0.5, length - 0.5],
    dtick: WHOLE_STEPS.find((step) => length <= 20 * step),
  });
  const places = labels.map((_, row) => row);
  Object.assign(layout.yaxis, {
    range: [rows.length - 0.5, -0.5],
    tickvals: places,
    ticktext: places.map(String),
  });
  layout.yaxis.title.text = rows.length > 1 ? say("sentence") : "";
  const isSmall = length <= TEXT_LIMIT;
  const where = sayList([`${say("sentence")} %{y:d}`, `${say("position")} %{x:d}`]);
  const named = isSmall ? say("{title}: {part}", { title: where, part: "%{text}" }) : where;
  Object.assign(trace, {
    z: isText,
    customdata: isText.map((row) => Uint8Array.from(row, (mark) => Number(mark === 1))),
    text: isSmall
      ? labels.map((row, at) =>
          row.map((token, place) => (place < counts[at] ? label(token, 8) : "")),
        )
      : undefined,
    texttemplate: isSmall ? "%{text}" : undefined,
    hovertemplate: `${named}<br>${say("token")} %{customdata}<extra></extra>`,
  });
  return { figure };
};

/** @type {(scores: Float32Array, allowed: Uint8Array, nKeys: number) => Float32Array} */
const softmaxOver = (scores, allowed, nKeys) => {
  const weights = new Float32Array(scores.length);
  for (let from = 0; from < scores.length; from += nKeys) {
    const row = scores.slice(from, from + nKeys);
    const may = allowed.subarray(from, from + nKeys);
    const nothing = !may.includes(1);
    row.forEach((_, at) => (nothing ? (row[at] = 0) : may[at] || (row[at] = -Infinity)));
    weights.set(softmax(row), from);
  }
  return weights;
};
/** @type {(site: string) => boolean} */
const isCausal = (site) => {
  const { stack, kind } = siteOf(site);
  return stack === "decoder" && kind === "self";
};
// Why a decoder's text never reads padding on the right.
const hiddenAlready = () =>
  say(
    "Padding stands on the right, where the causal mask hides it already; in an encoder, such as the translator's, this mask alone keeps the text from reading it.",
  );
/** @type {(item: Item, site: string, share: number, which: string, freed: boolean) => string} */
const removalSays = (item, site, share, which, freed) => {
  const n = item.facts.n_text[siteOf(site).stack];
  if (!freed) return say("Here the mask hides nothing.");
  const start = sayN(
    "Without the mask, {share} of the weight of the {n} query that is text would go to what it hides.",
    "Without the mask, {share} of the weight would go to what it hides, on average over the {n} queries that are text.",
    n,
    { share: `${numeral((100 * share).toFixed(1))} %` },
  );
  return which === "padding" && !share && isCausal(site) ? hiddenAlready() : start;
};
/** @type {Answerer<"removal">} */
const removal = (item, { site, head, which = null }) => {
  const { queries, keys } = labelsAt(item, site);
  const { stack } = siteOf(site);
  const { padding, byPosition } = actingOf(item, site);
  const acting = [...(padding ? ["padding"] : []), ...(byPosition ? ["causal"] : [])];
  const nText = item.facts.n_text[stack];
  const mean = (/** @type {(query: number) => number} */ of) =>
    Array.from({ length: nText }, (_, query) => of(query)).reduce((sum, x) => sum + x, 0) / nText;
  const real = item.text.weights(site, head);
  const masks = masksOf(item, site);
  const nKeys = keys.length;
  if ((which === "padding" && !padding) || !acting.length) {
    const first = item.facts.n_text[siteOf(site).kind === "cross" ? "encoder" : stack];
    const share = mean((query) =>
      real.subarray(query * nKeys + first, (query + 1) * nKeys).reduce((a, b) => a + b, 0),
    );
    const isHidden = !share && isCausal(site) && nText < nKeys;
    const sentence = isHidden
      ? hiddenAlready()
      : say("The padding mask is off: {share} of the weight goes to padding.", {
          share: `${numeral((100 * share).toFixed(1))} %`,
        });
    return { acting, which: null, share, sentence };
  }
  const chosen = which && acting.includes(which) ? which : acting[acting.length - 1];
  const kept = new Uint8Array(real.length).fill(1);
  for (const name of acting)
    if (name !== chosen) kept.forEach((may, at) => (kept[at] = may & masks[name][at]));
  const allowed = masks.combined;
  const weights = softmaxOver(scoresOf(item, site, head), kept, nKeys);
  const freed = kept.map((may, at) => may & (1 - allowed[at]));
  const share = mean((query) => {
    let sum = 0;
    for (let key = 0; key < nKeys; key += 1)
      if (freed[query * nKeys + key]) sum += weights[query * nKeys + key];
    return sum;
  });
  const figure = matrixOf(frameOf(item, "removed"), queries, keys);
  Object.assign(figure.layout.meta, { site, head, which: chosen, share });
  Object.assign(figure.data[0], {
    z: rowsOf(
      weights.map((weight, at) => (allowed[at] || freed[at] ? weight : NaN)),
      queries.length,
    ),
    customdata: rowsOf(
      Array.from(real, (weight, at) => [weight, weights[at]]),
      queries.length,
    ),
    ...readings(queries, keys),
  });
  return {
    figure,
    acting,
    which: chosen,
    share,
    sentence: removalSays(item, site, share, chosen, freed.includes(1)),
  };
};

/** @type {Answerer<"used_mask">} */
const usedMask = (item, { site }) => {
  const { queries, keys } = labelsAt(item, site);
  const allowed = item.text.allowed(site);
  const { layer, kind } = siteOf(site);
  const window = kind === "self" ? item.facts.windows[layer] : null;
  return {
    shape: [queries.length, keys.length],
    allowed: packBits(Float32Array.from(allowed)),
    query_labels: queries,
    key_labels: keys,
    window,
  };
};

export const answers = { mask, padded, removal, used_mask: usedMask };
