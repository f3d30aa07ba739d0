// A table of all heads: one number a column, sorted by any of them; a row chooses its head.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".ranking");
const [head, baselines, body] = ["thead", ".baselines", ".rows"].map(find);
const FIRST_ROWS = 24;
const NUMBER_PX = 34; // room for a number in a cell of the map
const state = { by: "head", down: false, all: false, found: null };
let kept = new Map();

const place = () => {
  const there = viz.run.kinds.find((one) => one.stack === viz.head?.stack && one.kind === viz.head.kind);
  const { stack, kind } = there ?? viz.run.kinds[0];
  return { run: viz.run.run, stack, kind };
};
const name = ({ layer, head: index }) => `layer ${layer}, head ${index}`;
const number = (value, digits = 3) => (value === null ? "–" : value.toFixed(digits));
const digitsOf = ({ unit }) => (unit ? 2 : 3);

// ---- the order ----

// Numbers that are missing go last whichever way; equal ones keep the order of the network.
const order = (heads) => {
  const value = (one) => (state.by === "label" ? one.label : one.values[state.by]);
  const sign = state.down ? -1 : 1;
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  if (state.by === "head") return state.down ? [...heads].reverse() : heads;
  const [has, lacks] = [heads.filter((one) => value(one) !== null), heads.filter((one) => value(one) === null)];
  return [...has.sort((a, b) => sign * compare(value(a), value(b))), ...lacks];
};
const sortBy = (by) => {
  const again = state.by === by;
  Object.assign(state, { by, down: again ? !state.down : !["head", "label"].includes(by) });
  drawTable();
  drawMap(() => true).catch((error) => viz.say(error.message));
  head.querySelector(`[data-by=${by}]`).focus();
};

// ---- the table ----

