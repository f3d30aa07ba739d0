// The positional matrix, its curves, and how similar every two positions are.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".positions");
const input = find(".dimensions");
const state = { stack: 0, dimensions: [0, 1, 8, 32] };
const box = (name) => find(`[data-picture=${name}]`);

const draw = async (current) => {
  if (!viz.run) return;
  const { run, stacks, d_model: size } = viz.run;
  state.stack = Math.min(state.stack, stacks.length - 1);
  state.dimensions = state.dimensions.filter((dimension) => dimension < size);
  if (!state.dimensions.length) state.dimensions = [0];
  if (document.activeElement !== input) input.value = state.dimensions.join(", ");
  const stack = stacks[state.stack];
  find(".dimensions-note").textContent = `0 to ${size - 1}, at most 12 of them`;
  drawStacks();
  const common = { run, stack, dark: viz.dark };
  for (const which of ["matrix", "similarity", "curves"]) {
    const answer = await viz.ask(server.positions, {
      ...common, which, dimensions: which === "curves" ? state.dimensions : null,
    });
    if (!current()) return;
    const figure = await viz.draw(box(which), answer.figure, { height: heightOf(which), change: margins });
    if (!current()) return;
    find(".used").textContent = `${figure.layout.meta.used}`;
  }
  Object.assign(root.dataset, { run, stack, dimensions: state.dimensions.join(",") });
};

const heightOf = (which) =>
  which === "curves" ? 300 : Math.min(460, Math.round(box(which).clientWidth * 0.95));
const margins = ({ layout }) => {
  layout.margin = { l: 64, r: 16, t: 8, b: 56 };
  if (layout.showlegend) Object.assign(layout.margin, { t: 36 });
  if (layout.legend) layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
};

const drawStacks = () => {
  const stacks = viz.run.stacks;
  const group = find(".stacks");
  group.hidden = stacks.length < 2;
  group.replaceChildren(...stacks.map((stack, index) => {
    const button = viz.el("button", "kind", stack);
    button.type = "button";
    button.setAttribute("role", "radio");
    button.setAttribute("aria-checked", String(index === state.stack));
    button.addEventListener("click", () => {
      state.stack = index;
      refresh();
    });
    return button;
  }));
};

input.addEventListener("change", () => {
  const parts = input.value.split(/[\s,;]+/).filter(Boolean);
  const numbers = parts.map(Number);
  const size = viz.run.d_model;
  const fine = numbers.length >= 1 && numbers.length <= 12 && new Set(numbers).size === numbers.length
    && numbers.every((n) => Number.isInteger(n) && n >= 0 && n < size);
  if (!fine) {
    viz.say(`dimensions must be 1 to 12 different whole numbers from 0 to ${size - 1}`);
    return;
  }
  state.dimensions = numbers;
  refresh();
});

const refresh = viz.keepDrawn(root, ["run"], draw);
