// The mask of an attention, to be edited cell by cell and run again with.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".maskedit");
const canvas = find(".board");
// layer: "*" for every layer. edits: by "stack.layer.kind". used: what the shown run's attention used.
const state = { kind: 0, layer: "*", edits: new Map(), used: null, size: null, at: null };

const kind = () => viz.run.kinds[state.kind];
const nameOf = (layer) => [kind().stack, layer, kind().kind].join(".");
const editsAt = (layer) => {
  const name = nameOf(layer);
  if (!state.edits.has(name)) state.edits.set(name, viz.noEdits());
  return state.edits.get(name);
};
const own = () => editsAt(state.layer);
const isCausal = () => kind().stack === "decoder" && kind().kind === "self";

// ---- what the mask is and will be ----

// Those of every layer come before a layer's own, in the network as here.
const acting = () => (state.layer === "*" ? [own()] : [editsAt("*"), own()]);
const natural = (query, key) =>
  !isCausal() || key <= query || acting().some(({ without }) => without.has("causal"));
const before = (query, key) => {
  const said = state.layer === "*" ? null : viz.editOf(editsAt("*"), query, key);
  return said === null ? natural(query, key) : said === "allow";
};
const edit = (query, key) => viz.editOf(own(), query, key) ?? (state.layer === "*" ? null : viz.editOf(editsAt("*"), query, key));
const planned = (query, key) => {
  const said = viz.editOf(own(), query, key);
  return said === null ? before(query, key) : said === "allow";
};
const ofRun = () => viz.interventions().filter(({ type }) => type === "mask");
const wanted = () => [...state.edits]
  .filter(([, edits]) => viz.isEdited(edits))
  .sort(([a], [b]) => a.localeCompare(b)) // "*" comes before the numbers
  .map(([name, edits]) => {
    const [stack, layer, sort] = name.split(".");
    return viz.maskOf({ stack, kind: sort, layer: layer === "*" ? null : Number(layer) }, edits);
  });
const plainOfRun = () => ofRun().map(({ stack, kind: sort = "self", layer = null, ...edits }) =>
  viz.maskOf({ stack, kind: sort, layer }, viz.editsOf(edits)));
const isApplied = () => JSON.stringify(wanted()) === JSON.stringify(plainOfRun());

// ---- the board ----

const labels = () => ({ queries: state.used.query_labels, keys: state.used.key_labels });
const counts = () => ({ queries: labels().queries.length, keys: labels().keys.length });
const usedBit = (query, key) => {
  const at = query * counts().keys + key;
  return Boolean((state.used.bits[at >> 3] >> (7 - (at & 7))) & 1);
};
const lineEdit = (line) => (own().forbid.has(line) ? "forbid" : own().allow.has(line) ? "allow" : null);
const drawBoard = () => {
  const applied = isApplied();
  // "Every layer" shows the first one's mask, which edits of that layer alone may change.
  const own0 = state.layer === "*" && state.edits.has(nameOf("0")) && viz.isEdited(editsAt("0"));
  const allowed = applied && !own0 ? usedBit : planned;
  const width = find(".board-box").clientWidth;
  state.size = viz.boardSize(canvas, labels(), width);
  const count = viz.drawBoard(canvas, labels(), state.size, { allowed, edit, lineEdit });
  const where = `${kind().stack} ${kind().kind}-attention, ${state.layer === "*" ? "every layer" : `layer ${state.layer}`}`;
  canvas.setAttribute("aria-label", `Mask of ${where}: ${counts().queries} queries by ${counts().keys} keys`);
  find(".mask-says").textContent = applied
    ? `${where}: ${count} of ${counts().queries * counts().keys} cells allowed; the mask that the shown run used.`
    : `${where}: ${count} cells would be allowed; not yet applied.`;
  find(".apply").disabled = applied;
  find(".clear").disabled = !viz.isEdited(own());
  Object.assign(root.dataset, { allowed: count, applied });
  showCursor();
};

const words = ({ query, key }) => {
  const sides = labels();
  const lines = { forbid: "forbidden by you", allow: "all allowed by you" };
  const token = (list, place) => `${place} ${list[place]}`;
  if (key < 0) return `Row of query ${token(sides.queries, query)}: ${lines[lineEdit(`${query},*`)] ?? "not edited as a whole"}`;
  if (query < 0) return `Column of key ${token(sides.keys, key)}: ${lines[lineEdit(`*,${key}`)] ?? "not edited as a whole"}`;
  const byYou = edit(query, key) ? " by you" : "";
  const hidden = byYou ? "forbidden" : "hidden by the causal mask";
  const how = planned(query, key) ? "allowed" : hidden;
  return `Query ${token(sides.queries, query)}, key ${token(sides.keys, key)}: ${how}${byYou}`;
};
const showCursor = () => {
  const cursor = find(".board-cursor");
  const { at, size } = state;
  cursor.hidden = !at;
  find(".board-cell").textContent = at ? words(at) : "";
  if (!at) return;
  const { cell, left, top } = size;
  const [x, width] = at.key < 0 ? [0, left] : [left + at.key * cell, cell];
  const [y, height] = at.query < 0 ? [0, top] : [top + at.query * cell, cell];
  for (const [name, value] of Object.entries({ left: x, top: y, width, height })) cursor.style[name] = `${value}px`;
};
const change = ({ query, key }) => {
  if (key < 0) viz.editLine(own(), `${query},*`);
  else if (query < 0) viz.editLine(own(), `*,${key}`);
  else viz.editCell(own(), query, key, before(query, key), counts());
  edited();
  find(".board-said").textContent = words({ query, key });
};

