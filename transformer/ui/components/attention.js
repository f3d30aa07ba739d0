// Attention: the grid of all heads, the chosen head large, and the numbers under the pointer.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".attention");
const grid = find(".head-grid");
const large = find(".large");
const state = {
  kind: 0, layer: 0, head: 0, picture: "heatmap", stage: "weights", scale: "sqrt", over_heads: "head",
  by: "written", pin: null, over: null, numbers: null, labels: null,
};
const KEPT = 64; // figures kept in the page
let figures = new Map();
let numbersOf = new Map();
let clicked = null;

const kind = () => viz.run.kinds[state.kind];
const queryStack = () => kind().stack;
const keyStack = () => (kind().kind === "cross" ? "encoder" : kind().stack);
const site = () => `${kind().stack}.${state.layer}.${kind().kind}`;
const name = viz.headName;

// ---- the grid ----

const drawGrid = async (current) => {
  const { stack, kind: sort } = kind();
  const wanted = { run: viz.run.run, stack, kind: sort };
  const sent = props.first; // that of the stored example comes with the page
  const here = Object.entries(wanted).every(([name, value]) => sent[name] === value);
  const atlas = here ? sent : await viz.ask(server.atlas, wanted);
  if (!current()) return;
  heads.draw(atlas);
  heads.mark(state.layer, state.head);
};

const chooseHead = (layer, head) => {
  clicked = performance.now();
  viz.setHead({ stack: kind().stack, kind: kind().kind, layer, head });
};
const heads = viz.headGrid(grid, props.palette, chooseHead);

// ---- the chosen head ----

const side = () => {
  const box = find(".large-box");
  const room = window.innerHeight - 24 - box.getBoundingClientRect().top - window.scrollY;
  return { width: box.clientWidth, height: Math.max(360, room) };
};

const drawLarge = async (current) => {
  const run = viz.run.run;
  drawSwitches();
  const place = `${run} ${site()} ${state.head}`;
  const key = `${place} ${state.stage} ${state.scale} ${viz.dark}`;
  if (!figures.has(key) || !numbersOf.has(place)) await fetchHead(run, place, key);
  const found = state.picture === "lines" ? await drawLines() : null;
  if (!current()) return;
  if (found) await showLines(found);
  if (found) return;
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
    viz.setQuery(same ? null : tokenOf(queryStack(), row));
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

// A row or column of the picture as a token of a text, and back (-1: not in this picture).
const tokenOf = (stack, place) => ({ stack, index: place + viz.offset(stack) });
const placeOf = (token, stack, side) => {
  if (token?.stack !== stack) return -1;
  const place = token.index - viz.offset(stack);
  return place < (state.labels?.[side].length ?? 0) ? place : -1;
};
// A token of a text as a row (it asks), or else as a column (it is read); null if not shown here.
const cellOf = (token) => {
  const row = placeOf(token, queryStack(), "query");
  if (row >= 0) return { row, column: null };
  const column = placeOf(token, keyStack(), "key");
  return column >= 0 ? { row: null, column } : null;
};
const chosenCell = () => state.over ?? state.pin ?? cellOf(viz.query);

const showNumbers = viz.readOut(find(".numbers-side"));
const show = () => {
  if (!state.labels || !state.numbers) return;
  const cell = chosenCell();
  showNumbers(cell, state.labels, state.numbers);
  bands(cell);
  find(".pin-note").textContent = state.pin
    ? "Pinned. Esc lets go."
    : cell ? "Click to pin." : "Point at a cell for its numbers; click to pin.";
  viz.emit("light", state.over && {
    query: tokenOf(queryStack(), cell.row), key: tokenOf(keyStack(), cell.column),
  });
};

const place = (band, at) => {
  band.hidden = !at;
  if (at) for (const [key, value] of Object.entries(at)) band.style[key] = `${value}px`;
};
const bands = (cell) => {
  const { query, key } = state.labels;
  const last = { row: query.length - 1, column: key.length - 1 };
  const row = cell?.row ?? null;
  // A token that was chosen in the text is also shown as a key where the text reads itself.
  const itself = cell && row !== null && !state.over && !state.pin && queryStack() === keyStack();
  const column = cell?.column ?? (itself ? row : null);
  place(find(".band.row"), row === null ? null : viz.cells(large, 0, last.column, row, row));
  place(find(".band.column"), column === null ? null : viz.cells(large, column, column, 0, last.row));
  root.dataset.row = row === null ? "" : String(row);
  root.dataset.column = column === null ? "" : String(column);
};

// ---- cross-attention as lines between words ----

const lines = find(".lines");
const drawLines = async () => {
  const run = viz.run.run;
  const layer = state.over_heads === "all" ? "mean" : state.layer;
  const head = state.over_heads === "head" ? state.head : "mean";
  const answer = await viz.ask(server.alignment, { run, layer, head, by: state.by, dark: viz.dark });
  return { answer, run, head, layer };
};
const showLines = async ({ answer, run, head, layer }) => {
  const margins = ({ layout }) => {
    layout.width = Math.min(layout.width, 620);
    layout.height -= layout.margin.t - 12;
    layout.margin = { ...layout.margin, t: 12 };
  };
  const figure = await viz.draw(lines, answer.figure, { change: margins });
  const whose = { head: `layer ${layer}, head ${head}`, layer: `layer ${layer}, mean of its heads`, all: "mean of all heads" };
  find(".large-title").textContent = `Most-read source token: ${whose[state.over_heads]}`;
  lines.setAttribute("aria-label", figure.layout.meta.links.map(([to, from, weight]) =>
    `${figure.layout.meta.target_labels[to]} reads ${figure.layout.meta.source_labels[from]}, ${weight.toFixed(2)}`).join("; "));
  Object.assign(lines.dataset, { run, head, layer, by: state.by });
};
const drawSwitches = () => {
  const crossing = kind().kind === "cross";
  if (!crossing) state.picture = "heatmap";
  const shows = state.picture;
  find(".pictures").hidden = !crossing;
  for (const part of element.querySelectorAll("[data-for]")) part.hidden = part.dataset.for !== shows;
  find(`.pictures input[value=${shows}]`).checked = true;
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
    button.addEventListener("click", () => viz.setHead({ stack, kind: sort, layer: 0, head: 0 }));
    return button;
  }));
};

