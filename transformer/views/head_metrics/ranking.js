// A table of all heads: one number a column, sorted by any of them; a row chooses its head.

import { el, finder, tokenElement } from "../../ui/static/dom.js";
import { ownFields } from "../../ui/static/fields.js";
import { oneOf } from "../../ui/static/link_text.js";
import { numeral, say, sayN } from "../../ui/static/messages.js";
import { drawHeadMap } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { attentionOf } from "../../ui/static/site_words.js";
import { on, page, setHead, showProblem } from "../../web/store.js";
import { askOnce, kindShown, metricsOf } from "./known.js";
import { termsOf } from "./metric_terms.js";
import { sortHeads } from "./sort_heads.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".ranking");
  const [head, baselines, body] = ["thead", ".baselines", ".rows"].map(find);
  const FIRST_ROWS = 24;
  const NUMBER_PX = 34; // room for a number in a cell of the map
  /** @type {Record<string, any>} */
  const state = { by: "head", down: false, all: false, found: null };

  const name = ({ layer, head: index }) =>
    say("layer {layer}, head {head}", { layer, head: index });
  const number = (value, digits = 3) => (value === null ? "–" : numeral(value.toFixed(digits)));
  const digitsOf = ({ unit }) => (unit ? 2 : 3);

  // ---- the order ----

  const sortBy = (by) => {
    const again = state.by === by;
    Object.assign(state, { by, down: again ? !state.down : !["head", "label"].includes(by) });
    drawTable();
    drawMap(() => true).catch((error) => showProblem(error.message));
    head.querySelector(`[data-by=${by}]`).focus();
  };

  // ---- the table ----

  const columns = () => [
    { name: "head", title: say("Head") },
    ...state.found.metrics.map(({ name: by, title, unit }) => ({
      name: by,
      title: unit ? `${title} (${unit})` : title,
    })),
    { name: "label", title: say("Label") },
  ];
  const drawHead = () => {
    const row = el("tr");
    for (const { name: by, title } of columns()) {
      const cell = el("th");
      const button = el("button", "", title);
      button.dataset.by = by;
      button.addEventListener("click", () => sortBy(by));
      const sorted = state.by === by;
      cell.scope = "col";
      cell.setAttribute("aria-sort", sorted ? (state.down ? "descending" : "ascending") : "none");
      if (sorted) {
        const arrow = el("span", "arrow", state.down ? " ▼" : " ▲");
        arrow.setAttribute("aria-hidden", "true");
        button.append(arrow);
      }
      cell.append(button);
      row.append(cell);
    }
    head.replaceChildren(row);
  };
  const lineOf = (title, values, label) => {
    const row = el("tr");
    const first = el("th");
    first.scope = "row";
    first.append(title);
    const cells = state.found.metrics.map((metric) =>
      el("td", state.by === metric.name ? "sorted" : "", number(values(metric), digitsOf(metric))),
    );
    row.append(first, ...cells, el("td", "label", label));
    return row;
  };
  const drawBaselines = () =>
    baselines.replaceChildren(
      lineOf(say("an even head"), (metric) => metric.even, say("baseline")),
      lineOf(say("keys shuffled, mean"), (metric) => metric.shuffled, say("baseline")),
      lineOf(say("keys shuffled, most"), (metric) => metric.shuffled_most, say("baseline")),
    );
  const choose = ({ layer, head: index }) => {
    const { stack, kind } = kindShown();
    setHead({ stack, kind, layer, head: index });
    showPicture();
  };
  // The picture stands above the table, on a small screen far above. The focus stays where it is.
  const showPicture = () => {
    const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
    document.querySelector(".large-side")?.scrollIntoView({ block: "nearest", behavior });
  };
  const lineOfHead = (one) => {
    const button = el("button", "pick", name(one));
    button.setAttribute("aria-label", say("Show {head}", { head: name(one) }));
    const row = lineOf(button, (metric) => one.values[metric.name], one.label ?? "");
    Object.assign(row.dataset, { layer: one.layer, head: one.head });
    if (one.label === say("reads one token")) {
      row.lastElementChild.append(
        ": ",
        tokenElement(one.key_label),
        el("small", "", ` ${say("at {place}", { place: one.key })}`),
      );
    }
    row.addEventListener("click", () => choose(one));
    return row;
  };
  const drawTable = () => {
    const sorted = sortHeads(state.found.heads, state);
    const shown = state.all ? sorted : sorted.slice(0, FIRST_ROWS);
    drawHead();
    drawBaselines();
    body.replaceChildren(...shown.map(lineOfHead));
    const button = find(".show-all");
    button.hidden = sorted.length <= FIRST_ROWS;
    button.textContent = state.all
      ? say("Show the first {first_rows}", { first_rows: FIRST_ROWS })
      : say("Show all {count} heads", { count: sorted.length });
    mark();
  };
  const mark = () => {
    for (const row of body.children) {
      const { layer, head: index } = row.dataset;
      const chosen =
        page.head && Number(layer) === page.head.layer && Number(index) === page.head.head;
      row.classList.toggle("chosen", Boolean(chosen));
      row.querySelector("button").setAttribute("aria-pressed", String(Boolean(chosen)));
    }
  };
  find(".show-all").addEventListener("click", () => {
    state.all = !state.all;
    drawTable();
  });

  // ---- words ----

  const drawWords = () => {
    const { metrics, heads, rule, n_rows: rows, n_left_out: out, n_shuffles: times } = state.found;
    const { n_repeats: repeats } = state.found;
    const { kind } = kindShown();
    const labelled = heads.filter(({ label }) => label).length;
    find(".ranking-title").textContent = say("What each head does, in numbers: {attention}", {
      attention: attentionOf(kindShown()),
    });
    const told = [
      say("{count} heads over {rows} rows of this text; {labelled} have a label.", {
        count: heads.length,
        rows,
        labelled,
      }),
    ];
    if (out) {
      told.push(
        sayN(
          "{n} row is left out, because it may read one key only.",
          "{n} rows are left out, because they may read one key only.",
          out,
        ),
      );
    }
    if (kind !== "cross") {
      told.push(
        repeats
          ? say(
              "Induction and Duplicate are means over the {repeats} rows whose token stood in " +
                "the text before.",
              { repeats },
            )
          : say(
              "No token of this text stood in it before, so Induction and Duplicate have no " +
                "number.",
            ),
      );
    }
    told.push(say("Click a row of the table to see its head above."));
    find(".ranking-intro").textContent = told.join(" ");
    find(".definitions dl").replaceChildren(...termsOf(metrics, times));
    find(".rule").textContent = rule;
  };

  const drawMap = async (current) => {
    const chosen =
      state.found.metrics.find(({ name: by }) => by === state.by) ?? state.found.metrics[0];
    const data = { ...kindShown(), metric: chosen.name, dark: page.dark };
    const { figure: made } = await askOnce(server.metric_map, data);
    if (!current()) return;
    const box = find(".metric-map");
    const layers = new Set(state.found.heads.map(({ layer }) => layer)).size;
    const figure = await drawHeadMap(box, made, layers, NUMBER_PX);
    find(".map-title").textContent = say("{title}{unit}, layers down, heads across", {
      title: chosen.title,
      unit: chosen.unit ? ` (${chosen.unit})` : "",
    });
    box.setAttribute(
      "aria-label",
      say("{title}; the table has the same numbers", { title: find(".map-title").textContent }),
    );
    box.dataset.metric = figure.layout.meta.metric;
  };

  const draw = async (current) => {
    if (!page.run) return;
    const wanted = kindShown();
    const found = await metricsOf(server, wanted);
    if (!current()) return;
    state.found = found;
    const known = ["head", "label", ...state.found.metrics.map(({ name: by }) => by)];
    if (!known.includes(state.by)) Object.assign(state, { by: "head", down: false });
    drawTable();
    drawWords();
    Object.assign(root.dataset, wanted);
    await drawMap(current);
  };

  on("run", () => (state.found = null));
  on("head", (chosen) => {
    const { run, stack, kind } = root.dataset;
    const same = chosen.stack === stack && chosen.kind === kind && page.run.run === run;
    if (same && state.found) mark();
    else refresh();
  });
  const refresh = redrawWhen(root, ["run"], draw);
  ownFields(
    { sort: "head", order: "up" },
    () => ({ sort: state.by, order: state.down ? "down" : "up" }),
    ({ sort = "head", order: way = "up" }) => {
      const down = oneOf("order", way, ["up", "down"]) === "down";
      if (!/^[a-z_]+$/.test(sort))
        throw new Error(say("The link's sort must be the name of a column."));
      Object.assign(state, { by: sort, down });
      refresh();
    },
  );
}
