// Labels of the page's own beside a drawn heatmap, and where its cells are.

import { colourBar } from "./colour_bar.js";
import { el } from "./dom.js";
import { drawnIn } from "./drawn.js";
import { escapeLabel, plainLabel, shortLabel } from "./labels.js";

const LONGEST = 11; // characters

// Labels and the colour bar beside a heatmap drawn with `tools`, where its axes now stand (they
// move with a zoom).
export const placeAxisLabels = (box) => {
  const { xaxis, yaxis } = box._fullLayout;
  const mine = drawnIn(box);
  const { data, layout } = mine.whole;
  const key = JSON.stringify([
    [layout.xaxis.ticktext, layout.yaxis.ticktext],
    [layout.width, layout.height],
    [xaxis.range, yaxis.range],
    data.map(({ colorscale, zmin, zmax, colorbar }) => [colorscale, zmin, zmax, colorbar]),
  ]);
  if (mine.labels?.dataset.key === key) return;
  mine.labels?.remove();
  const made = (mine.labels = el("div", "axis-labels"));
  made.setAttribute("aria-hidden", "true");
  made.dataset.key = key;
  const add = (name, axis, edge) => {
    const { tickvals, ticktext } = layout[name];
    tickvals.forEach((value, place) => {
      const at = axis.l2p(value);
      if (at < 0 || at > axis._length) return;
      const label = el("span", name, plainLabel(ticktext[place]));
      const side = name === "xaxis" ? ["left", "top"] : ["top", "right"];
      label.style[side[0]] = `${axis._offset + at}px`;
      label.style[side[1]] = `${edge}px`;
      made.append(label);
    });
  };
  add("xaxis", xaxis, yaxis._offset + yaxis._length + 5);
  add("yaxis", yaxis, layout.width - xaxis._offset + 6);
  const title = (name, axis, side) => {
    const shown = el("span", `${name} title`, layout[name].title.text);
    shown.style[side] = `${axis._offset + axis._length / 2}px`;
    made.append(shown);
  };
  title("xaxis", xaxis, "left");
  title("yaxis", yaxis, "top");
  Object.assign(made.style, { width: `${layout.width}px`, height: `${layout.height}px` });
  const bar = colourBar(mine.whole);
  if (bar) made.append(bar);
  box.after(made);
};

// The labels of the chosen row and column, either null, which stand whether others had to go or not.
// labels: {query, key}.
export const labelChosen = (box, row, column, labels) => {
  const { labels: made, whole } = drawnIn(box);
  if (!made) return;
  for (const old of made.querySelectorAll(".chosen")) old.remove();
  const { xaxis, yaxis } = box._fullLayout;
  const add = (name, axis, value, text) => {
    const at = value === null ? -1 : axis.l2p(value);
    if (at < 0 || at > axis._length) return null;
    const label = el("span", `${name} chosen`, plainLabel(shortLabel(escapeLabel(text), LONGEST)));
    made.append(label);
    return { label, at: axis._offset + at };
  };
  const below = add("xaxis", xaxis, column, labels.key[column]);
  if (below) {
    below.label.style.left = `${below.at}px`;
    below.label.style.top = `${yaxis._offset + yaxis._length + 5}px`;
  }
  const beside = add("yaxis", yaxis, row, labels.query[row]);
  if (beside) {
    beside.label.style.top = `${beside.at}px`;
    beside.label.style.right = `${whole.layout.width - xaxis._offset + 6}px`;
  }
};

// The pixels of a cell range in a drawn heatmap: {left, top, width, height} within the box.
export const cellBox = (box, x0, x1, y0, y1) => {
  const { xaxis, yaxis } = box._fullLayout;
  const clamp = (axis, value) => Math.min(axis._length, Math.max(0, axis.l2p(value)));
  const [left, right] = [clamp(xaxis, x0 - 0.5), clamp(xaxis, x1 + 0.5)];
  const [top, bottom] = [clamp(yaxis, y0 - 0.5), clamp(yaxis, y1 + 0.5)];
  return {
    left: xaxis._offset + left,
    top: yaxis._offset + top,
    width: right - left,
    height: bottom - top,
  };
};
