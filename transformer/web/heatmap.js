// One head's numbers as a heatmap with zoom, a closer look, a keyboard and a table. Until plotly.js is loaded,
// the small picture of the head is shown enlarged.

import { escapeLabel, shortLabel } from "./labels.js";
import { plotlyIfLoaded, withTools } from "./plots.js";
import { say } from "./messages.js";
import { Figure, useMeta } from "./figure.js";
import { Bands, cellAt, drawnFrame, useCellKeys } from "./cells.js";
import { cellTexts, colourValues } from "./head_numbers.js";
import { cellShown, cellsOf, lookOf, partOf, placesOf } from "./heatmap_figure.js";
import { html, useMemo, useState } from "./preact.js";

const LONGEST = 60; // characters of a token in the hover label
const hoverLabel = (label) => shortLabel(escapeLabel(label), LONGEST);

/**
 * part: see usePart. figure: of head_frame in heatmap.py; numbers: of a head, see head_numbers.js; both null
 * until they arrive; meanwhile: shown until the picture is drawn. look: {stage, scale, range}. title: what it
 * is called; keys: the id of a text about its keyboard. room(box): see squareCells. lit: {row, column}, either
 * null. start(): the chosen cell, where the keyboard begins, or null. over(cell, byKeys): a cell is pointed
 * at, null for none; pin(cell, byKeys): one was clicked, or with column null a row.
 * @param {Record<string, any>} props
 */
export const Heatmap = ({
  part,
  figure: frame,
  numbers,
  meanwhile,
  look,
  title,
  keys,
  room,
  lit,
  start,
  over,
  pin,
}) => {
  const { query_labels: query = [], key_labels: key = [] } = useMeta(frame);
  const last = { row: query.length - 1, column: key.length - 1 };
  const { row = null, column = null } = start() ?? {};
  const figure = useMemo(
    () => numbers && lookOf(frame, numbers, look),
    [numbers, ...Object.values(look), row, column],
  );
  const values = (some) => colourValues(numbers, key.length, look.stage, look.scale, some);
  const whole = partOf(query.length, key.length);
  const [zoomed, zoom] = useState({ of: null, part: whole });
  const shown = zoomed.of === figure ? zoomed.part : whole;

  const change = ({ data: [cells] }) => {
    const labels = { query: query.map(hoverLabel), key: key.map(hoverLabel) };
    Object.assign(cells, cellsOf(numbers, look, labels, cells.hovertemplate));
  };
  // With more cells than pixels, a zoom or a drag redraws the visible cells at full resolution.
  const follow = (_, box) => {
    const near = partOf(query.length, key.length, drawnFrame(box));
    const isOther = whole.step > 1 && JSON.stringify(near) !== JSON.stringify(shown);
    if (isOther) plotlyIfLoaded().restyle(box, { z: [values(near)], ...placesOf(near) }, [0]);
    zoom({ of: figure, part: isOther ? near : shown });
  };
  const cellOf = ({ points: [{ x, y }] }) => cellShown(x, y, shown, values);
  const on = {
    plotly_hover: (told) => over(cellOf(told)),
    plotly_unhover: () => over(null),
    plotly_click: (told) => pin(cellOf(told)),
    plotly_relayout: follow,
  };
  const bands = (drawn) => html`<${Bands} frame=${drawnFrame(drawn)} ...${{ lit, last }} />`;
  // A click on the label of a row.
  const pickRow = ({ target, clientY }) => {
    if (!target.closest(".ytick")) return;
    const drawn = target.closest(".large");
    const frameNow = drawnFrame(drawn);
    const { row: at } = cellAt(
      frameNow,
      frameNow.left + frameNow.width / 2,
      clientY - drawn.getBoundingClientRect().top,
    );
    if (at !== null) pin({ row: at, column: null });
  };
  const walk = useCellKeys({
    last: () => figure && last,
    start,
    move: (cell) => over(cell, true),
    pin: (cell) => pin(cell, true),
    leave: () => over(null),
    rows: true,
  });
  const box = {
    role: "application",
    tabindex: 0,
    "aria-roledescription": "heatmap",
    "aria-label": say("{title}; heatmap of query by key", { title }),
    "aria-describedby": keys,
    ...walk,
  };
  const texts = numbers && cellTexts(numbers, key.length, look.stage);
  return [
    html`<div class=${figure ? "large-box" : "large-box empty"} onClick=${pickRow}>
      <${Figure} class="large" name="heatmap" over=${bands} config=${withTools}
        fit=${(drawn) => ({ bar: true, chosen: { row, column }, ...room(drawn) })}
        numbers=${texts} ...${{ part, figure, meanwhile, change, on, box }} />
    </div>`,
    shown.step > 1 &&
      html`<p class="hint">${say(
        "Each point of the picture stands for {n} × {n} cells and shows the largest; drag over a " +
          "part to see every cell.",
        { n: shown.step },
      )}</p>`,
  ];
};
