// Attention: the grid of all heads, the chosen head large, and the numbers under the pointer.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".attention");
const large = find(".large");
const state = {
  kind: 0, layer: 0, head: 0, picture: "heatmap", stage: "weights", scale: "sqrt", range: "fixed",
  depth: "all", threshold: "0.05", over_heads: "head", by: "written",
  pin: null, over: null, numbers: null, labels: null,
};
let clicked = null;

const kind = () => viz.run.kinds[state.kind];
const queryStack = () => kind().stack;
const keyStack = () => (kind().kind === "cross" ? "encoder" : kind().stack);
const site = () => viz.siteName({ ...kind(), layer: state.layer });
const isHeatmap = () => !["lines", "alignment"].includes(state.picture);

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
const heads = viz.headGrid(find(".head-grid"), props.palette, chooseHead);

// ---- the picture ----

const pictures = viz.pictureStore(server);
const between = viz.between(find(".lines-box"), find(".lines"), server, (row) => {
  const token = tokenOf(queryStack(), row); // a click on a query
  viz.setQuery(viz.same(viz.query, token) ? null : token);
});

const side = () => {
  const box = find(".large-box");
  const room = window.innerHeight - 24 - box.getBoundingClientRect().top - window.scrollY;
  return { width: box.clientWidth, height: Math.max(360, room) };
};

const drawLarge = async (current) => {
  const run = viz.run.run;
  drawSwitches();
  const { head, stage, scale, range, picture } = state;
  const { numbers, figure } = await pictures.get(state, kind());
  if (!current()) return;
  Object.assign(state, { numbers, labels: numbers.labels });
  if (isHeatmap()) await drawHeatmap(figure);
  else await drawBetween(current, run);
  if (!current()) return;
  find(".large-title").textContent = viz.pictureTitle(state, kind());
  large.setAttribute("aria-label", `${find(".large-title").textContent}; heatmap of query by key`);
  writeLabel();
  Object.assign(root.dataset, { site: site(), head, stage, scale, range, picture, run });
  show();
  if (clicked !== null) {
    await viz.painted();
    root.dataset.clickMs = (performance.now() - clicked).toFixed(1);
    clicked = null;
  }
};

const drawHeatmap = async (json) => {
  const { numbers, labels, stage, scale, picture } = state;
  const scores = picture === "heatmap" && stage !== "weights";
  const hides = picture !== "heatmap" || stage !== "scores";
  await viz.draw(large, json, {
    fit: { side: side(), top: 26, bar: true },
    tools: true,
    on: LISTENERS,
    change: ({ data }) => {
      // One head comes as its scores: what its colours stand for is worked out here.
      data[0].z ??= viz.cellValues(numbers, labels.key.length, stage, scale, numbers.floor);
    },
    numbers: (row, column) => {
      const at = row * labels.key.length + column;
      if (hides && !numbers.allowed[at]) return "hidden";
      return (scores ? numbers.scores : numbers.weights)[at].toFixed(4);
    },
  });
};

const drawBetween = (current, run) => {
  const { layer, head, picture, over_heads: over, by } = state;
  if (picture === "lines") {
    const row = state.pin?.row ?? placeOf(viz.query, queryStack(), "query");
    const query = row >= 0 ? row : null;
    return between.lines(current, { run, site: site(), head, query, threshold: Number(state.threshold) });
  }
  return between.alignment(current, {
    run, layer: over === "all" ? "mean" : layer, head: over === "head" ? head : "mean", by,
  });
};

