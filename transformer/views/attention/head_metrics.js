// A table of all heads: one number a column, sorted by any of them; a row chooses its head.

import { looked } from "./large.js";
import { askOnce } from "../../web/ask.js";
import { capital, numeral, say, sayN, sayWith } from "../../web/messages.js";
import { useAnswer, usePart, mounted } from "../../web/part.js";
import { html, useState } from "../../web/preact.js";
import { isAblated } from "../../web/runs.js";
import { kindShown, setHead, page } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { knownHeads, useMetrics } from "./numbers.js";
import { fields } from "../../web/fields.js";
import { attentionOf, headName } from "../../web/sites.js";
import { Figure } from "../../web/figure.js";

const FIRST_ROWS = 24;

/**
 * @typedef {import("./types").Metric} Metric
 * @typedef {import("./types").Metrics} Metrics
 * @typedef {import("./types").MeasuredHead} MeasuredHead
 * @typedef {import("./types").KindAsked} KindAsked
 */

/** @type {(metric: { title: string, unit: string }) => string} */
const titleOf = ({ title, unit }) => (unit ? `${title} (${unit})` : title);
/** @type {(value: number | null, metric: Metric) => string} */
const number = (value, { unit }) => (value === null ? "–" : numeral(value.toFixed(unit ? 2 : 3)));

// ---- the table ----

// by: what the table is sorted by.
/** @param {{ metrics: Metric[], by: string }} props */
const Titles = ({ metrics, by }) => {
  const sort = (/** @type {string} */ name) => {
    const first = ["head", "label"].includes(name) ? "up" : "down";
    const other = fields.order === "up" ? "down" : "up";
    Object.assign(fields, { order: by === name ? other : first, sort: name });
  };
  const columns = [
    ["head", capital(say("head"))],
    ...metrics.map((metric) => [metric.name, titleOf(metric)]),
    ["label", say("Label")],
  ];
  const down = fields.order === "down";
  const column = (/** @type {string[]} */ [name, title]) => html`<th scope="col"
    aria-sort=${by === name ? (down ? "descending" : "ascending") : "none"}>
    <button type="button" data-by=${name} onClick=${() => sort(name)}>${title}${
      by === name && html`<span class="arrow" aria-hidden="true">${down ? " ▼" : " ▲"}</span>`
    }</button>
  </th>`;
  return html`<thead><tr>${columns.map(column)}</tr></thead>`;
};

// The cells of a row; values(metric): its number in the metric's column.
/** @param {Metric[]} metrics @param {string} by @param {(metric: Metric) => number | null} values */
const cells = (metrics, by, values) =>
  metrics.map(
    (metric) =>
      html`<td class=${by === metric.name ? "sorted" : ""}>${number(values(metric), metric)}</td>`,
  );
// even: a uniform head's numbers in each layer; where the layers' masks differ, so do they, and those of the
// chosen head's layer are shown.
/** @param {{ metrics: Metric[], by: string, even: Metrics["even"] }} props */
const Baselines = ({ metrics, by, even }) => {
  const layer = even[page.head?.layer] ? page.head.layer : 0;
  const differ = new Set(even.map((one) => JSON.stringify(one))).size > 1;
  const uniform = differ ? say("a uniform head, layer {layer}", { layer }) : say("a uniform head");
  /** @param {string} title @param {(metric: Metric) => number | null} values */
  const line = (title, values) => html`<tr><th scope="row">${title}</th>
    ${cells(metrics, by, values)}<td class="label"></td></tr>`;
  return html`<tbody class="baselines">
    ${line(uniform, ({ name }) => even[layer][name])}
    ${line(say("keys shuffled, mean"), (metric) => metric.shuffled)}
    ${line(say("keys shuffled, most"), (metric) => metric.shuffled_most)}
  </tbody>`;
};

/** @param {{ measured: MeasuredHead, metrics: Metric[], by: string, of: KindAsked }} props */
const HeadRow = ({ measured, metrics, by, of: { stack, kind } }) => {
  const { layer, head, label } = measured;
  const chosen = page.head?.layer === layer && page.head.head === head;
  const choose = () => {
    setHead({ stack, kind, layer, head });
    looked.value += 1; // the picture is above the table, on a small screen far above; the focus stays
  };
  const key = html`<${Token} label=${measured.key_label} /><small>${` ${say("at {place}", { place: measured.key })}`}</small>`;
  const does =
    label === say("reads one token")
      ? sayWith("{title}: {part}", { title: label, part: key })
      : label;
  const words = isAblated({ stack, kind, layer, head }) ? say("switched off") : does;
  return html`<tr class=${chosen ? "chosen" : ""} data-layer=${layer} data-head=${head}
    onClick=${choose}>
    <th scope="row"><button type="button" class="pick" aria-pressed=${String(chosen)}
      aria-label=${say("Show {head}", { head: headName(measured) })}>${headName(measured)}</button></th>
    ${cells(metrics, by, ({ name }) => measured.values[name])}
    <td class="label">${words}</td>
  </tr>`;
};

/** @type {(a: unknown, b: unknown) => number} */
const compare = (a, b) =>
  typeof a === "string" ? a.localeCompare(String(b)) : Number(a) - Number(b);
