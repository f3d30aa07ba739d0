// Draw figures made in Python.

import { say } from "./messages.js";
import { recoloured, fontPx } from "./theme.js";
import { FONT_PX, plainLabel, shortLabel, squareCells, textWidth } from "./labels.js";
import { declared } from "./declared.js";
import { useLayoutEffect, useRef, useState } from "./preact.js";
import { page, showProblem } from "./store.js";

/** @import { Part } from "./part.js" */
/** @import { DrawOptions, Drawn, Figure, PlotlyListeners, PlotlyObject, Pointed } from "./types" */

// ---- Plotly, from this server, or in a saved page from its data ----

/** @type {() => string | Promise<string>} */
let source = () => new URL("./vendor/plotly-cartesian.min.js", import.meta.url).href;
/** @type {Promise<PlotlyObject> | null} */
let loading = null;
/** @type {PlotlyObject | null} */
let library = null;

// address(): its address in a page without a server.
/** @type {(address: typeof source) => void} */
export const takePlotlyFrom = (address) => (source = address);

// Fetch it while nothing else is to be done.
export const prefetchPlotly = async () => {
  const link = document.createElement("link");
  document.head.append(
    Object.assign(link, { rel: "prefetch", as: "script", href: await source() }),
  );
};

// A private reference: other pictures on a page may load another Plotly.
/** @type {() => Promise<PlotlyObject>} */
export const loadPlotly = () => {
  loading ??= fetchPlotly().catch(() => {
    loading = null;
    throw new Error(say("A part of the page could not be loaded; reload the page."));
  });
  return loading;
};
/** @type {() => Promise<PlotlyObject>} */
const fetchPlotly = async () => {
  const script = document.createElement("script");
  script.src = await source();
  await new Promise((done, failed) => {
    Object.assign(script, { onload: done, onerror: failed });
    document.head.append(script);
  });
  const { Plotly } = /** @type {{ Plotly: PlotlyObject }} */ (/** @type {unknown} */ (window));
  return (library = Plotly);
};

// The library, null until it is loaded.
export const plotlyIfLoaded = () => library;

// ---- the state of each picture drawn by Plotly ----

const listening = new WeakSet(); // drawn boxes whose events are followed

export const paperColour = () => getComputedStyle(document.body).backgroundColor;

// ---- type: in projector mode as large as the page's ----

const EM = 0.62; // an average letter's width in its size
const LINE = 1.25; // a line's height in it
const LEAST_PX = 16; // else the cells' texts are left out
const MIN_LETTERS = 4; // that identify a token

/** @type {(value: unknown, name?: string) => unknown} */
const enlarged = (value, name = "") => {
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return value.map((each) => enlarged(each));
  const all = Object.entries(value).map(([key, each]) => [key, enlarged(each, key)]);
  const size = /font$/.test(name) && {
    size: Math.max(fontPx(), "size" in value ? Number(value.size ?? 0) : 0),
  };
  return { ...Object.fromEntries(all), ...size };
};
// Enlarge all type of a figure whose size is not known yet. Numbers of two bars are one below the other, and a
// map's row takes a line, so horizontal bars and maps with numbers grow, too.
/** @type {(figure: Figure) => Figure} */
export const enlarge = (figure) => {
  const { data, layout } = /** @type {Figure} */ (enlarged(figure));
  for (const { colorbar } of data) if (colorbar) colorbar.title = { text: "" }; // the heading says it
  const upright = Object.keys(layout).filter((name) => /^yaxis\d*$/.test(name));
  if (upright.length > 1) for (const name of upright) delete layout[name].title; // nor have they room: the legend
  const lying = data.filter(({ type, orientation }) => type === "bar" && orientation === "h");
  const numbered = data.some(({ type, texttemplate }) => type === "heatmap" && texttemplate);
  if (layout.height && (lying.length > 1 || numbered))
    layout.height = Math.round(layout.height * 1.3);
  return { data, layout };
};

// The texts in the cells of a figure whose size is known, where there is room: for the last row as large as
// they can be, a token's shortened to that; none where it would be too small to be read.
/** @type {(figure: Figure) => void} */
const fitTexts = ({ data, layout }) => {
  const { l, r, t, b } = layout.margin;
  for (const trace of data) {
    if (trace.type !== "heatmap" || !trace.texttemplate) continue;
    const [across, down] = cellsOf(trace);
    const wide = (layout.width - l - r - (trace.colorbar ? BAR_PX : 0)) / across;
    if (page.projector) {
      const most = Math.min(fontPx(), (layout.height - t - b) / down / LINE);
      const fitting = Math.max(MIN_LETTERS, Math.floor(wide / EM / most));
      if (trace.text)
        trace.text = trace.text.map((/** @type {string[]} */ row) =>
          row.map((label) => label && shortLabel(label, fitting)),
        );
      /** @type {string[]} */
      const texts = trace.text?.flat() ?? [SAMPLE_NUMBER];
      const longest = Math.max(1, ...texts.map((label) => [...plainLabel(label)].length));
      const size = Math.min(most, wide / EM / longest);
      if (size < LEAST_PX) delete trace.texttemplate;
      else trace.textfont = { ...trace.textfont, size: Math.floor(size) };
    } else if (!trace.text && wide < textWidth(SAMPLE_NUMBER)) delete trace.texttemplate;
  }
};
const SAMPLE_NUMBER = "−0.00"; // the text of a cell without one
/** @type {(trace: PlotlyObject) => number[]} */
const cellsOf = ({ z, text }) => {
  if (text) return [text[0].length, text.length];
  const shape = typeof z?.shape === "string" ? z.shape.split(",").map(Number) : null;
  return shape ? [shape[1], shape[0]] : [z[0].length, z.length];
};

