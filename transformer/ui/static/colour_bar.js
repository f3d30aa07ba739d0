// The colour bar of a heatmap drawn with `tools`, as the page's own: Plotly measures its own anew at
// each draw, which takes a third of a click on a head.

import { el } from "./dom.js";
import { fontPx } from "./labels.js";
import { numeral } from "./messages.js";

const GAP_PX = 10; // from the cells
const APART_EM = 2; // from one round value to the next, at least

/**
 * The round values from low to high, as numbers and as texts; `count` at most, and one more.
 * @type {(low: number, high: number, count: number) => [number[], string[]]}
 */
export const roundValues = (low, high, count) => {
  const least = (high - low) / Math.max(1, count);
  const ten = 10 ** Math.floor(Math.log10(least));
  const step = ten * ([1, 2, 5].find((one) => one * ten >= least) ?? 10);
  const digits = Math.max(0, -Math.floor(Math.log10(step * 1.01)));
  const first = Math.ceil(low / step - 1e-9);
  const length = Math.floor(high / step + 1e-9) - first + 1;
  const values = Array.from({ length }, (_, place) => (first + place) * step);
  const texts = values.map((value) => numeral(value.toFixed(digits).replace("-", "−")));
  return [values, texts];
};

// Returns what is to stand in the box's frame, or null if the figure is to have none.
export const colourBar = ({ data, layout }) => {
  const trace = data.find(({ colorbar, showscale }) => colorbar && showscale);
  if (!trace) return null;
  const { colorscale, zmin, zmax, colorbar } = trace;
  const { t, r, b } = layout.margin;
  const height = layout.height - t - b;
  const count = height / (APART_EM * fontPx());
  const [values, texts] = colorbar.tickvals
    ? [colorbar.tickvals, colorbar.ticktext]
    : roundValues(zmin, zmax, count);
  const made = el("div", "colour-bar");
  const stops = colorscale.map(([place, colour]) => [colour, `${100 * place}%`].join(" "));
  made.style.background = `linear-gradient(to top,${stops.join()})`;
  const place = { left: layout.width - r + GAP_PX, top: t, height };
  for (const [side, px] of Object.entries(place)) made.style[side] = `${px}px`;
  values.forEach((value, index) => {
    const text = el("span", "tick", texts[index]);
    text.style.bottom = `${(100 * (value - zmin)) / (zmax - zmin)}%`;
    made.append(text);
  });
  return made;
};
