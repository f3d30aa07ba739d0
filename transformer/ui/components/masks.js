// Masks of a padded batch, what they do to the scores of one head, and what it is without one.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".masks");
const without = find(".removal");
const state = { row: 0, kind: 0, layer: 0, head: 0, removed: null };
const box = (name) => find(`[data-picture=${name}]`);
const square = (name) => ({
  fit: { side: { width: box(name).clientWidth, height: 460 } },
});

const draw = async (current) => {
  if (!viz.batch) return;
  const { batch, texts, kinds, stacks } = viz.batch;
  const { row, head } = state;
  const dark = viz.dark;
  const { stack, kind } = kinds[state.kind];
  const site = viz.siteName({ stack, layer: state.layer, kind });
  const height = 60 + 40 * texts.length;
  for (const [name, read] of [["padded", stacks[0]], ["padded-targets", stacks[1]]]) {
    if (!read) continue;
    const answer = await viz.ask(server.padded, { batch, stack: read, dark });
    if (!current()) return;
    await viz.draw(box(name), answer.figure, { height, change: fromOne(box(name)) });
  }
  for (const which of ["padding", "causal", "combined"]) {
    const answer = await viz.ask(server.mask, { batch, row, which, stack, kind, dark });
    if (!current()) return;
    await viz.draw(box(which), answer.figure, square(which));
  }
  for (const stage of ["scores", "masked", "weights"]) {
    const answer = await viz.ask(server.heatmap, { run: batch, site, head, stage, row, dark });
    if (!current()) return;
    await viz.draw(box(stage), answer.figure, square(stage));
  }
  Object.assign(root.dataset, { batch, row, site, head });
};

// ---- without one of the masks ----

const drawRemoval = async (current) => {
  if (!viz.batch) return;
  const { batch, kinds } = viz.batch;
  const { row, head, removed } = state;
  const { stack, kind } = kinds[state.kind];
  const site = viz.siteName({ stack, layer: state.layer, kind });
  const answer = await viz.ask(server.removal, { batch, row, site, head, which: removed, dark: viz.dark });
  if (!current()) return;
  drawRemoved(answer);
  find(".removal-says").textContent = answer.sentence;
  find(".removal-title").textContent = `Weights without the ${answer.which} mask`;
  for (const [name, show] of [["without", "weights"], ["changes", "difference"]]) {
    const side = { width: box(name).clientWidth, height: 460 };
    await viz.draw(box(name), answer.figures[show], { fit: { side, bar: true } });
    if (!current()) return;
  }
  const { which, share } = answer;
  Object.assign(without.dataset, { batch, row, site, head, which, share });
};
// Only the masks that act in the chosen attention can be taken away.
const drawRemoved = ({ acting, which }) => {
  const group = find(".removed");
  const made = acting.map((name) => {
    const [label, input] = [viz.el("label"), viz.el("input")];
    Object.assign(input, { type: "radio", name: "mask-removed", value: name, checked: name === which });
    input.addEventListener("change", () => {
      state.removed = name;
      redrawRemoval();
    });
    label.append(input, viz.el("span", "", `${name} mask`));
    return label;
  });
  const names = [...group.querySelectorAll("input")].map((input) => input.value);
  if (names.join() !== acting.join()) group.replaceChildren(group.firstElementChild, ...made);
  for (const input of group.querySelectorAll("input")) input.checked = input.value === which;
};

// ---- choices ----

// Sentences are counted from 1 on the page.
const fromOne = (picture) => ({ layout, data }) => {
  layout.margin = { l: 50, r: 8, t: 4, b: 54 };
  const length = layout.xaxis.range[1] + 0.5;
  if (picture.clientWidth / length < 66) delete data[0].texttemplate;
  layout.yaxis.ticktext = layout.yaxis.tickvals.map((place) => String(place + 1));
};

const NOTES = {
  "encoder self": "The encoder reads the source both ways: padding alone is hidden.",
  "decoder self": "The decoder reads its own text: padding and the future are hidden.",
  "decoder cross": "The decoder's queries read the encoder's tokens: padding of the source is hidden.",
};

const drawSentences = () => {
  const { texts, lengths, outputs } = viz.batch;
  find(".sentences").replaceChildren(...texts.map((text, row) => {
    const button = viz.el("button", "sentence");
    button.setAttribute("role", "radio");
    button.setAttribute("aria-checked", String(row === state.row));
    button.append(
      viz.el("b", "", `${row + 1} `), viz.el("bdi", "", text), viz.el("small", "", ` ${lengths[row]} tokens`),
    );
    if (outputs[row] !== undefined) button.append(viz.el("span", "output", outputs[row]));
    button.addEventListener("click", () => {
      state.row = row;
      drawSentences();
      redraw();
    });
    return button;
  }));
};

const fill = (select, labels, chosen) => viz.options(select, labels.map((label, value) => [value, label]), chosen);
const drawChoices = () => {
  const { kinds, n_heads: nHeads } = viz.batch;
  const count = (n) => Array.from({ length: n }, (_, place) => String(place));
  fill(find(".pick-kind"), kinds.map(({ stack, kind }) => `${stack} ${kind}`), state.kind);
  fill(find(".pick-layer"), count(kinds[state.kind].n_layers), state.layer);
  fill(find(".pick-head"), count(nHeads), state.head);
  const { stack, kind } = kinds[state.kind];
  find(".pick-kind").parentElement.hidden = kinds.length < 2;
  find(".kind-note").textContent = kinds.length < 2 ? "" : NOTES[`${stack} ${kind}`];
  find(".targets").hidden = viz.batch.stacks.length < 2;
};
for (const field of ["kind", "layer", "head"]) {
  find(`.pick-${field}`).addEventListener("change", (event) => {
    state[field] = Number(event.target.value);
    if (field === "kind") Object.assign(state, { layer: 0, removed: null });
    drawChoices();
    redraw();
  });
}

const take = () => {
  if (!props.value?.batch) return;
  Object.assign(state, { row: 0, kind: 0, layer: 0, head: 0, removed: null });
  viz.setBatch(props.value);
  drawSentences();
  drawChoices();
};
const refresh = viz.keepDrawn(root, ["batch"], draw);
const redrawRemoval = viz.keepDrawn(without, ["batch"], drawRemoval);
const redraw = () => {
  refresh();
  redrawRemoval();
};
take();
watch("value", take);
const siteNow = () => {
  const { stack, kind } = viz.batch.kinds[state.kind];
  return viz.siteName({ stack, layer: state.layer, kind });
};
const firstSite = () => `${viz.batch.kinds[0].stack}.0.${viz.batch.kinds[0].kind}`;
viz.link.part(
  { row: "0", mask_site: "", mask_head: "0", without: "" },
  () => viz.batch && {
    row: state.row, mask_site: siteNow() === firstSite() ? "" : siteNow(), mask_head: state.head,
    without: state.removed ?? "",
  },
  ({ row = "0", mask_site: site, mask_head: head = "0", without: which }) => {
    const { stack, kind, layer } = viz.link.site("mask_site", site ?? firstSite(), viz.batch);
    const index = viz.batch.kinds.findIndex((one) => one.stack === stack && one.kind === kind);
    Object.assign(state, {
      row: viz.link.whole("row", row, 0, viz.batch.texts.length - 1), kind: index, layer,
      head: viz.link.whole("mask_head", head, 0, viz.batch.n_heads - 1),
      removed: which === undefined ? null : viz.link.oneOf("without", which, ["causal", "padding"]),
    });
    drawSentences();
    drawChoices();
    redraw();
  },
);
