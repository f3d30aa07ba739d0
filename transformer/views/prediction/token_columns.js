// Pictures with a column for each token of the text.

import { cellBox } from "../../ui/static/axis_labels.js";
import { drawFigure } from "../../ui/static/plots.js";
import { on, page, setQuery } from "../../web/store.js";

// A picture `box` of columns, the first of which is the token at first(); a click chooses one.
// Returns draw(figure, options), see drawFigure.
export const tokenColumns = (box, first) => {
  const band = box.parentElement.querySelector(".band");
  const wide = box.closest(".wide");
  const listeners = {
    plotly_click: ({ points }) => {
      setQuery({ stack: page.run.stack, index: first() + Math.round(points[0].x) });
    },
  };
  // The chosen token's column, scrolled into sight.
  const mark = () => {
    const place = page.query?.stack === page.run?.stack ? page.query.index - first() : -1;
    const { xaxis, yaxis } = box._fullLayout ?? {};
    const shown = xaxis && place >= 0 && place < Math.abs(xaxis.range[1] - xaxis.range[0]);
    band.hidden = !shown;
    if (!shown) return;
    const { left, width } = cellBox(box, place, place, 0, 0);
    const at = { left, width, top: yaxis._offset, height: yaxis._length };
    for (const [key, value] of Object.entries(at)) band.style[key] = `${value}px`;
    const [start, end] = [wide.scrollLeft, wide.scrollLeft + wide.clientWidth];
    if (left < start || left + width > end) wide.scrollLeft = left - wide.clientWidth / 2;
  };
  const draw = async (figure, options) => {
    const drawn = await drawFigure(box, figure, { ...options, on: listeners });
    mark();
    return drawn;
  };
  on("query", mark);
  return { wide, draw };
};
// A picture that neither zooms nor moves.
export const withoutZoom = (layout) => {
  layout.dragmode = false;
  for (const axis of [layout.xaxis, layout.yaxis]) axis.fixedrange = true;
};