const under = (event) => (state.size ? viz.boardCell(canvas, state.size, labels(), event) : null);
canvas.addEventListener("click", (event) => {
  const cell = under(event);
  if (!cell) return;
  state.at = cell;
  change(cell);
});
canvas.addEventListener("pointermove", (event) => {
  state.at = under(event);
  showCursor();
});
const leave = () => {
  state.at = null;
  if (state.size) showCursor();
};
canvas.addEventListener("pointerleave", leave);
canvas.addEventListener("blur", leave);
canvas.addEventListener("focus", () => {
  if (state.size && canvas.matches(":focus-visible")) go(state.at ?? { query: 0, key: 0 });
});
const go = (cell) => {
  state.at = cell;
  showCursor();
  find(".board-cursor").scrollIntoView({ block: "nearest", inline: "nearest" });
  find(".board-said").textContent = words(cell);
};
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const moved = (key, at) => {
  const { queries, keys } = counts();
  const clamp = (value, last) => Math.min(last, Math.max(-1, value));
  if (key === "Home") return { ...at, key: at.query < 0 ? 0 : -1 };
  if (key === "End") return { ...at, key: keys - 1 };
  if (!(key in MOVES)) return null;
  const to = { query: clamp(at.query + MOVES[key][0], queries - 1), key: clamp(at.key + MOVES[key][1], keys - 1) };
  return to.query < 0 && to.key < 0 ? at : to;
};
canvas.addEventListener("keydown", (event) => {
  if (!state.size || event.ctrlKey || event.altKey || event.metaKey) return;
  const at = state.at ?? { query: 0, key: 0 };
  if (event.key === "Enter" || event.key === " ") {
    state.at = at;
    change(at);
  } else {
    const to = moved(event.key, at);
    if (!to) return;
    go(to);
  }
  event.preventDefault();
});

// ---- choices ----

const NOTES = {
  causal: "Without the causal mask a token reads what comes after it, so the rows of earlier tokens change " +
    "as the text grows: the pictures are of the finished text, each step saw a shorter one. ",
  padding: "Without the padding mask, filler would be read; it changes something only where there is padding, " +
    "and one text alone has none (several read together have: see the Masks tab). ",
  row: "A row with nothing allowed reads all keys alike. ",
  slid: "The text is longer than what the network reads at once: the rows and columns are those of the last window. ",
};
const drawNotes = () => {
  const { keys } = counts();
  const all = Array.from({ length: keys }, (_, key) => key);
  const empty = labels().queries.some((_, query) => all.every((key) => !planned(query, key)));
  const removed = (mask) => acting().some(({ without }) => without.has(mask));
  const shown = [
    [viz.run.trace_start > 0, NOTES.slid], [isCausal() && removed("causal"), NOTES.causal],
    [removed("padding"), NOTES.padding], [empty, NOTES.row],
  ];
  find(".mask-note").textContent = shown.filter(([holds]) => holds).map(([, text]) => text).join("");
};
const edited = () => {
  drawBoard();
  drawNotes();
  drawBoxes();
};
const drawBoxes = () => {
  find(".causal-box").hidden = !isCausal();
  find(".no-causal").checked = own().without.has("causal");
  find(".no-padding").checked = own().without.has("padding");
};
for (const mask of ["causal", "padding"]) {
  find(`.no-${mask}`).addEventListener("change", ({ target }) => {
    if (target.checked) own().without.add(mask);
    else own().without.delete(mask);
    edited();
  });
}
const drawLayers = () => {
  const layers = ["*", ...Array.from({ length: kind().n_layers }, (_, layer) => String(layer))];
  viz.options(find(".edit-layer"), layers.map((layer) => [layer, layer === "*" ? "all" : layer]), state.layer);
};
find(".edit-layer").addEventListener("change", ({ target }) => {
  state.layer = target.value;
  refresh();
});
find(".apply").addEventListener("click", () =>
  viz.alter([...viz.interventions().filter(({ type }) => type !== "mask"), ...wanted()]));
find(".clear").addEventListener("click", () => {
  state.edits.delete(nameOf(state.layer));
  edited();
});

const take = () => {
  if (!viz.run.kinds[state.kind]) state.kind = 0;
  if (Number(state.layer) >= kind().n_layers) state.layer = "*";
  state.edits = new Map(ofRun().map(({ stack, kind: sort = "self", layer = null, ...edits }) =>
    [[stack, layer ?? "*", sort].join("."), viz.editsOf(edits)]));
  Object.assign(state, { used: null, at: null });
};
const draw = async (current) => {
  if (!viz.run) return;
  root.dataset.generates = viz.generates();
  viz.kindButtons(find(".kinds"), state.kind, ({ stack, kind: sort }) => {
    state.kind = viz.run.kinds.findIndex((one) => one.stack === stack && one.kind === sort);
    Object.assign(state, { layer: "*", at: null });
    refresh();
  });
  drawLayers();
  const { run } = viz.run;
  const site = nameOf(state.layer === "*" ? 0 : state.layer);
  const used = await viz.ask(server.used_mask, { run, site });
  if (!current()) return;
  state.used = { ...used, bits: viz.bytes(used.allowed) };
  edited();
  Object.assign(root.dataset, { run, site: nameOf(state.layer) });
};
if (viz.run) take();
viz.on("run", take);
const refresh = viz.keepDrawn(root, ["run"], draw);
