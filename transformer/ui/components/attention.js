// Attention: the grid of all heads, the chosen head large, and the numbers under the pointer.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".attention");
const grid = find(".head-grid");
const large = find(".large");
const state = {
  kind: 0, layer: 0, head: 0, stage: "weights", scale: "sqrt",
  pin: null, over: null, numbers: null, labels: null,
};
const KEPT = 64; // figures kept in the page
let figures = new Map();
let numbersOf = new Map();
let clicked = null;

const kind = () => viz.run.kinds[state.kind];
const site = () => `${kind().stack}.${state.layer}.${kind().kind}`;
const name = viz.headName;

// ---- the grid ----

const drawGrid = async (current) => {
  const { stack, kind: sort } = kind();
  const atlas = await viz.ask(server.atlas, { run: viz.run.run, stack, kind: sort });
  if (!current()) return;
  heads.draw(atlas);
  heads.mark(state.layer, state.head);
};

const chooseHead = (layer, head) => {
  clicked = performance.now();
  Object.assign(state, { layer, head });
  heads.mark(layer, head);
  refreshLarge();
};
const heads = viz.headGrid(grid, props.palette, chooseHead);

// ---- the chosen head ----

const side = () => {
  const box = find(".large-box");
  const room = window.innerHeight - 24 - box.getBoundingClientRect().top - window.scrollY;
  return { width: box.clientWidth, height: Math.max(360, room) };
};

const drawLarge = async (current) => {
  if (!viz.run) return;
  const run = viz.run.run;
  const place = `${run} ${site()} ${state.head}`;
  const key = `${place} ${state.stage} ${state.scale} ${viz.dark}`;
  if (!figures.has(key) || !numbersOf.has(place)) await fetchHead(run, place, key);
  if (!current()) return;
  state.numbers = numbersOf.get(place);
  const { layer, head, stage } = state;
  const figure = await viz.draw(large, figures.get(key), {
    fit: { side: side(), top: 26, bar: true },
    tools: true,
  });
  if (!current()) return;
  state.labels = { query: figure.layout.meta.query_labels, key: figure.layout.meta.key_labels };
  listen();
  const { stack, kind: sort } = kind();
  find(".large-title").textContent = `${name(layer, head)}: ${stack} ${sort}-attention, ${stage}`;
  large.setAttribute("aria-label", `${name(layer, head)}, heatmap of query by key`);
  Object.assign(root.dataset, { site: site(), head, stage, scale: state.scale, run });
  for (const input of element.querySelectorAll(".scales input")) input.disabled = stage !== "weights";
  show();
  if (clicked !== null) {
    await viz.painted();
    root.dataset.clickMs = (performance.now() - clicked).toFixed(1);
    clicked = null;
  }
};

const fetchHead = async (run, place, key) => {
  const { stage, scale, head } = state;
  const wanted = !numbersOf.has(place);
  const answer = await viz.ask(server.heatmap, {
    run, site: site(), head, stage, scale, dark: viz.dark, numbers: wanted,
  });
  if (wanted) {
    keep(numbersOf, place, {
      scores: viz.floats(answer.scores),
      weights: viz.floats(answer.weights),
      allowed: viz.bytes(answer.allowed),
    });
  }
  keep(figures, key, answer.figure);
};
const keep = (table, key, value) => {
  if (table.size >= KEPT) table.delete(table.keys().next().value);
  table.set(key, value);
};

let listening = false;
const listen = () => {
  if (listening) return;
  listening = true;
  large.on("plotly_hover", ({ points }) => setOver({ row: points[0].y, column: points[0].x }));
  large.on("plotly_unhover", () => setOver(null));
  large.on("plotly_click", ({ points }) => {
    const { x: column, y: row } = points[0];
    const same = state.pin && state.pin.row === row && state.pin.column === column;
    state.pin = same ? null : { row, column };
    const offset = ownTokens() ? viz.run.trace_start : null;
    viz.setQuery(same || offset === null ? null : row + offset);
    show();
  });
  large.on("plotly_relayout", () => {
    viz.axisLabels(large);
    show();
  });
};
const setOver = (cell) => {
  state.over = cell;
  show();
};

// ---- numbers, and the bands that light a row and a column ----

// Whether rows are the tokens listed in the page, and not those of another text (a source).
const ownTokens = () => viz.run.stacks.length === 1 || kind().stack === "decoder";
const ownKeys = () => ownTokens() && kind().kind === "self";

const chosenCell = () => {
  if (state.over) return state.over;
  if (state.pin) return state.pin;
  if (viz.query === null || !ownTokens()) return null;
  const row = viz.query - viz.run.trace_start;
  return row >= 0 && row < (state.labels?.query.length ?? 0) ? { row, column: null } : null;
};

