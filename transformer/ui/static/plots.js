// How figures that Python made are put on a page.

import { drawnIn, forgetDrawn } from "./drawn.js";
import { fontPx } from "./labels.js";
import { loadPlotly, plotlyIfLoaded } from "./plotly.js";
import { enlarge, enlargeCells } from "./projected.js";
import { squareCells } from "./square_cells.js";
import { page } from "../../web/store.js";

const HEADS_BESIDE_PX = 130; // what stands beside the cells of a map of heads

// The same object at every draw: Plotly would else build the picture anew.
export const PLAIN = {
  displaylogo: false,
  responsive: false,
  displayModeBar: false,
  // nothing leaves:
  showSendToCloud: false,
  showEditInChartStudio: false,
  plotlyServerURL: "",
};

export const listen = (box, listeners = {}) => {
  if (drawnIn(box).listens) return;
  drawnIn(box).listens = true;
  for (const [event, listener] of Object.entries(listeners)) box.on(event, listener);
};

// Draw a figure that Python made, an object or its JSON. Titles are the page's own
// headings.
// height: px; fit: {side, top, bar} for square cells; change: a last touch to the figure.
// on: {event: listener}, Plotly's events, attached once.
/** @type {(box: any, made: any, options?: any) => Promise<any>} */
export const drawPicture = async (box, made, { height, fit, change, on } = {}) => {
  const plotly = await loadPlotly();
  const figure = typeof made === "string" ? JSON.parse(made) : structuredClone(made);
  const { layout } = figure;
  delete layout.title;
  for (const axis of [layout.xaxis, layout.yaxis]) {
    if (axis?.title) axis.title.font = { size: fontPx() };
  }
  if (page.projector) enlarge(figure);
  if (fit) squareCells(figure, fit);
  else Object.assign(layout, { width: box.clientWidth, height: height ?? layout.height });
  change?.(figure);
  if (page.projector) enlargeCells(figure);
  box.style.height = `${layout.height}px`;
  await plotly.react(box, figure.data, layout, PLAIN);
  listen(box, on);
  return figure;
};

// How a map of heads is drawn, layers down and heads across, close-fitting; with numbers in its cells if
// each has numberPx for one.
/** @type {(nLayers: number, numberPx: number) => any} */
export const headMap = (nLayers, numberPx) => ({
  height: Math.min(420, 90 + 34 * nLayers),
  change: ({ data, layout }) => {
    Object.assign(layout.margin, { t: 8, r: 8, l: 44, b: 44 });
    const room = (layout.width - HEADS_BESIDE_PX) / layout.meta.column_labels.length;
    for (const trace of data) {
      trace.colorbar.title = { text: "" };
      if (room < numberPx) delete trace.texttemplate;
    }
  },
});

// Take a picture that is no longer seen off the page; its next draw makes it anew.
export const purge = (box) => {
  plotlyIfLoaded()?.purge(box);
  box.replaceChildren();
  forgetDrawn(box);
};
