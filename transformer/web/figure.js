// A picture that Python made, as a component: drawn by Plotly once it is seen, with its numbers as a
// table behind it.

import { drawPicture, purge } from "../ui/static/plots.js";
import { tableOf } from "../ui/static/table_content.js";
import { NumberTable } from "../ui/static/tables.js";
import { html, useLayoutEffect, useRef, useState } from "./preact.js";
import { page, showProblem } from "./store.js";

/**
 * part: see usePart. figure: its JSON; null for none. name: its data-picture. wide: what it is called
 * where it scrolls in a frame of its own; label: what it is called else. on: Plotly's events. numbers,
 * table: see tableOf. how: see drawPicture. anew: values at whose change it is drawn again.
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
  children,
  ...how
}) => {
  const box = useRef(/** @type {any} */ (null));
  const drawn = useRef(/** @type {any[] | null} */ (null));
  const latest = useRef(on);
  latest.current = on;
  const [content, setContent] = useState(/** @type {any} */ (null));
  const wanted = [figure, part.width, page.projector, ...anew];

  const draw = async () => {
    const listeners = Object.keys(on).map((event) => [
      event,
      (detail) => latest.current[event](detail),
    ]);
    drawn.current = wanted;
    const made = await drawPicture(box.current, figure, {
      ...how,
      on: Object.fromEntries(listeners),
    });
    if (drawn.current !== wanted) return;
    setContent(tableOf(box.current, made, { numbers, table }));
    part.owes(box, false);
  };
  useLayoutEffect(() => {
    if (part.left && drawn.current) {
      purge(box.current);
      drawn.current = null;
      setContent(null);
    }
    const stands = wanted.every((one, place) => one === drawn.current?.[place]);
    if (!figure || hidden) part.owes(box, false);
    else if (!stands) {
      part.owes(box, true);
      if (part.seen && part.width) draw().catch(({ message }) => showProblem(message));
    }
  }, [...wanted, part.seen, part.left, hidden]);
  useLayoutEffect(
    () => () => {
      part.owes(box, false);
      if (drawn.current) purge(box.current);
    },
    [],
  );

  const picture = html`<div
    class=${`picture ${more}`.trim()}
    data-picture=${name}
    hidden=${hidden}
    role=${label && "img"}
    aria-label=${label}
    ref=${box}
  />`;
  return html`${
    wide
      ? html`<div class="wide" tabindex="0" role="region" aria-label=${wide}>
            ${picture}${children}
          </div>`
      : picture
  }<${NumberTable} content=${content} hidden=${hidden} />`;
};
