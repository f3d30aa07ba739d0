// Patch: another text's activity put in at each layer and place, and what that does to one token.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".patching");
const [text, box, frame] = [find(".patch-text"), find("[data-picture=patching]"), find(".wide")];
// suggested: what was last put into the box, which the visitor may have replaced. asked: what the map
// that is shown was asked with; of: {model, text} of its run; answer: what the server said.
const state = { suggested: "", teaching: "", asked: null, of: null, answer: null };

const chosen = (group) => find(`.patch-${group} input:checked`).value;
const translates = () => viz.run.source_labels.length > 0;
const wants = () => ({
  stack: translates() ? chosen("stacks") : "decoder",
  part: chosen("parts"),
  kind: translates() && chosen("stacks") === "decoder" && chosen("parts") === "heads" ? chosen("kinds") : "self",
  target: chosen("targets"),
});

// ---- what can be chosen ----

const drawChoices = () => {
  root.dataset.generates = viz.generates();
  if (!viz.generates()) return;
  const { part } = wants();
  find(".patch-stacks").hidden = !translates();
  find(".patch-kinds").hidden = !translates() || chosen("stacks") !== "decoder" || part !== "heads";
};
const suggest = async (current) => {
  if (!viz.run || !viz.generates()) return;
  const { run } = viz.run;
  const { variant, teaching } = await viz.ask(server.other_text, { run, place: viz.chosenPlace() });
  if (!current()) return;
  if (text.value === state.suggested) text.value = variant ?? "";
  Object.assign(state, { suggested: variant ?? "", teaching });
  find(".patch-hint").textContent = variant
    ? "" : "No word of this text has a common counterpart: type another text, or try ours.";
  const place = viz.chosenPlace();
  find(".show-map").replaceChildren("Show what each patch changes", ...(place === null
    ? [] : [" for token ", `${place}, “`, viz.token(viz.run.labels[place]), "”"]));
  find(".try-pair").hidden = teaching === viz.run.text;
  find(".try-pair").textContent = `Try it with “${teaching}”`;
  await drawMap(current);
  Object.assign(root.dataset, { run });
};
find(".try-pair").addEventListener("click", async () => {
  text.value = state.suggested;
  await viz.useText(state.teaching);
  viz.alter([]);
});
root.addEventListener("change", (event) => {
  if (!event.target.matches("input")) return;
  drawChoices();
  if (state.asked) ask();
});

// ---- the map ----

const ask = () => {
  if (!text.value.trim()) return viz.say("A patch needs another text: type one first.");
  const place = viz.chosenPlace();
  state.asked = { run: viz.run.run, other: text.value, place, ...wants() };
  state.of = { model: viz.run.model, text: viz.run.text };
  state.answer = null;
  refresh();
};
find(".show-map").addEventListener("click", ask);
const stillFits = () => state.of && state.of.model === viz.run.model && state.of.text === viz.run.text;

const drawMap = async (current) => {
  if (!stillFits()) Object.assign(state, { asked: null, answer: null });
  find(".patch-found").hidden = !state.asked;
  if (!state.asked) return;
  const { asked } = state;
  if (state.answer?.dark !== viz.dark) {
    const answer = await viz.ask(server.patching, { ...asked, dark: viz.dark });
    if (!current()) return;
    state.answer = { ...answer, dark: viz.dark };
  }
  const { answer } = state;
  words(answer);
  await viz.draw(box, answer.figure, { change: look(JSON.parse(answer.figure).layout.width), on: LISTENERS });
  Object.assign(box.dataset, { run: asked.run, stack: asked.stack, part: asked.part, target: asked.target, place: answer.place });
};
const look = (width) => ({ data, layout }) => {
  data[0].colorbar.title.font = { size: 14 };
  const { l: left, r: right } = layout.margin;
  const room = [layout.xaxis2, layout.xaxis].map((axis) => viz.labelRoom(axis) + 30);
  const rows = layout.height - layout.margin.t - layout.margin.b;
  layout.margin = { l: left, r: right, t: room[0], b: room[1] };
  Object.assign(layout, { width, height: rows + room[0] + room[1], dragmode: false });
  for (const axis of [layout.xaxis, layout.xaxis2, layout.yaxis]) {
    Object.assign(axis, { automargin: false, fixedrange: true });
    Object.assign(axis.title, { standoff: 4, font: { size: 14 } });
  }
};
const probability = (log) => Math.exp(log).toPrecision(2);
const words = ({ place, stands, target, before, other, limit, lengths, altered }) => {
  find(".patch-title").replaceChildren(
    `Change of ln p(“`, viz.token(target), `”) as token ${place}, where “`, viz.token(stands), "” stands",
  );
  const [here, there] = lengths;
  const shifted = here === there ? "" :
    ` The texts have ${here} and ${there} tokens here: places are counted from the first, so beyond a word of another length they no longer mean the same.`;
  const intact = altered ? " The map is of the intact network." : "";
  find(".patch-says").textContent =
    `ln p is ${before.toFixed(2)} here (p = ${probability(before)}) and ${other.toFixed(2)} in the other run ` +
    `(p = ${probability(other)}). Orange: the patch makes the token likelier; blue: less likely. ` +
    `Colours from ${(-limit).toPrecision(3)} to ${limit.toPrecision(3)}.${shifted}${intact}`;
};

// ---- its cells ----

const last = () => state.answer && box.calcdata && {
  row: box.calcdata[0][0].z.length - 1, column: box.calcdata[0][0].z[0].length - 1,
};
const bands = viz.bands(root, box);
const point = (cell) => bands(cell?.row ?? null, cell?.column ?? null, last());
const inWords = ({ row, column }) => {
  const { meta } = box.layout;
  const change = box.calcdata[0][0].z[row][column];
  return `layer ${row}, place ${column} “${meta.column_labels[column]}”: ln p ${change < 0 ? "" : "+"}${change.toFixed(4)}`;
};
const apply = async ({ row, column }) => {
  if (column === null) return;
  const { stack, part, kind, other } = state.asked;
  const patch = { type: "patch", stack, layer: row, positions: [column], text: other, part };
  if (kind !== "self") patch.kind = kind;
  await viz.useText(viz.run.text); // the places are those of this text
  viz.alter([...viz.interventions().filter(({ type }) => type !== "patch"), patch]);
};
const LISTENERS = {
  plotly_click: ({ points }) => apply({ row: points[0].y, column: points[0].x }),
};
viz.cellCursor(box, {
  last,
  start: () => {
    const { z } = box.calcdata[0][0];
    const best = Math.max(...z.map((row) => Math.max(...row.map(Math.abs))));
    const row = z.findIndex((values) => values.some((value) => Math.abs(value) === best));
    return { row, column: [...z[row]].findIndex((value) => Math.abs(value) === best) };
  },
  move: (cell) => {
    point(cell);
    const { left, width } = viz.cells(box, cell.column, cell.column, cell.row, cell.row);
    if (left < frame.scrollLeft || left + width > frame.scrollLeft + frame.clientWidth) {
      frame.scrollLeft = left - frame.clientWidth / 2;
    }
    find(".patch-said").textContent = inWords(cell);
  },
  pin: apply,
  leave: () => point(null),
});

viz.on("run", () => {
  drawChoices();
  point(null);
});
find(".patch-stacks input").checked = true;
drawChoices();
const refresh = viz.keepDrawn(root, ["run", "query"], suggest);
