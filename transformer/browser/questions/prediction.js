// The questions about predictions, each answered as the Python function of its name (views/prediction, views/runs).

import { numeral, say, sayList, sayN } from "../../web/messages.js";
import { fitted, frameOf, hover, label, namedAxis } from "../frames.js";
import { largest, softmax } from "../sampling.js";
import { Text } from "../text.js";
import { fixed, logsOf, short } from "./places.js";

/** @import { Answerer } from "./types" */
/**
 * @typedef {import("../item.js").Item} Item
 */

const [COLUMN_PX, CELL_PX, MIN_LENS_PX] = [22, 60, 560];
const [LENS_COLUMNS, LENS_BEST, LENS_CHARACTERS, STRONG] = [48, 5, 10, 0.625];
const [N_CANDIDATES, N_CHOICES] = [20, 10];

// ---- surprisal ----

/** @type {Answerer<"surprisal">} */
const surprisal = (item) => {
  const { text, facts } = item;
  if (facts.stack === "encoder")
    return {
      none: say(
        "an encoder reads the whole text at once and predicts no next token, so no token can surprise it",
      ),
    };
  if (text.ids.length < 2)
    return { none: say("the text is too short: nothing comes before its only token") };
  const bits = text.ids.map((id, at) =>
    at ? -logsOf(text.logitsAt(at - 1))[id] / Math.LN2 : null,
  );
  const known = bits.slice(1).map(Number);
  const mean = known.reduce((sum, x) => sum + x, 0) / known.length;
  const labels = item.labelsOf(facts.stack);
  const n = labels.length;
  const nGiven = Math.max(0, Math.min(facts.n_prompt - item.start, n));
  const figure = frameOf(item, "surprisal");
  const { layout, data: [bars] } = figure; // prettier-ignore
  const { given, generated } = layout.meta.colours;
  const isGiven = (/** @type {number} */ at) => at < nGiven;
  Object.assign(bars, {
    ...{ x: labels.map((_, at) => at), y: Float64Array.from(bits, (bit) => bit ?? NaN) },
    customdata: labels.map((token, at) => {
      const bit = bits[at];
      if (bit === null) return `${hover(token)}<br>${say("nothing predicted it")}`;
      const head = sayList([hover(token), isGiven(at) ? say("given") : say("generated")]);
      return `${head}<br>${fixed(bit, 3)} ${say("bits")}<br>p = ${short(2 ** -bit, 4)}`;
    }),
  });
  bars.marker.color = labels.map((_, at) => (isGiven(at) ? given : generated));
  bars.marker.pattern.shape = labels.map((_, at) => (isGiven(at) ? "/" : ""));
  layout.width = 80 + COLUMN_PX * n;
  namedAxis(
    layout.xaxis,
    labels.map((token) => label(token, LENS_CHARACTERS)),
  );
  Object.assign(layout.shapes[0], { y0: mean, y1: mean });
  const summary = { mean_bits: mean, perplexity: 2 ** mean, n_tokens: known.length };
  Object.assign(layout.meta, { labels, given: nGiven, first: item.start, summary });
  layout.meta.probabilities = bits.map((bit) => (bit === null ? null : 2 ** -bit));
  const says = sayN(
    "{mean_bits} bits; perplexity {perplexity}, of {n} token",
    "mean {mean_bits} bits per token; perplexity {perplexity}, over {n} tokens",
    known.length,
    { mean_bits: fixed(mean, 2), perplexity: fixed(2 ** mean, 2) },
  );
  return { figure, says };
};

// ---- the logit lens ----

/** @type {Answerer<"lens">} */
const lens = (item, { first = 0 }) => {
  const { text, facts, model } = item;
  const { tokenizer, network } = model;
  const labels = item.labelsOf(facts.stack);
  const [total, isEncoder] = [labels.length, facts.stack === "encoder"];
  const read = labels.slice(first, first + LENS_COLUMNS);
  const follows = [...labels.slice(1), null].slice(first, first + LENS_COLUMNS);
  const nRows = network.config.n_layers + 1;
  const cells = Array.from({ length: nRows }, (_, row) =>
    read.map((__, column) => {
      const probabilities = softmax(text.lens(row, first + column));
      return largest(probabilities, LENS_BEST).map((id) => ({ id, p: probabilities[id] }));
    }),
  );
  const last = cells[nRows - 1];
  const same = cells.map((row) => row.map(([{ id }], column) => id === last[column][0].id));
  const settled = read.map((_, column) => same.findLastIndex((row) => !row[column]) + 1);
  const figure = frameOf(item, "lens");
  const { layout, data: [heat, texts, above] } = figure; // prettier-ignore
  const names = layout.meta.row_labels;
  heat.z = cells.map((row) => Float32Array.from(row, ([{ p }]) => p));
  heat.hovertext = cells.map((row, at) =>
    row.map((best, column) => {
      const lines = best.map(({ id, p }) => `${hover(tokenizer.label(id))} ${fixed(p, 4)}`);
      const head = say("{layer}, having read {token}:", {
        layer: names[at],
        token: hover(read[column]),
      });
      const next = follows[column];
      if (!isEncoder && next !== null)
        lines.push(say("came next: {follows}", { follows: hover(next) }));
      lines.push(
        say("the model's own answer stands from “{layer}” on", { layer: names[settled[column]] }),
      );
      return [head, ...lines].join("<br>");
    }),
  );
  const best = cells.map((row) => row.map(([{ id }]) => tokenizer.label(id)));
  const inBlack = cells.map((row) => row.map(([{ p }]) => p <= STRONG));
  Object.assign(texts, {
    x: best.flatMap((row) => row.map((_, column) => column)),
    y: best.flatMap((row, at) => row.map(() => at + 0.06)),
    text: best.flatMap((row) => row.map((token) => fitted(token, CELL_PX - 8)[0])),
  });
  texts.textfont.color = inBlack.flat().map((isBlack) => (isBlack ? "#000000" : "#ffffff"));
  Object.assign(above, { x: [], y: [] });
  const pathOf = (/** @type {boolean} */ black) =>
    cells
      .flatMap((row, at) =>
        row.map((_, column) =>
          same[at][column] && inBlack[at][column] === black
            ? `M${(column - 0.36).toFixed(2)},${(at - 0.36).toFixed(2)}L${(column + 0.36).toFixed(2)},${(at - 0.36).toFixed(2)}`
            : "",
        ),
      )
      .join("");
  layout.shapes = [true, false].flatMap((black) => {
    const [path, color] = [pathOf(black), black ? "#000000" : "#ffffff"];
    return path ? [{ type: "path", path, line: { color, width: 2.5 } }] : [];
  });
  for (const [axis, texts_] of /** @type {[import("../frames.js").Axis, (string | null)[]][]} */ ([
    [layout.xaxis, read],
    [layout.xaxis2, follows],
  ]))
    namedAxis(
      axis,
      texts_.map((one) => (one === null ? "" : label(one, LENS_CHARACTERS))),
    );
  layout.width = Math.max(MIN_LENS_PX, layout.margin.l + CELL_PX * read.length + layout.margin.r);
  Object.assign(layout.meta, {
    ...{ column_labels: read, next: follows, best, settled, first, total, n_earlier: item.start },
  });
  return {
    figure,
    tied: network.config.tie_embeddings,
    predicts: !isEncoder,
    columns: LENS_COLUMNS,
  };
};

