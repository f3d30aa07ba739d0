// The positional matrix, what it is added to, the formula beside it, and how a position moves.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".positions");
const input = find(".dimensions");
const inputs = find(".position-inputs");
const formula = find(".position-formula");
const moved = find(".position-shift");
const steps = find(".steps-k");
const NARROW_PX = 640;
const state = { stack: 0, dimensions: [0, 1, 8, 32], k: 1 };
const { tiny } = viz;
const box = (name) => find(`[data-picture=${name}]`);

const chosenStack = () => {
  const { stacks } = viz.run;
  state.stack = Math.min(state.stack, stacks.length - 1);
  return stacks[state.stack];
};
const common = () => ({ run: viz.run.run, stack: chosenStack(), dark: viz.dark });

const draw = async (current) => {
  if (!viz.run) return;
  const { run, d_model: size } = viz.run;
  state.dimensions = state.dimensions.filter((dimension) => dimension < size);
  if (!state.dimensions.length) state.dimensions = [0];
  if (document.activeElement !== input) input.value = state.dimensions.join(", ");
  const { stack } = common();
  find(".dimensions-note").textContent = `0 to ${size - 1}, at most 12 of them`;
  drawStacks();
  for (const which of ["matrix", "similarity", "curves"]) {
    const answer = await viz.ask(server.positions, {
      ...common(), which, dimensions: which === "curves" ? state.dimensions : null,
    });
    if (!current()) return;
    const figure = await viz.draw(box(which), answer.figure, { height: heightOf(which), change: margins });
    if (!current()) return;
    find(".used").textContent = `${figure.layout.meta.used}`;
  }
  Object.assign(root.dataset, { run, stack, dimensions: state.dimensions.join(",") });
};

const heightOf = (which) =>
  which === "curves" || which === "token" ? 300 : Math.min(460, Math.round(box(which).clientWidth * 0.95));
const margins = ({ layout }) => {
  layout.margin = { l: 64, r: 16, t: 8, b: 56 };
  if (layout.showlegend) Object.assign(layout.margin, { t: 36 });
  if (layout.legend) layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
};

// ---- token + position = input ----

const drawInputs = async (current) => {
  await Promise.resolve(); // a new run also lets go of the token: one draw for both
  if (!current() || !viz.run) return;
  const { stack } = common();
  const answer = await viz.ask(server.inputs, { ...common(), place: viz.chosenRow(stack) });
  if (!current()) return;
  const { token, position, sum } = answer.lengths;
  const added = `The vectors' mean lengths: tokens ${token.toFixed(2)}, positions ${position.toFixed(2)}, `
    + `their sums ${sum.toFixed(2)}. One scale of colours for all three; 0.5 % of the numbers lie beyond its ends. `;
  find(".input-lengths").textContent = added + (answer.normed
    ? "This model norms each sum before its first layer reads it; the sums are shown before that."
    : `The sum is what the first layer reads (largest difference to the recorded input: ${tiny(answer.difference)}).`);
  await viz.draw(box("strips"), answer.strips, { change: stacked, numbers: sums });
  if (!current()) return;
  find(".input-title").replaceChildren(
    `One of them: token ${answer.place} `, viz.token(answer.label), " (choose another in the text)",
  );
  await viz.draw(box("token"), answer.token, { height: heightOf("token"), change: margins });
  Object.assign(inputs.dataset, { run: viz.run.run, stack, place: answer.place });
};
const exact = (value) => value.toFixed(4);

// In the table, each cell tells the sum's two parts.
const sums = (row, column) => {
  const [token, position, sum] = box("strips")._fullData.map(({ z }) => z[row][column]);
  return `${exact(token)} + ${exact(position)} = ${exact(sum)}`;
};
// Titles are the page's own; on a phone the three strips stand one below the other.
const stacked = ({ layout, data }) => {
  for (const axis of [layout.xaxis2, layout.xaxis3]) axis.title.font = { size: 14 };
  layout.height -= layout.margin.t - 30;
  layout.margin.t = 30;
  if (box("strips").clientWidth >= NARROW_PX) return;
  const strip = layout.height - layout.margin.t - layout.margin.b;
  const step = strip + layout.margin.b + layout.margin.t;
  layout.height = 3 * step;
  layout.margin = { ...layout.margin, l: 90, r: 8 };
  const inner = 2 * step + strip;
  layout.annotations.forEach((heading, place) => {
    const top = 1 - (place * step) / inner;
    const suffix = place ? String(place + 1) : "";
    Object.assign(heading, { x: 0, y: top, text: heading.text.split(",")[0] });
    layout[`xaxis${suffix}`].domain = [0, 1];
    layout[`xaxis${suffix}`].anchor = `y${suffix}`;
    layout[`yaxis${suffix}`] = { ...layout.yaxis, anchor: `x${suffix}`, domain: [Math.max(0, top - strip / inner), top] };
    Object.assign(data[place], { yaxis: `y${suffix}`, showscale: false });
  });
};

// ---- the formula beside the model's own ----

