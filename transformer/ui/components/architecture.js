// The network as a drawing, and its blocks as a list of buttons: each leads to its view.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".architecture");
const drawing = find(".architecture-drawing");
const box = find("[data-picture=architecture]");
const HINT = "Point at a block to read what it does; press it to open its view.";
const SPARE_PX = 290; // what the list needs beside the drawing
const state = { blocks: [], leads: {}, margin: null, height: 0 };

const draw = async (current) => {
  if (!viz.run) return;
  const { run } = viz.run;
  const answer = await viz.ask(server.architecture, { run, dark: viz.dark });
  if (!current()) return;
  const { layout } = JSON.parse(answer.figure);
  Object.assign(state, { blocks: layout.meta.blocks, leads: answer.leads, height: layout.meta.height });
  words(layout);
  if (root.dataset.run !== run) list();
  const room = root.clientWidth;
  drawing.hidden = layout.width > room;
  root.classList.toggle("beside", layout.width + SPARE_PX <= room);
  if (!drawing.hidden) await picture(answer.figure);
  Object.assign(root.dataset, { run, blocks: state.blocks.length });
};

const picture = async (json) => {
  const change = ({ layout }) => {
    layout.margin = state.margin = { ...layout.margin, t: 4 };
    layout.width = layout.meta.width + layout.margin.l + layout.margin.r;
    layout.height = layout.meta.height + layout.margin.t + layout.margin.b;
  };
  const on = {
    plotly_hover: ({ points }) => show(blockOf(points[0].customdata)),
    plotly_unhover: () => show(null),
    plotly_click: ({ points }) => open(blockOf(points[0].customdata)),
  };
  await viz.draw(box, json, { change, on, table: false }); // the list beside it is its table
  box.setAttribute("aria-label", `Drawing of the network: ${state.blocks.map((b) => b.title).join(", ")}`);
};
const blockOf = (name) => state.blocks.find((block) => block.name === name);

// ---- words ----

const whole = (count) => count.toLocaleString("en-US");
const words = ({ title, meta }) => {
  find(".architecture-title").textContent = `${title.text}, ${whole(meta.n_parameters)} parameters`;
  const { labels, trace_start: start, source_labels: source } = viz.run;
  const count = labels.length - start;
  find(".architecture-letters").textContent = source.length
    ? `S and T: tokens of the source and of the translation (${source.length} and ${count} in this run).`
    : `T: tokens of the text (${count} in this run).`;
};
const parameters = ({ each, times, shared_with: owner }) => {
  if (!each && owner) return `0 of its own, shared with ${blockOf(owner).title.toLowerCase()}`;
  return times > 1 ? `${whole(each)} × ${times} parameters` : `${whole(each)} parameters`;
};

// Tell what a block is, and mark it in drawing and list; null lets go.
const show = (block) => {
  for (const button of element.querySelectorAll(".part")) {
    button.classList.toggle("is-here", button.dataset.block === block?.name);
  }
  const here = find(".here");
  here.hidden = !block || drawing.hidden;
  if (block && state.margin) {
    const at = {
      left: state.margin.l + block.x, top: state.margin.t + state.height - block.y - block.height,
      width: block.width, height: block.height,
    };
    for (const [key, value] of Object.entries(at)) here.style[key] = `${value}px`;
  }
  const says = find(".architecture-says");
  if (!block) {
    says.textContent = HINT;
    return;
  }
  const tab = state.leads[block.kind];
  says.replaceChildren(
    viz.el("b", "", block.title), ` ${block.shape}, ${parameters(block)}. ${block.does}`,
    tab ? ` Press to open ${tab}.` : "",
  );
};

// ---- the list ----

const list = () => {
  const made = [];
  let group = null;
  let stack = null;
  for (const block of state.blocks) {
    const where = block.times > 1 || isInside(block) ? `in each of ${block.times} layers` : "";
    if (block.stack !== stack || where !== group) {
      const name = block.stack !== stack ? [heading(block.stack)] : [];
      if (where) name.push(where);
      else if (!name.length) name.push("after the layers");
      made.push(viz.el("h4", "", heading(name.join(", "))), viz.el("ul", "parts"));
    }
    [stack, group] = [block.stack, where];
    const item = viz.el("li");
    item.append(buttonOf(block));
    made[made.length - 1].append(item);
  }
  find(".architecture-list").replaceChildren(...made);
  show(null);
};
const isInside = ({ kind }) => ["self", "cross", "feed_forward", "norm"].includes(kind);
const heading = (stack) => `${stack[0].toUpperCase()}${stack.slice(1)}`;
const buttonOf = (block) => {
  const button = viz.el("button", "part");
  button.dataset.block = block.name;
  const tab = state.leads[block.kind];
  const facts = viz.el("span", "facts", `${block.shape} · ${parameters(block)}`);
  button.append(viz.el("b", "", block.title), facts, viz.el("span", "goes", tab ? `${tab} ›` : ""));
  button.addEventListener("click", () => open(block));
  button.addEventListener("focus", () => show(block));
  button.addEventListener("pointerenter", () => show(block));
  return button;
};
find(".architecture-list").addEventListener("pointerleave", () => show(null));

// ---- where a block leads ----

const open = (block) => {
  show(block);
  const name = state.leads[block.kind];
  const tab = name && viz.tabs().find((button) => button.textContent.trim() === name);
  if (!tab) return;
  const { stack, kind } = block;
  if (name === "Attention" && (viz.head?.stack !== stack || viz.head?.kind !== kind)) {
    viz.setHead({ stack, kind, layer: 0, head: 0 });
  }
  tab.click();
  tab.focus();
  tab.scrollIntoView({ block: "nearest" });
};

viz.keepDrawn(root, ["run"], draw);