const SWITCHES = { pictures: "picture", stages: "stage", scales: "scale", over: "over_heads", by: "by" };
for (const [group, field] of Object.entries(SWITCHES)) {
  for (const input of element.querySelectorAll(`.${group} input`)) {
    input.name = `attention-${field}`;
    input.addEventListener("change", () => {
      state[field] = input.value;
      refreshLarge();
    });
  }
}

const tellHead = () => {
  const { layer, head } = state;
  viz.setHead({ stack: kind().stack, kind: kind().kind, layer, head });
};
// Another head was chosen: here in the grid, or elsewhere on the page.
viz.on("head", ({ stack, kind: sort, layer, head }) => {
  const index = viz.run.kinds.findIndex((one) => one.stack === stack && one.kind === sort);
  if (index === state.kind && layer === state.layer && head === state.head) return;
  const changed = index !== state.kind;
  Object.assign(state, { kind: index, layer, head });
  if (changed) {
    Object.assign(state, { pin: null, over: null });
    drawKinds();
    refreshGrid();
  } else {
    heads.mark(layer, head);
  }
  refreshLarge();
});
viz.on("run", () => {
  figures = new Map();
  numbersOf = new Map();
  const fits = viz.run.kinds[state.kind]?.n_layers > state.layer && viz.run.n_heads > state.head;
  Object.assign(state, { pin: null, over: null, numbers: null, labels: null });
  if (!fits) Object.assign(state, { kind: 0, layer: 0, head: 0 });
  drawKinds();
  tellHead();
});
viz.on("query", (token) => {
  if (token && state.pin && !viz.same(token, tokenOf(queryStack(), state.pin.row))) state.pin = null;
  show();
});
viz.on("point", (token) => {
  state.over = null;
  const cell = token && state.labels ? cellOf(token) : null;
  if (!cell) return show();
  bands(queryStack() === keyStack() ? { ...cell, column: cell.row } : cell);
});
viz.on("escape", () => {
  state.pin = null;
  show();
});

viz.preload();
const whenRun = (draw) => async (current) => (viz.run ? draw(current) : undefined);
if (viz.run) drawKinds();
const refreshGrid = viz.keepDrawn(find(".heads-side"), ["run"], whenRun(drawGrid));
const refreshLarge = viz.keepDrawn(root, ["run"], whenRun(drawLarge));
if (viz.run) tellHead();
