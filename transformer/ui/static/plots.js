// How figures that Python made are put on a page.

import { placeAxisLabels } from "./axis_labels.js";
import { drawnIn, forgetDrawn, paperColour } from "./drawn.js";
import { fontPx } from "./labels.js";
import { say } from "./messages.js";
import { loadPlotly, plotlyIfLoaded } from "./plotly.js";
import { enlarge, enlargeCells } from "./projected.js";
import { squareCells } from "./square_cells.js";
import { page } from "../../web/store.js";
import { tableOf } from "./table_content.js";
import { attachTable, detachTable } from "./tables.js";

const HEADS_BESIDE_PX = 130; // what stands beside the cells of a map of heads

// The same object at every draw: Plotly would else build the picture anew.
const PLAIN = {
  displaylogo: false,
  responsive: false,
  displayModeBar: false,
  // nothing leaves:
  showSendToCloud: false,
  showEditInChartStudio: false,
  plotlyServerURL: "",
};
const NOT_OURS = ["toImage", "sendChartToCloud", "autoScale2d", "zoomIn2d", "zoomOut2d"];
/** @type {any} */
let withTools = null;
const configWithTools = (plotly) => {
  withTools ??= {
    ...PLAIN,
    displayModeBar: "hover",
    modeBarButtonsToRemove: NOT_OURS,
    modeBarButtonsToAdd: [
      {
        name: "save",
        title: say("Save as a picture"),
        icon: plotly.Icons.camera,
        click: (box) =>
          plotly.downloadImage(drawnIn(box).whole, {
            format: "png",
            scale: 2,
            filename: "attention",
          }),
      },
    ],
  };
  return withTools;
};

const listen = (box, listeners = {}) => {
  if (drawnIn(box).listens) return;
  drawnIn(box).listens = true;
  for (const [event, listener] of Object.entries(listeners)) box.on(event, listener);
};

// Draw a figure that Python made: as JSON, or an object, which is changed. Titles are the page's own
// headings.
// height: px; fit: {side, top, bar} for square cells; change: a last touch to the figure;
// tools: zoom and save, and labels of the page's own (Plotly's take longer than all the cells).
// on: {event: listener}, Plotly's events, attached once.
/** @type {(box: any, made: any, options?: any) => Promise<any>} */
export const drawPicture = async (box, made, { height, fit, change, on, tools = false } = {}) => {
  const plotly = await loadPlotly();
  const figure = typeof made === "string" ? JSON.parse(made) : made;
  const { layout } = figure;
  delete layout.title;
  layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: "#8b949e", activecolor: "#0a5cad" };
  for (const axis of [layout.xaxis, layout.yaxis]) {
    if (axis?.title) axis.title.font = { size: fontPx() };
  }
  if (page.projector) enlarge(figure);
  if (fit) squareCells(figure, fit);
  else Object.assign(layout, { width: box.clientWidth, height: height ?? layout.height });
  change?.(figure);
  if (page.projector) enlargeCells(figure);
  box.style.height = `${layout.height}px`;
  if (tools) await drawWithTools(plotly, box, figure, on);
  else {
    await plotly.react(box, figure.data, layout, PLAIN);
    listen(box, on);
  }
  return figure;
};
// The same, with its table behind it; numbers, table: see tableOf.
/** @type {(box: any, made: any, options?: any) => Promise<any>} */
export const drawFigure = async (box, made, { numbers, table, ...options } = {}) => {
  const figure = await drawPicture(box, made, options);
  const after = options.tools ? box.parentElement : (box.closest(".wide") ?? box);
  attachTable(box, tableOf(box, figure, { numbers, table }), after);
  return figure;
};

const drawWithTools = async (plotly, box, { data, layout }, on) => {
  const kept = data.map((trace) => ({ ...trace })); // a closer look changes what is drawn
  drawnIn(box).whole = { data: kept, layout: { ...layout, paper_bgcolor: paperColour() } };
  const bare = { ...layout };
  for (const axis of ["xaxis", "yaxis"]) {
    bare[axis] = { ...layout[axis], showticklabels: false, ticks: "", title: { text: "" } };
  }
  for (const trace of data) trace.showscale = false;
  await plotly.react(box, data, bare, configWithTools(plotly));
  listen(box, on);
  placeAxisLabels(box);
};

// A map of heads, layers down and heads across, close-fitting; with numbers in its cells if each
// has numberPx for one.
export const drawHeadMap = (box, json, nLayers, numberPx, on) =>
  drawFigure(box, json, {
    on,
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
export const purgeFigures = (root) => {
  for (const box of root.querySelectorAll(".js-plotly-plot")) {
    purge(box);
    detachTable(box);
  }
};