// ---- drawing ----

const TITLE_PX = 64; // of a figure's room above its cells, for the title in the page
const HEIGHT_PX = 420; // default
const BAR_PX = 78; // a colour bar

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

const NOT_OURS = ["toImage", "sendChartToCloud", "autoScale2d", "zoomIn2d", "zoomOut2d"];
/** @type {object | null} */
let tools = null; // the same at every draw, see PLAIN
/**
 * With tools to zoom, and to save the picture.
 * @type {(plotly: PlotlyObject) => object}
 */
export const withTools = (plotly) => {
  const save = (/** @type {Drawn} */ box) =>
    plotly.downloadImage(box, { format: "png", scale: 2, filename: "attention" });
  tools ??= {
    ...PLAIN,
    displayModeBar: "hover",
    showAxisDragHandles: false, // they cover the labels, which can be clicked
    modeBarButtonsToRemove: NOT_OURS,
    modeBarButtonsToAdd: [
      { name: "save", title: say("Save as a picture"), icon: plotly.Icons.camera, click: save },
    ],
  };
  return tools;
};

// Remove a picture that is no longer visible; its next draw rebuilds it.
/** @type {(box: Drawn) => void} */
const purge = (box) => {
  plotlyIfLoaded()?.purge(box);
  box.replaceChildren();
  listening.delete(box);
};
// Whether two lists have the same elements.
/** @type {(a: unknown[], b: unknown[] | null) => boolean} */
const isSame = (a, b) => a.every((each, place) => each === b?.[place]);
/**
 * Plotly's picture in a box: drawn once the part is visible, again when one of `wanted` changes, and removed
 * when its tab is hidden. wanted: null for none. draw(isWanted) resolves to a function whose result is
 * returned if it is still wanted; null before. on: {event: listener}, Plotly's events, each with the drawn
 * box.
 * @template Result
 * @param {{ part: Part, box: { current: Drawn }, wanted: unknown[] | null, draw: (isWanted: () => boolean) => Promise<() => Result>, on: PlotlyListeners }} plot
 * @returns {Result | null}
 */
export const usePlot = ({ part, box, wanted, draw, on }) => {
  const latest = useRef(on);
  latest.current = on;
  const begun = useRef(/** @type {unknown[] | null} */ (null));
  const drawing = useRef(0); // draws that have not ended
  const [result, setResult] = useState(/** @type {Result | null} */ (null));
  const listen = () => {
    if (listening.has(box.current)) return;
    listening.add(box.current);
    for (const name of Object.keys(on))
      box.current.on(name, (/** @type {Pointed} */ event) =>
        latest.current[name](event, box.current),
      );
  };
  const takeBack = useRef(() => {}); // the last problem
  const begin = async () => {
    begun.current = wanted;
    drawing.current += 1;
    takeBack.current();
    try {
      const isWanted = () => begun.current === wanted;
      const show = await draw(isWanted);
      if (!isWanted()) return;
      listen();
      setResult(show());
    } catch (error) {
      takeBack.current = showProblem(error.message);
    } finally {
      drawing.current -= 1;
    }
    part.setPending(box, false);
  };
  const end = () => {
    if (begun.current) purge(box.current);
    begun.current = null;
  };
  useLayoutEffect(() => {
    if (part.isHidden && begun.current) {
      end();
      setResult(null);
    }
    if (wanted && !isSame(wanted, begun.current)) {
      part.setPending(box, true);
      if (part.seen && part.width) begin();
    } else if (!wanted || !drawing.current) part.setPending(box, false); // it may have been another, out of sight
  }, [...(wanted ?? []), wanted === null, part.seen, part.isHidden]);
  useLayoutEffect(
    () => () => {
      part.setPending(box, false);
      end();
    },
    [],
  );
  return result;
};

// Draw a figure made in Python: as wide as the page, or wider if its layout says so. Titles are the page's
// own headings. height: px; fit: for square cells, see squareCells, or a function of the box; change: a last
// touch to the figure; config(plotly): Plotly's.
/** @type {(box: Drawn, original: Figure, options?: DrawOptions) => Promise<Figure>} */
export const drawPicture = async (
  box,
  original,
  { height, fit, change, config = () => PLAIN } = {},
) => {
  const plotly = await loadPlotly();
  const coloured = page.dark ? recoloured(original, declared.dark) : structuredClone(original);
  const figure = page.projector ? enlarge(coloured) : coloured;
  const { layout } = figure;
  const margin = { l: 80, r: 80, t: 100, b: 80, ...layout.margin }; // Plotly's default, unless the figure sets one
  const saved = Math.max(0, Math.min(TITLE_PX, margin.t - 8));
  delete layout.title;
  layout.margin = { ...margin, t: margin.t - saved };
  layout.height = height ?? (layout.height ? layout.height - saved : HEIGHT_PX);
  for (const name of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key)))
    if (layout[name].title) layout[name].title.font = { size: fontPx() };
  const room = typeof fit === "function" ? fit(box) : fit;
  if (room)
    squareCells(figure, { ...room, side: { width: box.clientWidth, height: 0, ...room.side } });
  else {
    const own = Math.round(((layout.width ?? 0) * fontPx()) / FONT_PX);
    layout.width = Math.max(box.clientWidth, own);
  }
  change?.(figure);
  fitTexts(figure);
  box.style.height = `${layout.height}px`;
  layout.paper_bgcolor = paperColour(); // of saved pictures too
  await plotly.react(box, figure.data, layout, config(plotly));
  return figure;
};

// Have the browser save a file that the page made.
/** @type {(blob: Blob, name: string) => void} */
export const saveFile = (blob, name) => {
  const link = Object.assign(document.createElement("a"), {
    href: URL.createObjectURL(blob),
    download: name,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};
