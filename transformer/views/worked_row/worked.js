// One row of attention, worked out in float64 from q, K, V and the mask, and held against what the
// network recorded.

import { ask } from "../../ui/static/ask.js";
import { decodeBytes, decodeFloats } from "../../ui/static/bytes.js";
import { el, finder, tokenElement } from "../../ui/static/dom.js";
import { rowLookedAt } from "../../ui/static/looked_at.js";
import { numeral, say, sayWith } from "../../ui/static/messages.js";
import { tinyNumber } from "../../ui/static/numbers.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { siteName } from "../../ui/static/sites.js";
import { page } from "../../web/store.js";
import { largestDifference, numberText, smallText, workOutRow } from "./row_arithmetic.js";
import { fitToWidth, tableOfRow } from "./row_picture.js";
import { stepsOf } from "./row_steps.js";

const MOST_ROWS = 32; // lines of the table; the other keys are summed in one
const PAUSE_MS = 200; // the large heatmap goes first

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".worked");
  const picture = find("[data-picture=worked]");
  /** @type {any} */
  let shown = null; // {row, sums, chosen}: what the page shows now

  // ---- the arithmetic ----

  const decode = (answer) => ({
    ...answer,
    q: decodeFloats(answer.q),
    keys: decodeFloats(answer.keys),
    values: decodeFloats(answer.values),
    allowed: decodeBytes(answer.allowed),
    scores: decodeFloats(answer.scores),
    weights: decodeFloats(answer.weights),
  });

  const agreement = ({ scores, weights, tolerance }, sums) => {
    const [byScore, byWeight] = [
      largestDifference(sums.scores, scores),
      largestDifference(sums.weights, weights),
    ];
    const span = Math.max(1, ...sums.scores.map(Math.abs));
    const agrees = byScore < tolerance * span && byWeight < tolerance;
    const box = find(".agreement");
    box.classList.toggle("disagrees", !agrees);
    const values = {
      byWeight: tinyNumber(byWeight),
      byScore: tinyNumber(byScore),
      tolerance: numeral(tolerance.toExponential(0)).replace("-", "−"),
    };
    const found =
      byWeight < tolerance
        ? say(
            "Largest difference from the network's own weights: {byWeight}, below " +
              "{tolerance}; from its own scores: {byScore}.",
            values,
          )
        : say(
            "Largest difference from the network's own weights: {byWeight}, not below " +
              "{tolerance}; from its own scores: {byScore}.",
            values,
          );
    const warning = agrees ? [] : [say("This does not agree with the network.")];
    box.textContent = [...warning, found].join(" ");
    Object.assign(root.dataset, { agrees, weightDifference: byWeight, scoreDifference: byScore });
  };

  // ---- the table, a line a key ----

  const line = (cells, className) => {
    const made = el("tr", className);
    made.append(...cells);
    return made;
  };
  const header = (content, scope) => {
    const made = el(content ? "th" : "td"); // nothing to say: an empty corner
    if (content) made.scope = scope;
    made.append(...[content].flat());
    return made;
  };
  // widest: the weight of the longest bar.
  const bar = (weight, widest) => {
    const [cell, fill] = [el("td", "weight-bar"), el("span")];
    fill.style.width = `${((100 * weight) / widest).toFixed(1)}%`;
    cell.append(fill);
    return cell;
  };

  const keyLine = (key, widest) => {
    const { row, sums } = shown;
    const button = el("button");
    button.append(tokenElement(row.key_labels[key]));
    button.setAttribute(
      "aria-label",
      say("Work out key {key}: {token}", { key, token: row.key_labels[key] }),
    );
    button.addEventListener("click", () => choose(key));
    const numbers = [
      numberText(sums.dots[key]),
      numberText(sums.scores[key]),
      row.allowed[key] ? "+ 0" : "−∞",
      smallText(sums.exps[key]),
      smallText(sums.weights[key]),
    ].map((value) => el("td", "", value));
    const name = header([el("small", "", `${key} `), button], "row");
    const made = line(
      [name, ...numbers, bar(sums.weights[key], widest)],
      row.allowed[key] ? "" : "is-hidden",
    );
    made.dataset.key = key;
    return made;
  };

  const restLine = (rest, weight, widest) => {
    const { row, sums } = shown;
    const sum = (values) => rest.reduce((total, key) => total + values[key], 0);
    const hidden = rest.filter((key) => !row.allowed[key]).length;
    const name = hidden
      ? say("the other {count} keys, {hidden} of them hidden", { count: rest.length, hidden })
      : say("the other {count} keys", { count: rest.length });
    const cells = ["", "", "", smallText(sum(sums.exps)), smallText(weight)].map((value) =>
      el("td", "", value),
    );
    return line([header(name, "row"), ...cells, bar(weight, widest)], "is-rest");
  };

  const drawTable = () => {
    const { row, sums } = shown;
    const all = sums.weights.map((_, key) => key);
    const best = [...all].sort((a, b) => sums.weights[b] - sums.weights[a] || a - b);
    const most = new Set(best.slice(0, MOST_ROWS));
    const rest = all.filter((key) => !most.has(key));
    const [table, head, body] = [el("table"), el("thead"), el("tbody")];
    const names = [
      say("key"),
      "q·k",
      `÷ √${row.score_size}`,
      say("mask"),
      "exp",
      say("weight"),
      "",
    ];
    head.append(line(names.map((name) => header(name, "col"))));
    const left = rest.reduce((total, key) => total + sums.weights[key], 0);
    const widest = Math.max(sums.weights[best[0]], left);
    body.append(...all.filter((key) => most.has(key)).map((key) => keyLine(key, widest)));
    if (rest.length) body.append(restLine(rest, left, widest));
    const sum = [
      "",
      "",
      "",
      numberText(sums.total),
      numberText(sums.weights.reduce((a, b) => a + b, 0)),
      "",
    ];
    body.append(
      line([header(say("sum"), "row"), ...sum.map((value) => el("td", "", value))], "is-sum"),
    );
    table.append(head, body);
    find(".row-table").replaceChildren(table);
    choose(best[0]);
  };

  // ---- the formulas of one key, with its numbers ----

  const step = (says, formula) => {
    const made = el("li", "", `${says} `);
    made.append(el("span", "reckoning", formula));
    return made;
  };

  const choose = (key) => {
    shown.chosen = key;
    const { row, sums } = shown;
    for (const made of element.querySelectorAll(".row-table tr[data-key]")) {
      const here = Number(made.dataset.key) === key;
      made.classList.toggle("is-chosen", here);
      made.querySelector("button").setAttribute("aria-pressed", String(here));
    }
    find(".steps-title").replaceChildren(
      ...sayWith("With the numbers of key {key}: {token}", {
        key,
        token: tokenElement(row.key_labels[key]),
      }),
    );
    const steps = stepsOf(row, sums, key).map(([says, formula]) => step(says, formula));
    find(".row-steps").replaceChildren(...steps);
    root.dataset.key = key;
  };

  // ---- drawing ----

  const draw = async (current) => {
    await new Promise((done) => setTimeout(done, PAUSE_MS));
    if (!current() || !page.run || !page.head) return;
    const { stack, kind, layer, head } = page.head;
    const there = page.run.kinds.find((one) => one.stack === stack && one.kind === kind);
    if (!there || layer >= there.n_layers || head >= page.run.n_heads) return; // of the model before
    const site = siteName(page.head);
    const answer = await ask(server.worked, {
      run: page.run.run,
      site,
      head,
      query: rowLookedAt(stack),
      dark: page.dark,
    });
    if (!current()) return;
    const row = decode(answer);
    shown = { row, sums: workOutRow(row), chosen: 0 };
    find(".worked-title").replaceChildren(
      ...sayWith("One row, worked out: layer {layer}, head {head}, query {query} {token}", {
        layer,
        head,
        query: row.query,
        token: tokenElement(row.query_label),
      }),
    );
    agreement(row, shown.sums);
    drawTable();
    find(".worked-both").hidden = false;
    picture.setAttribute(
      "aria-label",
      say("q, the keys, scores, weights and output of query {query}", { query: row.query }),
    );
    await drawFigure(picture, answer.figure, {
      change: fitToWidth(picture.clientWidth),
      table: () => tableOfRow(shown),
    });
    Object.assign(root.dataset, { run: page.run.run, site, head, query: row.query });
  };
  redrawWhen(root, ["run", "head", "query"], draw);
}
