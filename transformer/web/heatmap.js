// One head's numbers as a heatmap with labels, a colour bar, zoom, a closer look, a keyboard and a table.
// Until plotly.js is loaded, an interactive canvas shows the same numbers.

import { paintWords, paletteWords, themeOf } from "./colours.js";
import {
  drawnIn,
  isSame,
  loadPlotly,
  paperColour,
  PLAIN,
  plotlyIfLoaded,
  usePlot,
} from "./plots.js";
import { say } from "./messages.js";
import { NumberTable } from "./figure.js";
import { figureTable } from "./tables.js";
import { Axes, Bands, cellAt, drawnFrame, frameOf, inPx, useCellKeys } from "./cells.js";
import { cellTexts } from "./head_numbers.js";
import { cellShown, headFigure, partOf, placesOf } from "./heatmap_figure.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "./preact.js";
import { page } from "./store.js";

const NOT_OURS = ["toImage", "sendChartToCloud", "autoScale2d", "zoomIn2d", "zoomOut2d"];
/** @type {any} */
let tools = null; // the same at every draw, see PLAIN
const withTools = (plotly) => {
  const save = (box) =>
    plotly.downloadImage(drawnIn(box).whole, { format: "png", scale: 2, filename: "attention" });
  tools ??= {
    ...PLAIN,
    displayModeBar: "hover",
    modeBarButtonsToRemove: NOT_OURS,
    modeBarButtonsToAdd: [
      { name: "save", title: say("Save as a picture"), icon: plotly.Icons.camera, click: save },
    ],
  };
  return tools;
};

// The figure without the parts that the page draws.
const bare = ({ data, layout }) => {
  const axis = (one) => ({ ...one, showticklabels: false, ticks: "", title: { text: "" } });
  return {
    data: data.map((trace) => ({ ...trace, showscale: false })),
    layout: { ...layout, xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis) },
  };
};

const paint = (canvas, { z, colorscale, zmin, zmax }) => {
  const colours = paletteWords(colorscale);
  const width = z[0].length;
  const words = new Uint32Array(z.length * width);
  z.forEach((row, down) =>
    row.forEach((value, right) => {
      const share = Math.min(1, Math.max(0, (value - zmin) / (zmax - zmin)));
      if (!Number.isNaN(value)) words[down * width + right] = colours[Math.round(255 * share)];
    }),
  );
  paintWords(canvas, words, width);
};

// The figure, made again when its inputs change while it is visible.
const useFigure = ({ part, numbers, labels, look, room, box }) => {
  const { dark, projector } = page;
  const wanted = [numbers, ...Object.values(look), dark, projector, part.width];
  const kept = useRef({ figure: /** @type {any} */ (null), wanted: /** @type {any[]} */ ([]) });
  const [isMounted, setMounted] = useState(false);
  useLayoutEffect(() => setMounted(true), []);
  if (isMounted && numbers && part.seen && part.width && !isSame(wanted, kept.current.wanted)) {
    const theme = themeOf(part.element.current);
    const figure = headFigure({ numbers, labels, look, theme, fit: room(box.current) });
    kept.current = { figure, wanted };
  }
  const isDue = Boolean(numbers) && !isSame(wanted, kept.current.wanted);
  useLayoutEffect(() => part.setPending(kept, isDue), [isDue]);
  useLayoutEffect(() => () => part.setPending(kept, false), []);
  return kept.current.figure;
};

/**
 * part: see usePart. numbers: of a head, see head_numbers.js, null until they arrive; meanwhile: shown until
 * then. labels: {query, key}. look: {stage, scale, range}. title: what it is called; keys: the id of a text
 * about its keyboard. room(box): see squareCells. lit: {row, column}, either null. start(): the cell where
 * the keyboard begins, or null. over(cell, byKeys): a cell is pointed at, null for none; pin(cell, byKeys):
 * one was clicked, or with column null a row.
 * @param {Record<string, any>} props
 */