const drawFormula = async (current) => {
  if (!viz.run) return;
  for (const which of ["matrix", "similarity"]) {
    const answer = await viz.ask(server.positions, { ...common(), which, formula: true });
    if (!current()) return;
    find(".compared").hidden = answer.figure === null;
    if (answer.figure === null) {
      find(".formula-says").textContent = "It needs an even number of dimensions, and this model has an odd one.";
      return;
    }
    const own = answer.positions === "sinusoidal";
    find(".formula-use").textContent = own ? "which this model uses" : "not used by this model";
    find(".formula-says").textContent = own
      ? `This model's matrix is the formula itself: largest difference ${tiny(answer.difference)}.`
      : `This model learned its positions instead; compare both matrices (largest difference ${answer.difference.toFixed(2)}).`;
    const name = `formula-${which}`;
    await viz.draw(box(name), answer.figure, { height: heightOf(name), change: margins });
    if (!current()) return;
    Object.assign(formula.dataset, { own, difference: answer.difference });
  }
};

// ---- PE(pos + k) from PE(pos) ----

const drawShift = async (current) => {
  if (!viz.run) return;
  const shown = Number(find(".steps-shown").value) || null;
  const answer = await viz.ask(server.shift, { ...common(), k: state.k, shown });
  if (!current()) return;
  box("shift").hidden = answer.figure === null;
  steps.max = answer.largest;
  steps.disabled = answer.largest < 1;
  find(".shift-says").textContent = shiftSays(answer);
  if (answer.figure) {
    await viz.draw(box("shift"), answer.figure, { height: heightOf("shift"), change: margins });
  }
  Object.assign(moved.dataset, { k: state.k, miss: answer.largest_miss, relative: answer.relative_miss });
};
const shiftSays = ({ figure, fitted, k, n_pairs: pairs, largest_miss: miss, relative_miss: relative, chance }) => {
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const asks = `Is there one matrix that takes the vector of any position to that of the position ${k ?? "k"} further on? `;
  if (figure === null) {
    return asks + "These positions are learned, and there are no more of them than dimensions: a matrix that moves "
      + "each by k would fit anything, so none is shown.";
  }
  if (!fitted) {
    return asks + `Yes: it turns each pair of dimensions, a sine and a cosine, by an angle of its own. `
      + `Tried on all ${pairs} pairs of positions of this model's matrix, it misses by at most ${tiny(miss)}.`;
  }
  return asks + `Learned positions promise none. The best one (least squares over ${pairs} pairs of positions) `
    + `misses by ${percent(relative)} of the vectors' size; fitted to random numbers it would miss by about ${percent(chance)}.`;
};

let model = "";
viz.on("run", () => {
  const next = `${viz.run.d_model} ${viz.run.stacks}`;
  if (next !== model) state.k = steps.value = 1; // another model may know fewer positions
  model = next;
});
steps.addEventListener("change", () => {
  const [k, most] = [Number(steps.value), Number(steps.max)];
  if (!Number.isInteger(k) || k < 1 || k > most) {
    viz.say(`k must be a whole number from 1 to ${most}; got ${steps.value || "nothing"}`);
    return;
  }
  state.k = k;
  refreshShift();
});
find(".steps-shown").addEventListener("change", () => refreshShift());

// ---- choices ----

const drawStacks = () => {
  const stacks = viz.run.stacks;
  const group = find(".stacks");
  group.hidden = stacks.length < 2;
  group.replaceChildren(...stacks.map((stack, index) => {
    const button = viz.el("button", "kind", stack);
    button.setAttribute("role", "radio");
    button.setAttribute("aria-checked", String(index === state.stack));
    button.addEventListener("click", () => {
      state.stack = index;
      for (const again of [refresh, refreshInputs, refreshFormula, refreshShift]) again();
    });
    return button;
  }));
};

const dimensionsOf = (text) => {
  const numbers = text.split(/[\s,;]+/).filter(Boolean).map(Number);
  const size = viz.run.d_model;
  const fine = numbers.length >= 1 && numbers.length <= 12 && new Set(numbers).size === numbers.length
    && numbers.every((n) => Number.isInteger(n) && n >= 0 && n < size);
  if (!fine) throw new Error(`dimensions must be 1 to 12 different whole numbers from 0 to ${size - 1}; got ${text.trim().slice(0, 40) || "nothing"}`);
  return numbers;
};
input.addEventListener("change", () => {
  try {
    state.dimensions = dimensionsOf(input.value);
    refresh();
  } catch (error) {
    viz.say(error.message);
  }
});

const refresh = viz.keepDrawn(root, ["run"], draw);
const refreshInputs = viz.keepDrawn(inputs, ["run", "query"], drawInputs);
const refreshFormula = viz.keepDrawn(formula, ["run"], drawFormula);
const refreshShift = viz.keepDrawn(moved, ["run"], drawShift);

viz.link.part(
  { stack: "0", dimensions: state.dimensions.join(), steps: "1", shown: find(".steps-shown").value },
  () => ({ stack: state.stack, dimensions: state.dimensions.join(), steps: state.k, shown: find(".steps-shown").value }),
  ({ stack = "0", dimensions, steps: k = "1", shown = find(".steps-shown").value }) => {
    state.stack = viz.link.whole("stack", stack, 0, viz.run.stacks.length - 1);
    if (dimensions !== undefined) state.dimensions = dimensionsOf(dimensions);
    state.k = steps.value = viz.link.whole("steps", k, 1, 4096);
    find(".steps-shown").value = viz.link.oneOf("shown", shown, [...find(".steps-shown").options].map((one) => one.value));
    for (const again of [refresh, refreshInputs, refreshFormula, refreshShift]) again();
  },
);
