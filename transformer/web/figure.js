// A picture that Python made, as a component: drawn by Plotly once it is seen, with its numbers as a
// table behind it.

import { drawPicture, purge } from "../ui/static/plots.js";
import { tableOf } from "../ui/static/table_content.js";
import { NumberTable } from "../ui/static/tables.js";
import { html, useLayoutEffect, useRef, useState } from "./preact.js";
import { page, showProblem } from "./store.js";

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
  const drawn = useRef(/** @type {any[] | null} */ (null));
  const latest = useRef(on);
  latest.current = on;
  const [shown, setShown] = useState(/** @type {any} */ (null));
  const wanted = [figure, part.width, page.projector, ...anew];

  const draw = async () => {
    const listeners = Object.keys(on).map((event) => [
      event,
      (detail) => latest.current[event](detail, box.current),
    ]);
    drawn.current = wanted;
    const made = await drawPicture(box.current, figure, {
      ...how,
      on: Object.fromEntries(listeners),
    });
    if (drawn.current !== wanted) return;
    setShown({ content: tableOf(box.current, made, { numbers, table }) });
    done?.(made);
    part.owes(box, false);
  };
  const fail = ({ message }) => {
    part.owes(box, false);
    showProblem(message);
  };
  useLayoutEffect(() => {
    if (part.left && drawn.current) {
      purge(box.current);
      drawn.current = null;
      setShown(null);
    }
    const stands = wanted.every((one, place) => one === drawn.current?.[place]);
    if (!figure || hidden) part.owes(box, false);
    else if (!stands) {
      part.owes(box, true);
      if (part.seen && part.width) draw().catch(fail);
    }
  }, [...wanted, part.seen, part.left, hidden]);
  useLayoutEffect(
    () => () => {
      part.owes(box, false);
      if (drawn.current) purge(box.current);
    },
    [],
  );

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
