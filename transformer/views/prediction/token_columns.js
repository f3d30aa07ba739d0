// Pictures with a column for each token of the text.

import { cellBox } from "../../web/cells.js";
import { Figure } from "../../web/figure.js";
import { html, useLayoutEffect, useRef } from "../../web/preact.js";
import { page, setQuery } from "../../web/store.js";

// The chosen token's column, scrolled into sight.
const Band = ({ box, first }) => {
  const band = useRef(/** @type {any} */ (null));
  const place = page.query?.stack === page.run?.stack ? (page.query?.index ?? -1) - first : -1;
  const { xaxis, yaxis } = box._fullLayout ?? {};
  const shown = xaxis && place >= 0 && place < Math.abs(xaxis.range[1] - xaxis.range[0]);
  const { left, width } = shown ? cellBox(box, place, place, 0, 0) : { left: 0, width: 0 };
  const px = { left, width, top: yaxis?._offset, height: yaxis?._length };
  const at = Object.fromEntries(Object.entries(px).map(([side, value]) => [side, `${value}px`]));
  useLayoutEffect(() => {
    const wide = band.current.closest(".wide");
    const [start, end] = [wide.scrollLeft, wide.scrollLeft + wide.clientWidth];
    if (shown && (left < start || left + width > end))
      wide.scrollLeft = left - wide.clientWidth / 2;
  }, [left, width]);
  return html`<div class="band column" hidden=${!shown} style=${shown ? at : {}} ref=${band} />`;
};

// A Figure whose first column is the token `first`; a click chooses one.
export const TokenColumns = ({ first, ...figure }) => {
  const choose = ({ points }) =>
    setQuery({ stack: page.run.stack, index: first + Math.round(points[0].x) });
  return html`<${Figure} ...${figure} on=${{ plotly_click: choose }}
    over=${(box) => html`<${Band} ...${{ box, first }} />`} />`;
};

// A picture that neither zooms nor moves.
export const withoutZoom = (layout) => {
  layout.dragmode = false;
  for (const axis of [layout.xaxis, layout.yaxis]) axis.fixedrange = true;
};