// What the ranking of heads says of this one, if it says anything.
const writeLabel = () => {
  const one = ["heatmap", "lines"].includes(state.picture) && viz.run;
  const said = one ? viz.headLabel?.(viz.run.run, site(), state.head) : null;
  find(".head-label")?.remove();
  if (said) find(".large-title").append(viz.el("span", "head-label", said));
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
const last = () => state.labels && { row: state.labels.query.length - 1, column: state.labels.key.length - 1 };

const showNumbers = viz.readOut(find(".numbers-side"));
const bands = viz.bands(root, large);
const show = () => {
  if (!state.labels || !state.numbers) return;
  const cell = chosenCell();
  showNumbers(cell, state.labels, state.numbers);
  light(cell);
  const pinned = state.pin?.column === null ? "Row pinned." : "Pinned.";
  const free = cell ? "Click to pin." : "Point at a cell for its numbers; click to pin.";
  find(".pin-note").textContent = state.pin ? `${pinned} Esc lets go.` : free;
  viz.emit("light", state.over && {
    query: tokenOf(queryStack(), cell.row), key: tokenOf(keyStack(), cell.column),
  });
};
const light = (cell) => {
  const row = cell?.row ?? null;
  // A token that was chosen in the text is also shown as a key where the text reads itself.
  const itself = cell && row !== null && !state.over && !state.pin && queryStack() === keyStack();
  const column = cell?.column ?? (itself ? row : null);
  if (isHeatmap() && large._fullLayout) bands(row, column, last());
  root.dataset.row = row === null ? "" : String(row);
  root.dataset.column = column === null ? "" : String(column);
};
const setOver = (cell) => {
  state.over = cell;
  show();
};
const setPin = (cell) => {
  const same = state.pin && state.pin.row === cell.row && state.pin.column === cell.column;
  state.pin = same ? null : cell;
  viz.setQuery(same ? null : tokenOf(queryStack(), cell.row));
  show();
};
const LISTENERS = {
  plotly_hover: ({ points }) => setOver({ row: points[0].y, column: points[0].x }),
  plotly_unhover: () => setOver(null),
  plotly_click: ({ points }) => setPin({ row: points[0].y, column: points[0].x }),
  plotly_relayout: () => {
    viz.axisLabels(large);
    show();
  },
};
const words = (cell) => viz.cellInWords(cell, state.labels, state.numbers);
const say = (text) => (find(".said").textContent = text);
viz.cellCursor(large, {
  last,
  start: () => state.pin ?? cellOf(viz.query),
  move: (cell) => {
    setOver(cell);
    say(words(cell));
  },
  pin: (cell) => {
    state.over = null;
    setPin(cell);
    say(state.pin ? `Pinned: ${words(cell)}` : "No longer pinned.");
  },
  leave: () => state.over && setOver(null),
});
viz.rowLabels(find(".large-box"), large, (row) => setPin({ row, column: null }));

// ---- choices ----

const drawSwitches = viz.attentionSwitches(element, state, kind, () => refreshLarge());
const drawKinds = () =>
  viz.kindButtons(find(".kinds"), state.kind, (one) => viz.setHead({ ...one, layer: 0, head: 0 }));

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
  pictures.forget();
  between.forget();
  const fits = viz.run.kinds[state.kind]?.n_layers > state.layer && viz.run.n_heads > state.head;
  Object.assign(state, { pin: null, over: null, numbers: null, labels: null });
  if (!fits) Object.assign(state, { kind: 0, layer: 0, head: 0 });
  drawKinds();
  tellHead();
});
viz.on("query", (token) => {
  if (token && state.pin && !viz.same(token, tokenOf(queryStack(), state.pin.row))) state.pin = null;
  show();
  if (state.picture === "lines" && state.labels) refreshLarge();
});
viz.on("point", (token) => {
  state.over = null;
  const cell = token && state.labels ? cellOf(token) : null;
  if (!cell) return show();
  light(queryStack() === keyStack() ? { ...cell, column: cell.row } : cell);
});
viz.on("escape", () => {
  Object.assign(state, { pin: null, over: null });
  show();
});
viz.on("labels", writeLabel);
viz.linkCell(state, queryStack, keyStack, show);
viz.silenceButton(find(".silence-head"));
viz.preload();
const whenRun = (draw) => async (current) => (viz.run ? draw(current) : undefined);
if (viz.run) drawKinds();
const refreshGrid = viz.keepDrawn(find(".heads-side"), ["run"], whenRun(drawGrid));
const refreshLarge = viz.keepDrawn(root, ["run"], whenRun(drawLarge));
if (viz.run) tellHead();
