// A picture that Python made, as a component: drawn by Plotly once it is seen, with its numbers as a
// table behind it.

import { drawPicture, usePlot } from "./plots.js";
import { NumberTable, tableOf } from "./tables.js";
import { html, useRef } from "./preact.js";
import { page } from "./store.js";

/**
 * part: see usePart. figure: its JSON; null for none. name: its data-picture. wide: what it is called
 * where it scrolls in a frame of its own; label: what it is called else. on: Plotly's events, each
 * with the drawn box. numbers,
 * table: see tableOf. how: see drawPicture. anew: values at whose change it is drawn again. over(box):
 * what stands above the drawn picture; box: attributes of the picture itself; done(figure) follows each draw.
 * @param {Record<string, any>} props
 */
export const Figure = ({
  part,
  figure,
  name,
  wide,
  label,
  hidden = false,
  anew = [],
  class: more = "",
  on = {},
  numbers,
  table,
  over,
  box: attributes = {},
  done = null,
  ...how
}) => {
  const box = useRef(/** @type {any} */ (null));
  const wanted = figure && !hidden ? [figure, part.width, page.projector, ...anew] : null;
  const draw = async () => {
    const made = await drawPicture(box.current, figure, how);
    return () => {
      done?.(made);
      return { content: tableOf(box.current, made, { numbers, table }) };
    };
  };
  const shown = usePlot({ part, box, wanted, draw, on });
  const picture = html`<div class=${`picture ${more}`} data-picture=${name} hidden=${hidden}
    role=${label && "img"} aria-label=${label} ...${attributes} ref=${box} />`;
  const marked = over
    ? html`<div class="marked">${picture}${shown && over(box.current)}</div>`
    : picture;
  const frame = wide
    ? html`<div class="wide" tabindex="0" role="region" aria-label=${wide}>${marked}</div>`
    : marked;
  return [frame, html`<${NumberTable} content=${shown?.content} hidden=${hidden} />`];
};

// What Python wrote beside a figure's cells: layout.meta; {} before there is a figure.
export const useMeta = (figure) => figure?.layout.meta ?? {};
