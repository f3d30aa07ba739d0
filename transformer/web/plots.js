// How figures that Python made are put on a page.

import { say } from "./messages.js";
import { recoloured } from "./colours.js";
import { fontPx, plainLabel, shortLabel, squareCells } from "./labels.js";
import { declared } from "./link_text.js";
import { useLayoutEffect, useRef, useState } from "./preact.js";
import { page, showProblem } from "./store.js";

// ---- Plotly, from this server; or from elsewhere, in a page that has none ----

let source = () => new URL("./vendor/plotly-cartesian.min.js", import.meta.url).href;
/** @type {any} */
let loading = null;
/** @type {any} */
let library = null;

// address(): where a page without a server has it.
export const takePlotlyFrom = (address) => (source = address);

// A private reference: other pictures on a page may bring a Plotly of their own.
export const loadPlotly = () => {
  loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = source();
    script.onload = () => done((library = /** @type {any} */ (window).Plotly));
    script.onerror = () => {
      loading = null;
      failed(new Error(say("The drawing library could not be loaded; reload the page.")));
    };
    document.head.append(script);
  });
  return loading;
};

// The library, null until it is loaded.
export const plotlyIfLoaded = () => library;

// ---- what is kept of each picture that Plotly has drawn ----

// What belongs to a drawn box: {listens, whole}; whole: its figure with labels by Plotly.
const drawn = new WeakMap();
export const drawnIn = (box) => {
  if (!drawn.has(box)) drawn.set(box, { listens: false, whole: null });
  return drawn.get(box);
};

export const paperColour = () => getComputedStyle(document.body).backgroundColor;
// The figure of a drawn box, {data, layout}, with all that the page draws around it.
export const figureIn = (box) => drawnIn(box).whole ?? box;

// ---- for the last row of a room: all of a figure's type as large as the page's ----

const EM = 0.62; // an average letter's width in its size
const LINE = 1.25; // a line's height in it
const LEAST_PX = 16; // else the cells' texts are left out
const FEWEST = 4; // letters of a token that still say which it is

/** @typedef {{ size?: number }} Font */
/** @type {(font?: Font) => Font} */
const enlarged = (font) => ({ ...font, size: Math.max(fontPx(), font?.size ?? 0) });

// All type of a figure whose size is not known yet. Two bars' numbers stand one below the other: bars
// that lie become as much wider, and so do panels of curves one above the other.
export const enlarge = (figure) => {
  const { data, layout } = figure;
  layout.font = enlarged(layout.font);
  for (const name of Object.keys(layout).filter((one) => /^[xy]axis\d*$/.test(one))) {
    const axis = layout[name];
    axis.tickfont = enlarged(axis.tickfont);
    if (axis.title) axis.title.font = enlarged(axis.title.font);
  }
  for (const note of layout.annotations ?? []) note.font = enlarged(note.font);
  for (const { label } of layout.shapes ?? []) if (label) label.font = enlarged(label.font);
  for (const trace of data) {
    if (trace.type !== "heatmap" && trace.textfont) trace.textfont = enlarged(trace.textfont);
    if (!trace.colorbar) continue;
    trace.colorbar.tickfont = enlarged(trace.colorbar.tickfont);
    trace.colorbar.title = { text: "" }; // the picture's heading says what it shows
  }
  const panels = Object.keys(layout).filter((one) => /^yaxis\d*$/.test(one)).length;
  const curves = data.every(({ type }) => type === "scatter");
  if (curves && panels > 1 && layout.height) layout.height = Math.round(layout.height * 1.5);
  const lying = data.filter(({ type, orientation }) => type === "bar" && orientation === "h");
  if (lying.length > 1 && layout.height) layout.height = Math.round(layout.height * 1.3);
};

