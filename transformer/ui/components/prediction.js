// One generated token's candidates; every token's surprise; what each layer would have said; and the
// tree of a beam search.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".prediction");
const NARROW_PX = 480;
const state = { step: 0 };
const steps = () => viz.run?.probabilities.length ?? 0;

const draw = async (current) => {
  if (!viz.run) return;
  const none = steps() === 0;
  find(".step-body").hidden = none;
  find(".previous").disabled = none || state.step === 0;
  find(".next").disabled = none || state.step >= steps() - 1;
  if (none) {
    find(".step-title").textContent = "Nothing was generated, so there is no step to show.";
    return;
  }
  const { run } = viz.run;
  const { step } = state;
  const answer = await viz.ask(server.candidates, { run, step, dark: viz.dark });
  if (!current()) return;
  words(answer, step);
  await viz.draw(find("[data-picture=candidates]"), answer.figure, { change: narrow, on: BRANCH });
  Object.assign(root.dataset, { run, step });
};

const BRANCH = {
  plotly_click: ({ points }) => {
    const { ids, chosen, step } = find("[data-picture=candidates]").layout.meta;
    const id = ids[Math.round(points[0].y)];
    if (id !== chosen) viz.branchAt(step, id);
  },
};

const narrow = ({ layout }) => {
  layout.height -= layout.margin.t - 40;
  layout.margin = { ...layout.margin, t: 40 };
  layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
  if (layout.width >= NARROW_PX) return;
  layout.xaxis.range[1] *= 1.25; // the longest bar's number has its width all the same
  layout.xaxis.nticks = 3;
};

const words = (answer, step) => {
  const chosen = viz.token(answer.chosen);
  const share = `” with probability ${answer.probability.toFixed(3)}`;
  find(".step-title").replaceChildren(`Step ${step + 1} of ${steps()}: chose “`, chosen, share);
  const [start, stop] = answer.window;
  const slid = answer.slid ? " The window has slid: earlier tokens were out of sight." : "";
  const source = viz.run.source_labels.length ? ", and the whole source" : "";
  const how = `${answer.how[0].toUpperCase()}${answer.how.slice(1)}.`;
  find(".step-window").textContent =
    `It saw tokens ${start} to ${stop - 1} (${stop - start} of them)${source}.${slid} ${how}`;
  const seen = answer.seen.slice(-60).map(viz.token);
  if (answer.seen.length > 60) seen.unshift("… ");
  find(".step-text").replaceChildren(...seen, viz.el("span", "caret", "▸"), viz.token(answer.chosen));
};

const go = (step) => {
  if (step < 0 || step >= steps()) return;
  viz.setQuery({ stack: viz.run.stack, index: viz.run.n_prompt + step });
};
find(".previous").addEventListener("click", () => go(state.step - 1));
find(".next").addEventListener("click", () => go(state.step + 1));
const stepOf = (query) => (viz.run && query?.stack === viz.run.stack ? query.index - viz.run.n_prompt : -1);
viz.on("query", (query) => {
  if (stepOf(query) < 0) return;
  state.step = stepOf(query);
  refresh();
});
viz.on("run", () => {
  state.step = 0;
  showTree();
});

// ---- pictures with a column for each token ----

// A picture of `count` columns, the first of which is the token at first(); a click chooses one.
const columnsOf = (name, first) => {
  const box = find(`[data-picture=${name}]`);
  const band = box.parentElement.querySelector(".band");
  const wide = box.closest(".wide");
  const on = {
    plotly_click: ({ points }) => {
      viz.setQuery({ stack: viz.run.stack, index: first() + Math.round(points[0].x) });
    },
  };
  // The chosen token's column, scrolled into sight.
  const mark = () => {
    const place = viz.query?.stack === viz.run?.stack ? viz.query.index - first() : -1;
    const { xaxis, yaxis } = box._fullLayout ?? {};
    const shown = xaxis && place >= 0 && place < Math.abs(xaxis.range[1] - xaxis.range[0]);
    band.hidden = !shown;
    if (!shown) return;
    const { left, width } = viz.cells(box, place, place, 0, 0);
    const at = { left, width, top: yaxis._offset, height: yaxis._length };
    for (const [key, value] of Object.entries(at)) band.style[key] = `${value}px`;
    const [start, end] = [wide.scrollLeft, wide.scrollLeft + wide.clientWidth];
    if (left < start || left + width > end) wide.scrollLeft = left - wide.clientWidth / 2;
  };
  const draw = async (figure, options) => {
    const drawn = await viz.draw(box, figure, { ...options, on });
    mark();
    return drawn;
  };
  viz.on("query", mark);
  return { box, wide, draw };
};
const still = (layout) => {
  layout.dragmode = false;
  for (const axis of [layout.xaxis, layout.yaxis]) axis.fixedrange = true;
};

// ---- surprise ----

const BAR_PX = 22; // the least that a token's label needs
const surprised = columnsOf("surprise", () => viz.run.trace_start);
const drawSurprise = async (current) => {
  if (!viz.run) return;
  const { run } = viz.run;
  const answer = await viz.ask(server.surprise, { run, dark: viz.dark });
  if (!current()) return;
  const says = answer.none ?? answer.says;
  find(".surprise-says").textContent = `${says[0].toUpperCase()}${says.slice(1)}.`;
  find(".surprise-body").hidden = Boolean(answer.none);
  find(".surprise-box").dataset.run = run;
  if (answer.none) return;
  const change = ({ layout }) => {
    const count = layout.meta.labels.length;
    layout.width = Math.max(surprised.wide.clientWidth, 80 + BAR_PX * count);
    layout.height -= layout.margin.t - 24;
    layout.margin = { ...layout.margin, t: 24 };
    layout.xaxis.title.text = "";
    layout.margin.b -= 20;
    still(layout);
  };
  await surprised.draw(answer.figure, { change });
};