export const Heatmap = ({
  part,
  numbers,
  meanwhile = null,
  labels,
  look,
  title,
  keys,
  room,
  lit,
  start,
  over,
  pin,
  ...attributes
}) => {
  const [box, canvas] = [useRef(/** @type {any} */ (null)), useRef(/** @type {any} */ (null))];
  const figure = useFigure({ part, numbers, labels, look, room, box });
  const [zoomed, zoom] = useState({ of: null, frame: /** @type {any} */ (null), part: null });
  const whole = useMemo(() => figure && frameOf(figure.layout), [figure]);
  const isZoomed = zoomed.of === figure;
  const frame = isZoomed ? zoomed.frame : whole;
  const shown = isZoomed ? zoomed.part : figure?.part;
  const last = figure && { row: labels.query.length - 1, column: labels.key.length - 1 };

  // With more cells than pixels, a zoom or a drag redraws the visible cells at full resolution.
  const follow = () => {
    const now = drawnFrame(box.current);
    const near = partOf(labels.query.length, labels.key.length, now);
    const isOther = figure.part.step > 1 && JSON.stringify(near) !== JSON.stringify(shown);
    if (isOther) {
      const cells = { z: [figure.values(near)], ...placesOf(near) };
      plotlyIfLoaded().restyle(box.current, cells, [0]);
    }
    zoom({ of: figure, frame: now, part: isOther ? near : shown });
  };
  const cellOf = ({ points: [{ x, y }] }) => cellShown(x, y, shown, figure.values);
  const on = {
    plotly_hover: (told) => over(cellOf(told)),
    plotly_unhover: () => over(null),
    plotly_click: (told) => pin(cellOf(told)),
    plotly_relayout: follow,
  };
  const draw = async (isWanted) => {
    const plotly = await loadPlotly();
    if (!isWanted()) return null;
    const { data, layout } = figure;
    drawnIn(box.current).whole = { data, layout: { ...layout, paper_bgcolor: paperColour() } };
    const alone = bare(figure);
    await plotly.react(box.current, alone.data, alone.layout, withTools(plotly));
    return () => true;
  };
  const stands = usePlot({ part, box, wanted: figure && [figure], draw, on });
  useLayoutEffect(() => {
    if (canvas.current) paint(canvas.current, figure.data[0]);
  }, [figure, stands]);

  const cellUnder = ({ clientX, clientY }) => {
    const { left, top } = box.current.getBoundingClientRect();
    return cellAt(frame, clientX - left, clientY - top);
  };
  const pickRow = (event) => {
    const { row, column } = frame ? cellUnder(event) : { row: null, column: null };
    const isBeside = event.clientX < box.current.getBoundingClientRect().left + frame?.left;
    if (isBeside && row !== null && column === null) pin({ row, column: null });
  };
  const inside = (use) => (event) => {
    const cell = cellUnder(event);
    if (cell.row !== null && cell.column !== null) use(cell);
  };
  const walk = useCellKeys({
    last: () => last,
    start,
    move: (cell) => over(cell, true),
    pin: (cell) => pin(cell, true),
    leave: () => over(null),
    rows: true,
  });
  const table = useMemo(
    () =>
      figure &&
      figureTable(
        [{ ...figure.data[0], visible: true }],
        figure,
        cellTexts(numbers, labels.key.length, look.stage),
      ),
    [figure],
  );
  const first = html`<canvas class="cells" ref=${canvas} style=${frame && inPx(whole)}
    onPointerMove=${inside(over)} onPointerLeave=${() => over(null)} onClick=${inside(pin)} />`;
  return [
    html`<div class=${figure ? "large-box" : "large-box empty"} onClick=${pickRow}>
      <div class="large" role="application" tabindex="0" aria-roledescription="heatmap"
        aria-label=${say("{title}; heatmap of query by key", { title })} aria-describedby=${keys}
        style=${figure && inPx({ height: figure.layout.height })} ref=${box} ...${attributes} ...${walk} />
      ${!figure && meanwhile}
      ${figure && !stands && first}
      ${figure && html`<${Axes} ...${{ figure, frame, lit, labels }} />`}
      ${figure && html`<${Bands} ...${{ frame, lit, last }} />`}
    </div>`,
    shown?.step > 1 &&
      html`<p class="hint">${say(
        "Each point of the picture stands for {n} × {n} cells and shows the largest; drag over a " +
          "part to see every cell.",
        { n: shown.step },
      )}</p>`,
    html`<${NumberTable} content=${table} />`,
  ];
};