// ---- a hidden token ----

/** @type {(value: number) => string} */
const percent = (value) =>
  value > 0 && value < 0.001 ? `&lt;${numeral("0.1")}%` : `${fixed(100 * value, 1)}%`;
/** @type {Answerer<"masked">} */
const masked = (item, { position }) => {
  const { facts, model, text } = item;
  const { tokenizer, network } = model;
  if (facts.stack !== "encoder" || tokenizer.mask === null) return { figure: null };
  const place = position ?? facts.last_read;
  const whole = text.ids.map((id, at) =>
    at === place ? /** @type {number} */ (tokenizer.mask) : id,
  );
  const guess = (/** @type {number[]} */ ids) => {
    const read = new Text(network, { interventions: text.interventions });
    read.read(ids);
    return softmax(read.logitsAt(place));
  };
  const [both, left] = [guess(whole), guess(whole.slice(0, place + 1))];
  const own = text.ids[place];
  const ids = largest(both, 5);
  ids.push(...largest(left, 2).filter((id) => !ids.includes(id)));
  if (own !== tokenizer.mask && !ids.includes(own)) ids.push(own);
  const labels = ids.map((id) => tokenizer.label(id));
  const [probabilities, fromLeft] = [both, left].map((all) => ids.map((id) => all[id]));
  const figure = frameOf(item, "masked");
  const { layout } = figure;
  [probabilities, fromLeft].forEach((values, at) =>
    Object.assign(figure.data[at], {
      ...{ x: values, y: values.map((_, row) => row), text: values.map(percent) },
      ...{ customdata: values.map((value) => fixed(value, 4)), hovertext: labels.map(hover) },
    }),
  );
  const longest = Math.max(0.02, ...probabilities, ...fromLeft);
  Object.assign(layout.xaxis, {
    range: [0, 1.4 * longest],
    tickformat: longest > 0.1 ? ".0%" : ".1%",
  });
  namedAxis(
    layout.yaxis,
    ids.map((id, at) => (id === own ? `<b>▶ ${label(labels[at])}</b>` : label(labels[at]))),
  );
  layout.yaxis.range = [labels.length - 0.4, -0.6];
  layout.height = 154 + 44 * Math.max(labels.length, 3);
  Object.assign(layout.meta, { labels, position: place, ids });
  return {
    figure,
    position: place,
    label: facts.labels[place],
    labels,
    probabilities,
    from_left: fromLeft,
  };
};

// ---- a step's choices ----

// The logits of the token at a place, of a text that was too long to be read at once.
/** @type {(item: Item, place: number) => Float32Array} */
const logitsOfWindow = ({ text, facts, model }, place) => {
  const window = new Text(model.network, { interventions: text.interventions });
  window.read(facts.ids.slice(0, place).slice(-model.network.last.maxLen));
  return window.logitsAt(window.ids.length - 1);
};
// The logits of the token at a place of a run.
/** @type {(item: Item, place: number) => Float32Array} */
export const logitsBefore = (item, place) =>
  item.start ? logitsOfWindow(item, place) : item.text.logitsAt(place - 1);
/** @type {Answerer<"choices">} */
const choices = (item, { step }) => {
  const { facts, model } = item;
  const place = facts.n_prompt + step;
  const taken = facts.ids[place];
  const logits = logitsBefore(item, place);
  const probabilities = softmax(logits);
  const ids = largest(probabilities, N_CANDIDATES).slice(0, N_CHOICES);
  if (!ids.includes(taken)) ids.push(taken);
  return {
    ...{
      ids,
      labels: ids.map((id) => model.tokenizer.label(id)),
      probabilities: ids.map((id) => probabilities[id]),
    },
    ...{ taken, searched: facts.hypotheses.length > 0, sampled: facts.seed !== null },
  };
};

export const answers = {
  surprisal,
  lens,
  masked,
  choices,
  labels: () => ({ figure: null }),
};