// ---- the logit lens ----

const lens = { first: 0, columns: 0, total: 0 };
const seen = columnsOf("lens", () => viz.run.trace_start + lens.first);
const drawLens = async (current) => {
  if (!viz.run) return;
  const { run } = viz.run;
  const answer = await viz.ask(server.lens, { run, first: lens.first, dark: viz.dark });
  if (!current()) return;
  find(".lens-says").textContent = lensWords(answer);
  const { meta, width } = JSON.parse(answer.figure).layout;
  const figure = await seen.draw(answer.figure, {
    change: (figure) => lensLook(figure, width),
    numbers: (row, column) => cellText(meta, figureZ(), row, column),
  });
  Object.assign(lens, { columns: answer.columns, total: meta.total });
  lensRows(figure.layout, meta.row_labels);
  find(".lens-scale").style.background = gradient(figure.data[0].colorscale);
  lensPager();
  Object.assign(find(".lens-box").dataset, { run, first: lens.first });
};
const figureZ = () => seen.box.calcdata[0][0].z;
const cellText = (meta, z, row, column) => `${meta.best[row][column]} ${z[row][column].toFixed(4)}`;
const gradient = (scale) =>
  `linear-gradient(to right, ${scale.map(([at, colour]) => `${colour} ${at * 100}%`).join(", ")})`;

const lensWords = ({ says, tied, foresees }) => {
  const task = foresees ? "which token comes next" : "which token stands there";
  const back = tied && foresees
    ? " The input says back the token that was just read: head and embedding are one matrix." : "";
  return `The residual stream after each layer, read as if it were the last: ${task}? ` +
    `Read with ${says} (nostalgebraist 2020), so early rows may be nonsense.${back} Underlined: the same ` +
    "best token as the model's own, in the top row. Click a column to choose its token.";
};

// Row names stand beside the picture, so that they stay when it is scrolled.
const lensLook = ({ data, layout }, width) => {
  layout.width = width - layout.margin.l - layout.margin.r + 16;
  const rows = layout.height - layout.margin.t - layout.margin.b;
  const above = layout.xaxis2.visible === false ? 8 : viz.labelRoom(layout.xaxis2);
  layout.margin = { l: 8, r: 8, t: above, b: viz.labelRoom(layout.xaxis) };
  layout.height = rows + layout.margin.t + layout.margin.b;
  Object.assign(layout.yaxis, { showticklabels: false, ticks: "" });
  for (const axis of [layout.xaxis, layout.xaxis2, layout.yaxis]) {
    Object.assign(axis, { automargin: false, fixedrange: true });
    if (axis.title) Object.assign(axis.title, { standoff: 0, font: { size: 14, color: "rgba(0,0,0,0)" } });
  }
  data[0].showscale = false;
  still(layout);
};
const lensRows = (layout, names) => {
  const { t: top, b: bottom } = layout.margin;
  const height = (layout.height - top - bottom) / names.length;
  const at = (text, y, kind = "") => {
    const made = viz.el("span", kind, text);
    made.style.top = `${y}px`;
    return made;
  };
  const rows = names.map((name, row) => at(name, top + height * (names.length - row - 0.5)));
  if (layout.xaxis2.visible !== false) rows.push(at("came next", top - 14, "axis"));
  find(".lens-rows").replaceChildren(...rows, at("token read", layout.height - bottom + 16, "axis"));
};
const lensPager = () => {
  const { first, columns, total } = lens;
  find(".lens-pager").hidden = total <= columns;
  find(".earlier").disabled = first === 0;
  find(".later").disabled = first + columns >= total;
  find(".lens-range").textContent = `tokens ${first} to ${Math.min(total, first + columns) - 1} of ${total}`;
};
const turnLens = (first) => {
  lens.first = Math.max(0, first);
  refreshLens();
};
find(".earlier").addEventListener("click", () => turnLens(lens.first - lens.columns));
find(".later").addEventListener("click", () => turnLens(lens.first + lens.columns));
viz.on("query", (query) => {
  const place = query?.stack === viz.run?.stack ? query.index - viz.run.trace_start : -1;
  const outside = place < lens.first || place >= lens.first + lens.columns;
  if (place < 0 || place >= lens.total || !outside) return;
  turnLens(Math.floor(place / lens.columns) * lens.columns);
});
viz.on("run", () => Object.assign(lens, { first: 0, total: 0 }));

// ---- the tree of a beam search ----

const tree = find(".tree");
const searched = () => (viz.run?.hypotheses.length ?? 0) > 0;
const showTree = () => (find(".searched").hidden = !searched());
const drawTree = async (current) => {
  showTree();
  if (!searched()) return;
  const answer = await viz.ask(server.tree, { run: viz.run.run, dark: viz.dark });
  if (!current()) return;
  const width = JSON.parse(answer.figure).layout.width;
  const wide = ({ layout }) => {
    layout.width = Math.max(width, find(".tree-box").clientWidth);
    layout.height -= layout.margin.t - 40;
    layout.margin = { ...layout.margin, t: 40 };
  };
  await viz.draw(tree, answer.figure, { change: wide });
  tree.dataset.run = viz.run.run;
};

state.step = Math.max(0, stepOf(viz.query));
const refresh = viz.keepDrawn(root, ["run"], draw);
viz.keepDrawn(find(".surprise-box"), ["run"], drawSurprise);
const refreshLens = viz.keepDrawn(find(".lens-box"), ["run"], drawLens);
viz.keepDrawn(find(".tree-box"), ["run"], drawTree);
viz.link.part({ lens: "0" }, () => ({ lens: lens.first }), (given) => turnLens(viz.link.whole("lens", given.lens, 0, 4095)));
