// Heads to silence, as a grid of switches; and what each head alone matters for one token.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".silence");
const grid = find(".silence-grid");
const box = find("[data-picture=importance]");
const NUMBER_PX = 46; // room for a signed number in a cell of the map
// chosen: names of heads of every kind. place: of the token that the map is of, null without one.
const state = { kind: 0, by: "zero", chosen: new Set(), place: null, strips: null };

const kind = () => viz.run.kinds[state.kind];
const nameOf = ({ stack, kind: sort, layer, head }) => [stack, layer, sort, head].join(".");
const headAt = (layer, head) => ({ stack: kind().stack, kind: kind().kind, layer, head });

// ---- the switches ----

const buttons = () => [...grid.querySelectorAll("button")];
const toggle = (head) => {
  const name = nameOf(head);
  if (!state.chosen.delete(name)) state.chosen.add(name);
  mark();
};
const makeButton = (layer, head) => {
  const button = viz.el("button", "silenced");
  button.setAttribute("aria-label", `Silence layer ${layer}, head ${head}`);
  button.append(viz.el("span", "", head), viz.el("i"));
  button.addEventListener("click", () => {
    viz.rove(buttons(), buttons().indexOf(button));
    toggle(headAt(layer, head));
  });
  Object.assign(button.dataset, { layer, head });
  return button;
};
const drawGrid = () => {
  const [layers, heads] = [kind().n_layers, viz.run.n_heads];
  if (Number(grid.dataset.layers) !== layers || Number(grid.dataset.heads) !== heads) {
    Object.assign(grid.dataset, { layers, heads });
    grid.style.setProperty("--heads", heads);
    const parts = [];
    for (let layer = 0; layer < layers; layer += 1) {
      parts.push(viz.el("span", "number", layer));
      for (let head = 0; head < heads; head += 1) parts.push(makeButton(layer, head));
    }
    grid.replaceChildren(...parts);
    viz.rove(buttons(), 0);
  }
  mark();
};
const mark = () => {
  for (const button of buttons()) {
    const [layer, head] = [Number(button.dataset.layer), Number(button.dataset.head)];
    button.setAttribute("aria-pressed", String(state.chosen.has(nameOf(headAt(layer, head)))));
    button.lastElementChild.style.background = state.strips?.[layer][head] ?? "";
  }
  const count = (number) => (number === 1 ? "1 head" : `${number} heads`);
  const silent = silentNames().size;
  const pending = state.chosen.size !== silent || [...state.chosen].some((name) => !silentNames().has(name));
  find(".silence-says").textContent = pending
    ? `${count(state.chosen.size)} chosen, not yet applied; ${count(silent)} silent in the shown run.`
    : `${count(silent)} silent in the shown run.`;
  find(".apply").textContent = state.chosen.size || !silent ? "Silence the chosen heads" : "Let all heads speak";
  find(".apply").disabled = !state.chosen.size && !silent;
};
const MOVES = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
grid.addEventListener("keydown", (event) => {
  const at = event.target.closest("button")?.dataset;
  if (!at || !(event.key in MOVES)) return;
  event.preventDefault();
  const [down, right] = MOVES[event.key];
  const [layer, head] = [Number(at.layer) + down, Number(at.head) + right];
  const to = buttons().findIndex((one) => Number(one.dataset.layer) === layer && Number(one.dataset.head) === head);
  if (to < 0) return;
  viz.rove(buttons(), to);
  buttons()[to].focus();
});

// ---- from and to interventions ----

const silences = () => viz.interventions().filter(({ type }) => type === "silence");
const silentNames = () => new Set(silences().flatMap(({ stack, kind: sort = "self", layer, heads }) =>
  heads.map((head) => nameOf({ stack, kind: sort, layer, head }))));