// The heads by "head", "label" or a metric. Missing numbers are last in either order; equal ones keep the
// network's order.
/** @type {(heads: MeasuredHead[], by: string) => MeasuredHead[]} */
const sorted = (heads, by) => {
  const down = fields.order === "down";
  if (by === "head") return down ? [...heads].reverse() : heads;
  const value = (/** @type {MeasuredHead} */ { label, values }) =>
    by === "label" ? label : values[by];
  const sign = down ? -1 : 1;
  const has = heads.filter((one) => value(one) !== null);
  const lacks = heads.filter((one) => value(one) === null);
  return [...has.sort((a, b) => sign * compare(value(a), value(b))), ...lacks];
};

/** @param {{ answer: Metrics, of: KindAsked, by: string }} props */
const Table = ({ answer: { metrics, heads, even }, of, by }) => {
  const [all, showAll] = useState(false);
  const shown = sorted(heads, by).slice(0, all ? heads.length : FIRST_ROWS);
  return html`<div class="wide ranking-wide" tabindex="0" role="region"
      aria-label=${say("What each head does, in numbers")}>
      <table class="ranking-table">
        <${Titles} metrics=${metrics} by=${by} />
        <${Baselines} metrics=${metrics} by=${by} even=${even} />
        <tbody class="rows">${shown.map(
          (measured) =>
            html`<${HeadRow} key=${`${measured.layer}.${measured.head}`} measured=${measured}
              metrics=${metrics} by=${by} of=${of} />`,
        )}</tbody>
      </table>
    </div>
    <button type="button" class="show-all" hidden=${heads.length <= FIRST_ROWS}
      onClick=${() => showAll(!all)}>${
        all ? say("Less") : say("Show all {count} heads", { count: heads.length })
      }</button>`;
};

// ---- words ----

/** @type {(answer: Metrics, kind: string) => string} */
const introduction = ({ heads, n_rows: rows, n_left_out: out, n_repeats: repeats }, kind) =>
  [
    say("Heads: {count}; with a label: {labelled}; rows of this text: {rows}.", {
      count: heads.length,
      rows,
      labelled: heads.filter(({ label }) => label).length,
    }),
    out > 0 &&
      sayN(
        "{n} row is left out, because it may read one key only.",
        "{n} rows are left out, because they may read one key only.",
        out,
      ),
    kind !== "cross" &&
      (repeats
        ? sayN(
            "Induction and Duplicate are measured in the {n} row whose token occurred before.",
            "Induction and Duplicate are means over the {n} rows whose token occurred before.",
            repeats,
          )
        : say(
            "In this text no token recurs after another one, so Induction and Duplicate have no number.",
          )),
    say("Click a row of the table to see its head above."),
  ]
    .filter(Boolean)
    .join(" ");

// The definitions of the metrics, and their baselines.
/** @param {{ answer: Metrics }} props */
const Definitions = ({ answer: { metrics, rule, n_shuffles: times } }) => {
  const terms = [
    ...metrics.map((metric) => [titleOf(metric), `${metric.definition}.`]),
    [
      say("a uniform head"),
      say(
        "the same numbers of a head that reads all keys that its mask allows with the same weight.",
      ),
    ],
    [
      say("keys shuffled"),
      say(
        "of {times} copies of each head with its key vectors shuffled, " +
          "before mask and softmax: their mean, and the most that any copy of any head " +
          "reaches; only for numbers about a place.",
        { times },
      ),
    ],
  ];
  return html`<div class="definitions">
    <h4>${say("What the numbers mean: each is a mean over the rows (queries) that may read more than one key")}</h4>
    <dl>${terms.map(([term, says]) => [html`<dt>${term}</dt>`, html`<dd>${says}</dd>`])}</dl>
    <p class="rule">${rule}</p>
  </div>`;
};

/** @type {(data: KindAsked & { metric: string }) => Promise<import("./types").MetricMap>} */
const metricMap = (data) => askOnce("metric_map", data);
/** @param {{ part: import("../../web/part.js").Part, of: KindAsked, answer: Metrics, by: string }} props */
const MetricMap = ({ part, of, answer: { metrics }, by }) => {
  const metric = (metrics.find(({ name }) => name === by) ?? metrics[0]).name;
  const { answer, asked } = useAnswer(part, metricMap, { ...of, metric });
  const shown = metrics.find(({ name }) => name === asked?.metric);
  const says = shown ? titleOf(shown) : say("One metric of every head");
  return html`<div class="ranking-map">
    <h4 class="map-title">${says}</h4>
    <${Figure} part=${part} name="metric_map" class="metric-map" figure=${answer?.figure}
      label=${says} box=${{ "data-metric": asked?.metric }} />
  </div>`;
};

const Ranking = () => {
  const part = usePart();
  const { answer: metrics, asked: of } = useMetrics(part);
  const names = ["head", "label", ...(metrics?.metrics ?? []).map(({ name }) => name)];
  const by = names.includes(fields.sort) ? fields.sort : "head";
  return html`<div class="ranking" ...${part.attributes(of)}>
    ${
      metrics &&
      of &&
      html`<p class="ranking-intro">${introduction(metrics, of.kind)}</p>
        <${Table} answer=${metrics} of=${of} by=${by} />
        <div class="ranking-words">
          <${Definitions} answer=${metrics} />
          <${MetricMap} part=${part} of=${of} answer=${metrics} by=${by} />
        </div>`
    }
  </div>`;
};
// Known from the sentence next to the grid.
const finding = () => {
  const heads = knownHeads();
  return heads
    ? sayN(
        "{attention}: {n} of {count} stands out",
        "{attention}: {n} of {count} stand out",
        heads.filter(({ label }) => label).length,
        { attention: attentionOf(kindShown() ?? page.run.kinds[0]), count: heads.length },
      )
    : null;
};
export const mount = mounted(Ranking, finding);
