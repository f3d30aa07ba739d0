// A whole picture of a run with its words: drawn at once, or when it is opened.

import { thinLabels } from "../../../ui/static/labels.js";
import { Figure } from "../../../web/figure.js";
import { usePart } from "../../../web/part.js";
import { html, useLayoutEffect, useMemo, useState } from "../../../web/preact.js";
import { page } from "../../../web/store.js";
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

// How a figure stands in so much width, see drawPicture.
const sizeOf = ({ layout }, width) => {
  const { width: own = 0, height = HEIGHT_PX, margin } = layout;
  if (isSquare(layout)) return { fit: { side: { width, height: TALLEST_PX }, bar: true } };
  const saved = Math.max(0, Math.min(TITLES_PX, margin.t - 10));
  const change = ({ layout: { margin: around, xaxis, xaxis2 }, layout: of }) => {
    of.width = Math.max(width, own);
    around.t -= saved;
    if (xaxis2?.overlaying) xaxis2.showline = false; // Plotly draws it at NaN
    if (xaxis.ticktext && xaxis.tickangle) thinLabels(xaxis, of.width - around.l - around.r);
  };
  return { height: height - saved, change };
};

// one: {title, subtitle, help, view, data, layout}; colours: see figureOf. closed: it is a box to open,
// which stands open at first.
export const Picture = ({ one, colours, closed = false, open = false, hidden = false }) => {
  const part = usePart();
  const [isOpen, setOpen] = useState(!closed || open);
  useLayoutEffect(() => void (closed && setOpen(open)), [open]);
  // Drawing changes it: each width has its own.
  const figure = useMemo(
    () => isOpen && part.width > 0 && figureOf(one, page.dark ? colours : null),
    [one, isOpen, page.dark, part.width],
  );
  const { title, subtitle, help, view } = one;
  const drawn = html`${help && html`<p class="note">${help}</p>`}
    <p class="note">${subtitle}</p>
    <${Figure} part=${part} name=${view} class="figure" figure=${figure || null} wide=${title}
      label=${[title, subtitle].filter(Boolean).join("; ")} ...${figure && sizeOf(figure, part.width)} />`;
  const facts = part.shows({ view: view ?? "" });
  return closed
    ? html`<details open=${isOpen} hidden=${hidden} onToggle=${({ target }) => setOpen(target.open)} ...${facts}>
        <summary>${title}</summary>${drawn}
      </details>`
    : html`<figure ...${facts}><figcaption>${title}</figcaption>${drawn}</figure>`;
};