const wanted = () => {
  const sites = new Map();
  for (const name of [...state.chosen].sort()) {
    const [stack, layer, sort, head] = name.split(".");
    const site = [stack, layer, sort].join(".");
    if (!sites.has(site)) sites.set(site, { stack, kind: sort, layer: Number(layer), heads: [] });
    sites.get(site).heads.push(Number(head));
  }
  return [...sites.values()].map((site) => viz.silence(site, site.heads.sort((a, b) => a - b), state.by));
};
const others = () => viz.interventions().filter(({ type }) => type !== "silence");
find(".apply").addEventListener("click", () => viz.alter([...others(), ...wanted()]));
find(".none").addEventListener("click", () => {
  state.chosen.clear();
  mark();
});

// ---- what each head matters ----

// A colour of Plotly's scale [[place, "#rrggbb"], ...] for a share from 0 to 1.
const colourAt = (scale, share) => {
  const at = share * (scale.length - 1);
  const low = Math.min(Math.floor(at), scale.length - 2);
  const part = (place, channel) => parseInt(scale[place][1].slice(1 + 2 * channel, 3 + 2 * channel), 16);
  const mix = (channel) => Math.round(part(low, channel) + (at - low) * (part(low + 1, channel) - part(low, channel)));
  return `rgb(${mix(0)}, ${mix(1)}, ${mix(2)})`;
};
const drawMatter = async (current) => {
  const { stack, kind: sort } = kind();
  const { place, by } = state;
  const asked = { run: viz.run.run, place, stack, kind: sort, by, dark: viz.dark };
  const answer = await viz.ask(server.importance, asked);
  if (!current()) return;
  const { change, limit, label } = answer;
  find(".matter-box").hidden = false;
  find(".matter-title").replaceChildren(
    `Change of ln p of token ${place}, “`, viz.token(label), "”, when a head alone is silenced");
  const how = by === "mean" ? "replaced by its mean" : "set to zero";
  find(".matter-says").textContent =
    `With all heads the intact network gives it p = ${Math.exp(answer.log_probability).toFixed(4)}. ` +
    `One head at a time is ${how}: blue, the token becomes less likely (the head helped it); orange, likelier. ` +
    `Colours from ${(-limit).toPrecision(3)} to ${limit.toPrecision(3)}. A click on a cell chooses its head.`;
  const figure = await viz.drawHeadMap(box, answer.figure, change.length, NUMBER_PX, {
    plotly_click: ({ points }) => toggle(headAt(points[0].y, points[0].x)),
  });
  const { colorscale } = figure.data[0];
  state.strips = change.map((row) => row.map((value) => colourAt(colorscale, (value / limit + 1) / 2)));
  mark();
  Object.assign(root.dataset, { matter: `${place} ${by}` });
};
find(".matter").addEventListener("click", () => {
  state.place = viz.lookedAt();
  refresh();
});
const drawQuestion = () => {
  if (!viz.run) return;
  const place = viz.lookedAt();
  find(".matter").replaceChildren("What does each head matter for “", viz.token(viz.run.labels[place]), `”, token ${place}?`);
};

// ---- choices ----

const drawKinds = () => viz.kindButtons(find(".kinds"), state.kind, ({ stack, kind: sort }) => {
  state.kind = viz.run.kinds.findIndex((one) => one.stack === stack && one.kind === sort);
  state.strips = null;
  refresh();
});
for (const input of element.querySelectorAll(".silenced-by input")) {
  input.addEventListener("change", () => {
    state.by = input.value;
    refresh();
  });
}
const take = () => {
  const by = silences()[0]?.by ?? state.by;
  Object.assign(state, { by, chosen: silentNames(), place: null, strips: null });
  if (!viz.run.kinds[state.kind]) state.kind = 0;
  find(`.silenced-by input[value=${by}]`).checked = true;
};
const draw = async (current) => {
  if (!viz.run) return;
  root.dataset.generates = viz.generates();
  drawKinds();
  drawGrid();
  drawQuestion();
  find(".matter-box").hidden = state.place === null;
  if (state.place !== null) await drawMatter(current);
  if (current()) root.dataset.run = viz.run.run;
};
if (viz.run) take();
viz.on("run", take);
viz.on("query", drawQuestion);
const refresh = viz.keepDrawn(root, ["run"], draw);
