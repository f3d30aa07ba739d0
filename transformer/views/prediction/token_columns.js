// Pictures with a column for each token of the text.

import { cellBox } from "../../web/cells.js";
import { Figure } from "../../web/figure.js";
import { fontPx } from "../../web/labels.js";
import { before, placeAsked } from "../../web/looked_at.js";
import { trimTop } from "../../web/plots.js";
import { html, useLayoutEffect, useRef } from "../../web/preact.js";
import { page, setQuery } from "../../web/store.js";

// The column of the chosen token, or of what follows it, scrolled into sight.
const Band = ({ box, first, follows }) => {
  const band = useRef(/** @type {any} */ (null));
  const { run, query } = page;
  const isChosen = query && query.stack === run?.stack;
  const place = isChosen ? (follows ? placeAsked() : query.index) - first : -1;
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

// A Figure whose first column is the token `first`; a click chooses one, or, where a column says what
// was expected of its token (follows), the one before it.
export const TokenColumns = ({ first, follows = false, ...figure }) => {
  const choose = ({ points }) => {
    const index = first + Math.round(points[0].x);
    setQuery(follows ? before(index) : { stack: page.run.stack, index });
  };
  return html`<${Figure} ...${figure} on=${{ plotly_click: choose }}
    over=${(box) => html`<${Band} ...${{ box, first, follows }} />`} />`;
};

const BAR_EM = 1.57; // the least that a token's label needs
// A bar for each of meta.labels, with room for them; top: px above the bars.
export const fitBars =
  (part, top) =>
  ({ layout }) => {
    layout.width = Math.max(part.width, 80 + BAR_EM * fontPx() * layout.meta.labels.length);
    layout.dragmode = false;
    trimTop(layout, top);
  };

// A picture that neither zooms nor moves.
export const withoutZoom = (layout) => {
  layout.dragmode = false;
  for (const axis of [layout.xaxis, layout.yaxis]) axis.fixedrange = true;
};
