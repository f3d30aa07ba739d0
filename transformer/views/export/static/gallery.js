// Whole pictures below one another: all at once, or each drawn when it is opened.

import { el } from "../../../ui/static/dom.js";
import { thinLabels } from "../../../ui/static/labels.js";
import { drawFigure } from "../../../ui/static/plots.js";
import { recoloured } from "./dark.js";
import { filled } from "./pack.js";

const TITLES_PX = 60; // that a figure leaves for its title, which stands in the page here
const HEIGHT_PX = 420; // of a figure that does not say
const TALLEST_PX = 640; // of a square picture

// A packed figure {data, layout} as Plotly takes it. table: of colours in the dark, or null.
export const figureOf = ({ data, layout }, table) =>
  filled(table ? recoloured({ data, layout }, table) : { data, layout });

const isSquare = ({ xaxis, yaxis }) =>
  Boolean(yaxis?.scaleanchor && xaxis.ticktext && yaxis.ticktext);

const draw = async (box, one, table) => {
  const figure = figureOf(one, table);
  const { width: own = 0, height = HEIGHT_PX, margin } = figure.layout;
  const saved = Math.max(0, Math.min(TITLES_PX, margin.t - 10));
  const width = box.parentElement.clientWidth;
  const fit = { side: { width, height: TALLEST_PX }, bar: true };
  const change = ({ layout }) => {
    layout.width = Math.max(width, own);
    margin.t -= saved;
    const { xaxis, xaxis2 } = layout;
    if (xaxis2?.overlaying) xaxis2.showline = false; // Plotly draws it at NaN
    if (xaxis.ticktext && xaxis.tickangle) thinLabels(xaxis, layout.width - margin.l - margin.r);
  };
  const size = isSquare(figure.layout) ? { fit } : { height: height - saved, change };
  await drawFigure(box, figure, size);
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", [one.title, one.subtitle].filter(Boolean).join("; "));
  box.dataset.rev = String(Number(box.dataset.rev ?? 0) + 1);
};

// What a picture needs around it.
const parts = ({ subtitle }) => {
  const box = el("div", "figure");
  const wide = el("div", "wide");
  wide.tabIndex = 0;
  wide.append(box);
  return { box, around: [el("p", "note", subtitle), wide] };
};

// Pictures in a place: open ones have a heading, others are boxes to open. Returns draw(table), which
// draws all that can be seen; table: see figureOf.
export const pictureList = (place, pictures, { closed = false } = {}) => {
  /** @type {any} */
  let colours = null;
  const all = pictures.map((one) => {
    const { box, around } = parts(one);
    const frame = el(closed ? "details" : "figure");
    frame.dataset.view = one.view ?? "";
    frame.append(el(closed ? "summary" : "figcaption", "", one.title), ...around);
    if (one.help) frame.firstElementChild.after(el("p", "note", one.help));
    if (closed) frame.addEventListener("toggle", () => frame.open && draw(box, one, colours));
    return { frame, box, one };
  });
  place.replaceChildren(...all.map(({ frame }) => frame));
  return (table) => {
    colours = table;
    for (const { frame, box, one } of all) if (!closed || frame.open) draw(box, one, table);
  };
};