const columns = () => [
  { name: "head", title: "Head" },
  ...state.found.metrics.map(({ name: by, title, unit }) => ({ name: by, title: unit ? `${title} (${unit})` : title })),
  { name: "label", title: "Label" },
];
const drawHead = () => {
  const row = viz.el("tr");
  for (const { name: by, title } of columns()) {
    const cell = viz.el("th");
    const button = viz.el("button", "", title);
    button.dataset.by = by;
    button.addEventListener("click", () => sortBy(by));
    const sorted = state.by === by;
    cell.scope = "col";
    cell.setAttribute("aria-sort", sorted ? (state.down ? "descending" : "ascending") : "none");
    if (sorted) {
      const arrow = viz.el("span", "arrow", state.down ? " ▼" : " ▲");
      arrow.setAttribute("aria-hidden", "true");
      button.append(arrow);
    }
    cell.append(button);
    row.append(cell);
  }
  head.replaceChildren(row);
};
const lineOf = (title, values, label) => {
  const row = viz.el("tr");
  const first = viz.el("th");
  first.scope = "row";
  first.append(title);
  const cells = state.found.metrics.map((metric) =>
    viz.el("td", state.by === metric.name ? "sorted" : "", number(values(metric), digitsOf(metric))));
  row.append(first, ...cells, viz.el("td", "label", label));
  return row;
};
const drawBaselines = () => baselines.replaceChildren(
  lineOf("an even head", (metric) => metric.even, "baseline"),
  lineOf("keys shuffled, mean", (metric) => metric.shuffled, "baseline"),
  lineOf("keys shuffled, most", (metric) => metric.shuffled_most, "baseline"),
);
const choose = ({ layer, head: index }) => {
  const { stack, kind } = place();
  viz.setHead({ stack, kind, layer, head: index });
  showPicture();
};
// The picture stands above the table, on a small screen far above. The focus stays where it is.
const showPicture = () => {
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
  document.querySelector(".large-side")?.scrollIntoView({ block: "nearest", behavior });
};
const lineOfHead = (one) => {
  const button = viz.el("button", "pick", name(one));
  button.setAttribute("aria-label", `Show ${name(one)}`);
  const row = lineOf(button, (metric) => one.values[metric.name], one.label ?? "");
  Object.assign(row.dataset, { layer: one.layer, head: one.head });
  if (one.label === "reads one token") {
    row.lastElementChild.append(": ", viz.token(one.key_label), viz.el("small", "", ` at ${one.key}`));
  }
  row.addEventListener("click", () => choose(one));
  return row;
};
const drawTable = () => {
  const sorted = order(state.found.heads);
  const shown = state.all ? sorted : sorted.slice(0, FIRST_ROWS);
  drawHead();
  drawBaselines();
  body.replaceChildren(...shown.map(lineOfHead));
  const button = find(".show-all");
  button.hidden = sorted.length <= FIRST_ROWS;
  button.textContent = state.all ? `Show the first ${FIRST_ROWS}` : `Show all ${sorted.length} heads`;
  mark();
};
const mark = () => {
  for (const row of body.children) {
    const { layer, head: index } = row.dataset;
    const chosen = viz.head && Number(layer) === viz.head.layer && Number(index) === viz.head.head;
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
  const { stack, kind } = place();
  const labelled = heads.filter(({ label }) => label).length;
  const left = out ? `, ${out} left out because it may read one key only` : "";
  find(".ranking-title").textContent = `What each head does, in numbers: ${stack} ${kind}-attention`;
  find(".ranking-intro").textContent =
    `${heads.length} heads over ${rows} rows of this text${left}; ${labelled} with a label. A row of the table shows its head above.`;
  const terms = metrics.flatMap(({ title, unit, definition }) => [
    viz.el("dt", "", unit ? `${title} (${unit})` : title), viz.el("dd", "", `${definition}.`),
  ]);
  const baselineTerms = [
    viz.el("dt", "", "an even head"),
    viz.el("dd", "", "the same numbers of a head that reads all keys that its mask allows with the same weight."),
    viz.el("dt", "", "keys shuffled"),
    viz.el("dd", "", `of ${times} copies of each head in which every key vector stands at another place, before mask and softmax: their mean, and the most that any copy of any head reaches; for numbers about a place.`),
  ];
  find(".definitions dl").replaceChildren(...terms, ...baselineTerms);
  find(".rule").textContent = rule;
};

const drawMap = async (current) => {
  const chosen = state.found.metrics.find(({ name: by }) => by === state.by) ?? state.found.metrics[0];
  const data = { ...place(), metric: chosen.name, dark: viz.dark };
  const key = JSON.stringify(data);
  if (!kept.has(key)) kept.set(key, await viz.ask(server.metric_map, data));
  if (!current()) return;
  const box = find(".metric-map");
  const layers = new Set(state.found.heads.map(({ layer }) => layer)).size;
  const figure = await viz.drawHeadMap(box, kept.get(key).figure, layers, NUMBER_PX);
  find(".map-title").textContent = `${chosen.title}${chosen.unit ? ` (${chosen.unit})` : ""}, layers down, heads across`;
  box.setAttribute("aria-label", `${find(".map-title").textContent}; the same numbers stand in the table`);
  box.dataset.metric = figure.layout.meta.metric;
};

const draw = async (current) => {
  if (!viz.run) return;
  const wanted = place();
  const key = JSON.stringify(wanted);
  if (!kept.has(key)) kept.set(key, await viz.ask(server.metrics, wanted));
  if (!current()) return;
  state.found = kept.get(key);
  const known = ["head", "label", ...state.found.metrics.map(({ name: by }) => by)];
  if (!known.includes(state.by)) Object.assign(state, { by: "head", down: false });
  drawTable();
  drawWords();
  Object.assign(root.dataset, wanted);
  viz.emit("labels");
  await drawMap(current);
};

// The label of a head of the run, if its metrics are known and it has one.
viz.headLabel = (run, site, index) => {
  const [stack, layer, kind] = site.split(".");
  const found = kept.get(JSON.stringify({ run, stack, kind }));
  const one = found?.heads.find((each) => each.layer === Number(layer) && each.head === index);
  return one?.label ?? null;
};
viz.on("run", () => {
  kept = new Map();
  state.found = null;
});
viz.on("head", (chosen) => {
  const { run, stack, kind } = root.dataset;
  const same = chosen.stack === stack && chosen.kind === kind && viz.run.run === run;
  if (same && state.found) mark();
  else refresh();
});
const refresh = viz.keepDrawn(root, ["run"], draw);
viz.link.part({ sort: "head", order: "up" }, () => ({ sort: state.by, order: state.down ? "down" : "up" }), (given) => {
  const [by, order] = [given.sort ?? "head", viz.link.oneOf("order", given.order ?? "up", ["up", "down"])];
  if (!/^[a-z_]+$/.test(by)) throw new Error("The link's sort must be the name of a column.");
  Object.assign(state, { by, down: order === "down" });
  refresh();
});