// The texts in the cells of a figure whose size is known: as large as there is room for, a token's
// shortened to that; none where it would be too small to be read.
export const enlargeCells = ({ data, layout }) => {
  const { l = 0, r = 0, t = 0, b = 0 } = layout.margin ?? {};
  for (const trace of data) {
    if (trace.type !== "heatmap" || !trace.texttemplate) continue;
    const [across, down] = cellsOf(trace);
    const wide = (layout.width - l - r) / across;
    const high = (layout.height - t - b) / down;
    const most = Math.min(fontPx(), high / LINE);
    const fitting = Math.max(FEWEST, Math.floor(wide / EM / most));
    if (trace.text) trace.text = trace.text.map((row) => row.map((one) => shortened(one, fitting)));
    const longest = Math.max(1, ...texts(trace).map((one) => [...plainLabel(one)].length));
    const size = Math.min(most, wide / EM / longest);
    if (size < LEAST_PX) delete trace.texttemplate;
    else trace.textfont = { ...trace.textfont, size: Math.floor(size) };
  }
};
const NUMBER = "−0.00"; // what a cell without a text of its own says
/** @type {(trace: any) => string[]} */
const texts = ({ text }) => (text ? text.flat() : [NUMBER]);
/** @type {(text: string, limit: number) => string} */
const shortened = (text, limit) => (text ? shortLabel(text, limit) : text);
/** @type {(trace: any) => number[]} */
const cellsOf = ({ z, text }) => {
  if (text) return [text[0].length, text.length];
  const shape = typeof z?.shape === "string" ? z.shape.split(",").map(Number) : null;
  return shape ? [shape[1], shape[0]] : [z[0].length, z.length];
};

// ---- drawing ----

const HEADS_BESIDE_PX = 130; // the width beside the cells of a map of heads

// The same object at every draw: otherwise Plotly would rebuild the picture.
export const PLAIN = {
  displaylogo: false,
  responsive: false,
  displayModeBar: false,
  // nothing leaves:
  showSendToCloud: false,
  showEditInChartStudio: false,
  plotlyServerURL: "",
};

// Take a picture that is no longer seen off the page; its next draw rebuilds it.
const purge = (box) => {
  plotlyIfLoaded()?.purge(box);
  box.replaceChildren();
  drawn.delete(box);
};
// Whether two lists hold the same.
export const isSame = (a, b) => a.every((one, place) => one === b?.[place]);
/**
 * Plotly's picture in a box: there once the part is seen, drawn anew when one of `wanted` changes, and taken
 * away when its tab is left. wanted: null for none. draw(isWanted) ends with what makes the result, which is
 * given back if this is what is wanted still; null before. on: {event: listener}, Plotly's
 * events, each with the drawn box.
 * @type {(plot: {part: any, box: {current: any}, wanted: any[] | null, draw: (isWanted: () => boolean) => Promise<any>, on: Record<string, (told: any, box: any) => void>}) => any}
 */
export const usePlot = ({ part, box, wanted, draw, on }) => {
  const latest = useRef(on);
  latest.current = on;
  const begun = useRef(/** @type {any[] | null} */ (null));
  const [shown, setShown] = useState(/** @type {any} */ (null));
  const listen = () => {
    if (drawnIn(box.current).listens) return;
    drawnIn(box.current).listens = true;
    for (const name of Object.keys(on))
      box.current.on(name, (told) => latest.current[name](told, box.current));
  };
  const begin = async () => {
    begun.current = wanted;
    try {
      const isWanted = () => begun.current === wanted;
      const made = await draw(isWanted);
      if (!isWanted()) return;
      listen();
      setShown(made());
    } catch (error) {
      showProblem(error.message);
    }
    part.owes(box, false);
  };
  const end = () => {
    if (begun.current) purge(box.current);
    begun.current = null;
  };
  useLayoutEffect(() => {
    if (part.left && begun.current) {
      end();
      setShown(null);
    }
    if (!wanted) part.owes(box, false);
    else if (!isSame(wanted, begun.current)) {
      part.owes(box, true);
      if (part.seen && part.width) begin();
    }
  }, [...(wanted ?? []), wanted === null, part.seen, part.left]);
  useLayoutEffect(
    () => () => {
      part.owes(box, false);
      end();
    },
    [],
  );
  return shown;
};

// Draw a figure that Python made, in light colours. Titles are the page's own headings.
// height: px; fit: {side, top, bar} for square cells; change: a last touch to the figure.
/** @type {(box: any, made: any, options?: any) => Promise<any>} */
export const drawPicture = async (box, made, { height, fit, change } = {}) => {
  const plotly = await loadPlotly();
  const figure = page.dark ? recoloured(made, declared.dark) : structuredClone(made);
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
  return figure;
};

// Above a figure stands its heading: of the room for a title, so many px stay.
export const trimTop = (layout, top) => {
  layout.height -= layout.margin.t - top;
  layout.margin = { ...layout.margin, t: top };
};

const NARROW_PX = 480;
// Pairs of bars close-fitting, their legend above them.
export const fitPairs = ({ layout }) => {
  trimTop(layout, 40);
  layout.height -= layout.margin.b - 50;
  layout.margin.b = 50;
  layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
  if (layout.width >= NARROW_PX) return;
  layout.xaxis.range[1] *= 1.25; // the longest bar's number has its width all the same
  layout.xaxis.nticks = 3;
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
