// Plotly, from this server, loaded when first needed; and how its figures are put on the page.
(() => {
  "use strict";
  const viz = window.viz;
  const LABEL_PX = 17; // room that one line of an axis' labels needs
  const FONT_PX = 14;
  const LABEL_GAP_PX = 12; // between the labels and the cells
  const TITLE_PX = 26; // an axis' title with the space around it
  const BAR_PX = 78; // a colour bar with its labels
  const HEADS_BESIDE_PX = 130; // what stands beside the cells of a map of heads
  const LONGEST = 11; // characters of a label on an axis
  const SHORTEST = 7; // the same where there is little room
  const LEAST_PX = 24; // a matrix of a single row
  const NARROW_PX = 480; // below this, axes say less, so that the cells keep some room
  let loading = null;
  let library = null;

  const source = () =>
    new URL(document.querySelector('meta[name="plotly-source"]').content, document.baseURI).href;

  // Fetch it, to be run when the first heatmap needs it: running it takes half a second.
  viz.preload = () => {
    const link = Object.assign(document.createElement("link"), { rel: "preload", as: "script" });
    link.href = source();
    document.head.append(link);
  };

  // A private reference: other pictures on a page may bring a Plotly of their own.
  viz.plotly = () => {
    loading ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = source();
      script.onload = () => done((library = window.Plotly));
      script.onerror = () => {
        loading = null;
        failed(new Error("The drawing library could not be loaded; reload the page."));
      };
      document.head.append(script);
    });
    return loading;
  };

  // The same object at every draw: Plotly would else build the picture anew.
  const PLAIN = {
    displaylogo: false, responsive: false, displayModeBar: false,
    showSendToCloud: false, showEditInChartStudio: false, plotlyServerURL: "",  // nothing leaves
  };
  let withTools = null;
  const tooled = (plotly) => {
    withTools ??= {
      ...PLAIN,
      displayModeBar: "hover",
      modeBarButtonsToRemove: ["toImage", "sendChartToCloud", "autoScale2d", "zoomIn2d", "zoomOut2d"],
      modeBarButtonsToAdd: [{
        name: "save", title: "Save as a picture", icon: plotly.Icons.camera,
        click: (box) => plotly.downloadImage(box.vizFigure, { format: "png", scale: 2, filename: "attention" }),
      }],
    };
    return withTools;
  };

  // Draw a figure that the server made. Titles are the page's own headings.
  // height: px; fit: {side, top, bar} for square cells; change: a last touch to the figure;
  // tools: zoom and save, and labels of the page's own (Plotly's take longer than all the cells).
  // numbers, table: see viz.tableBehind. on: {event: listener}, Plotly's events, attached once.
  viz.draw = async (box, json, { height, fit, change, numbers, table, on, tools = false } = {}) => {
    const plotly = await viz.plotly();
    const figure = JSON.parse(json);
    const { layout } = figure;
    delete layout.title;
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: "#8b949e", activecolor: "#0a5cad" };
    for (const axis of [layout.xaxis, layout.yaxis]) {
      if (axis?.title) axis.title.font = { size: FONT_PX };
    }
    if (fit) square(layout, figure, fit);
    else Object.assign(layout, { width: box.clientWidth, height: height ?? layout.height });
    change?.(figure);
    box.style.height = `${layout.height}px`;
    if (!tools) {
      await plotly.react(box, figure.data, layout, PLAIN);
      attach(box, on);
      viz.tableBehind(box, figure, box.closest(".wide") ?? box, { numbers, table });
      return figure;
    }
    box.vizFigure = { data: figure.data, layout: { ...layout, paper_bgcolor: viz.dark ? "#0d1117" : "#ffffff" } };
    const bare = { ...layout };
    for (const axis of ["xaxis", "yaxis"]) {
      bare[axis] = { ...layout[axis], showticklabels: false, ticks: "", title: { text: "" } };
    }
    await plotly.react(box, figure.data, bare, tooled(plotly));
    attach(box, on);
    viz.axisLabels(box);
    viz.tableBehind(box, figure, box.parentElement, { numbers, table });
    return figure;
  };

  // A map of heads, layers down and heads across, close-fitting; with numbers in its cells if each
  // has numberPx for one.
  viz.drawHeadMap = (box, json, nLayers, numberPx, on) => viz.draw(box, json, {
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

  const attach = (box, listeners = {}) => {
    if (box.vizListens) return;
    box.vizListens = true;
    for (const [event, listener] of Object.entries(listeners)) box.on(event, listener);
  };

  // Take the pictures of a part that is no longer seen off the page; its next draw makes them anew.
  viz.purge = (root) => {
    for (const box of root.querySelectorAll(".js-plotly-plot")) {
      library.purge(box);
      box.replaceChildren();
      box.vizListens = false;
      for (const own of ["vizLabels", "vizTable"]) {
        box[own]?.remove();
        box[own] = null;
      }
    }
  };

  // Labels beside a heatmap drawn with `tools`, where its axes now stand (they move with a zoom).
  viz.axisLabels = (box) => {
    const { xaxis, yaxis } = box._fullLayout;
    const { layout } = box.vizFigure;
    const key = JSON.stringify([
      layout.xaxis.ticktext, layout.yaxis.ticktext, layout.width, layout.height, xaxis.range, yaxis.range,
    ]);
    if (box.vizLabels?.dataset.key === key) return;
    box.vizLabels?.remove();
    const made = (box.vizLabels = viz.el("div", "axis-labels"));
    made.setAttribute("aria-hidden", "true");
    made.dataset.key = key;
    const add = (name, axis, edge) => {
      const { tickvals, ticktext } = layout[name];
      tickvals.forEach((value, place) => {
        const at = axis.l2p(value);
        if (at < 0 || at > axis._length) return;
        const label = viz.el("span", name, plain(ticktext[place]));
        const side = name === "xaxis" ? ["left", "top"] : ["top", "right"];
        label.style[side[0]] = `${axis._offset + at}px`;
        label.style[side[1]] = `${edge}px`;
        made.append(label);
      });
    };
    add("xaxis", xaxis, yaxis._offset + yaxis._length + 5);
    add("yaxis", yaxis, layout.width - xaxis._offset + 6);
    const title = (name, axis, key) => {
      const shown = viz.el("span", `${name} title`, layout[name].title.text);
      shown.style[key] = `${axis._offset + axis._length / 2}px`;
      made.append(shown);
    };
    title("xaxis", xaxis, "left");
    title("yaxis", yaxis, "top");
    Object.assign(made.style, { width: `${layout.width}px`, height: `${layout.height}px` });
    box.after(made);
  };

  // Margins from the labels' own widths, so that cells are square and use all the room there is.
  const square = (layout, figure, { side, top = 8, bar = false }) => {
    const { xaxis, yaxis } = layout;
    const narrow = side.width < NARROW_PX;
    for (const axis of [xaxis, yaxis]) {
      axis.automargin = false;
      axis.ticktext = axis.ticktext.map((label) => short(label, narrow ? SHORTEST : LONGEST));
      axis.title.standoff = 6;
      if (narrow) axis.title.text = axis.title.text.split(" (")[0];
    }
    const room = (axis) => viz.labelRoom(axis) + TITLE_PX;
    const [left, bottom] = [room(yaxis), room(xaxis)];
    const right = bar ? BAR_PX : 8;
    for (const trace of figure.data) {
      trace.showscale = bar && trace.showscale !== false;
      if (trace.colorbar) Object.assign(trace.colorbar, { title: { text: "" }, xpad: 6 });
    }
    const [across, down] = [span(xaxis), span(yaxis)];
    const cell = Math.min((side.width - left - right) / across, (side.height - top - bottom) / down);
    const size = Math.max(cell, 120 / Math.max(across, down), LEAST_PX / Math.min(across, down));
    const [width, height] = [Math.round(size * across), Math.round(size * down)];
    thin(xaxis, width);
    thin(yaxis, height);
    layout.margin = { l: left, r: right, t: top, b: bottom };
    layout.width = left + width + right;
    layout.height = top + height + bottom;
  };
  const span = (axis) => Math.abs(axis.range[1] - axis.range[0]);

  // Drop labels of a token axis that would lie on each other.
  const thin = (axis, pixels) => {
    const count = span(axis);
    const gap = axis.tickvals.length > 1 ? axis.tickvals[1] - axis.tickvals[0] : 1;
    const every = Math.ceil(LABEL_PX / ((pixels / count) * gap));
    if (every <= 1) return;
    axis.tickvals = axis.tickvals.filter((_, place) => place % every === 0);
    axis.ticktext = axis.ticktext.filter((_, place) => place % every === 0);
  };

  // Axis labels come escaped for Plotly, between two direction marks.
  const plain = (label) =>
    label.replace(/[\u2068\u2069]/g, "").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  viz.plainLabel = plain;
  const escaped = (text) =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const short = (label, limit) => {
    const text = [...plain(label)];
    const shown = text.length > limit ? `${text.slice(0, limit - 1).join("")}…` : text.join("");
    return `\u2068${escaped(shown)}\u2069`;
  };
  // The labels of a drawn figure's axis, as short as a phone needs them.
  viz.shortLabels = (axis) => {
    axis.ticktext = axis.ticktext.map((label) => short(label, SHORTEST));
  };
  const pen = document.createElement("canvas").getContext("2d");
  const widthOf = (label) => {
    pen.font = `${FONT_PX}px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif`;
    return pen.measureText(plain(label)).width;
  };
  // The room in px that an axis' widest label takes.
  viz.labelRoom = (axis) => Math.ceil(Math.max(0, ...(axis.ticktext ?? []).map(widthOf))) + LABEL_GAP_PX;

  // The pixels of a cell range in a drawn heatmap: {left, top, width, height} within the box.
  viz.cells = (box, x0, x1, y0, y1) => {
    const { xaxis, yaxis } = box._fullLayout;
    const clamp = (axis, value) => Math.min(axis._length, Math.max(0, axis.l2p(value)));
    const [left, right] = [clamp(xaxis, x0 - 0.5), clamp(xaxis, x1 + 0.5)];
    const [top, bottom] = [clamp(yaxis, y0 - 0.5), clamp(yaxis, y1 + 0.5)];
    return {
      left: xaxis._offset + left,
      top: yaxis._offset + top,
      width: right - left,
      height: bottom - top,
    };
  };
})();