const show = () => {
  if (!state.labels || !state.numbers) return;
  const cell = chosenCell();
  const nKeys = state.labels.key.length;
  readOut(cell, nKeys);
  topKeys(cell, nKeys);
  bands(cell);
  find(".pin-note").textContent = state.pin
    ? "Pinned. Esc lets go."
    : cell ? "Click to pin." : "Point at a cell for its numbers; click to pin.";
  const offset = viz.run.trace_start;
  viz.emit("light", state.over && ownTokens()
    ? { query: cell.row + offset, key: ownKeys() ? cell.column + offset : null }
    : null);
};

const set = (field, ...content) => find(`[data-field=${field}]`).replaceChildren(...content);
const tokenAt = (labels, place) => [viz.token(labels[place]), viz.el("small", "", ` at ${place}`)];

const readOut = (cell, nKeys) => {
  for (const field of ["query", "key", "score", "allowed", "weight", "sum"]) set(field, "–");
  if (!cell) return;
  const { scores, weights, allowed } = state.numbers;
  set("query", ...tokenAt(state.labels.query, cell.row));
  const row = weights.subarray(cell.row * nKeys, (cell.row + 1) * nKeys);
  set("sum", row.reduce((total, weight) => total + weight, 0).toFixed(4));
  if (cell.column === null) return;
  const place = cell.row * nKeys + cell.column;
  set("key", ...tokenAt(state.labels.key, cell.column));
  set("score", scores[place].toFixed(4));
  set("allowed", allowed[place] ? "allowed" : "hidden");
  set("weight", weights[place].toFixed(4));
};

// The keys that the chosen query reads most.
const topKeys = (cell, nKeys) => {
  const box = find(".top-keys");
  if (!cell) return box.replaceChildren();
  const row = state.numbers.weights.subarray(cell.row * nKeys, (cell.row + 1) * nKeys);
  const best = [...row.keys()].sort((a, b) => row[b] - row[a]).slice(0, 5);
  const lines = best.filter((column) => row[column] > 0).map((column) => {
    const line = viz.el("div", "top-key");
    const bar = viz.el("span", "bar");
    bar.style.width = `${(100 * row[column]).toFixed(1)}%`;
    line.append(viz.token(state.labels.key[column]), bar, viz.el("span", "value", row[column].toFixed(3)));
    return line;
  });
  box.replaceChildren(viz.el("h4", "", "This query reads most"), ...lines);
};

const place = (band, at) => {
  band.hidden = !at;
  if (at) for (const [key, value] of Object.entries(at)) band.style[key] = `${value}px`;
};
const bands = (cell) => {
  const [nQueries, nKeys] = [state.labels.query.length, state.labels.key.length];
  const column = cell?.column ?? (cell && ownKeys() && viz.query !== null && !state.over ? cell.row : null);
  place(find(".band.row"), cell && viz.cells(large, 0, nKeys - 1, cell.row, cell.row));
  place(find(".band.column"),
    column === null ? null : viz.cells(large, column, column, 0, nQueries - 1));
  root.dataset.row = cell ? String(cell.row) : "";
  root.dataset.column = column === null ? "" : String(column);
};

// ---- choices ----

const drawKinds = () => {
  const box = find(".kinds");
  box.hidden = viz.run.kinds.length < 2;
  box.replaceChildren(...viz.run.kinds.map(({ stack, kind: sort }, index) => {
    const button = viz.el("button", "kind", `${stack} ${sort}`);
    button.type = "button";
    button.setAttribute("role", "radio");
    button.setAttribute("aria-checked", String(index === state.kind));
    button.addEventListener("click", () => {
      Object.assign(state, { kind: index, layer: 0, head: 0, pin: null, over: null });
      drawKinds();
      refreshGrid();
      refreshLarge();
    });
    return button;
  }));
};

for (const [group, field] of [["stages", "stage"], ["scales", "scale"]]) {
  for (const input of element.querySelectorAll(`.${group} input`)) {
    input.name = `attention-${field}`;
    input.addEventListener("change", () => {
      state[field] = input.value;
      refreshLarge();
    });
  }
}

viz.on("run", () => {
  figures = new Map();
  numbersOf = new Map();
  const fits = viz.run.kinds[state.kind]?.n_layers > state.layer && viz.run.n_heads > state.head;
  Object.assign(state, { pin: null, over: null, numbers: null, labels: null });
  if (!fits) Object.assign(state, { kind: 0, layer: 0, head: 0 });
  drawKinds();
});
viz.on("query", (index) => {
  if (index !== null && state.pin && index !== state.pin.row + viz.run.trace_start) state.pin = null;
  show();
});
viz.on("point", (index) => {
  const row = index === null || !ownTokens() ? -1 : index - viz.run.trace_start;
  const inside = row >= 0 && row < (state.labels?.query.length ?? 0);
  state.over = null;
  if (!inside) return show();
  bands({ row, column: ownKeys() ? row : null });
});
viz.on("escape", () => {
  state.pin = null;
  show();
});

const whenRun = (draw) => async (current) => (viz.run ? draw(current) : undefined);
if (viz.run) drawKinds();
const refreshGrid = viz.keepDrawn(find(".heads-side"), ["run"], whenRun(drawGrid));
const refreshLarge = viz.keepDrawn(root, ["run"], whenRun(drawLarge));
