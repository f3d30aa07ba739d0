// Downloads: pictures drawn in the page, and the run in the server's formats. The server sends bytes as an
// answer; the file is made here.

import { ask, decodeBytes, hasServer } from "../../web/ask.js";
import { loadPlotly, paperColour, saveFile } from "../../web/plots.js";
import { escapeLabel } from "../../web/labels.js";
import { capital, numeral, say } from "../../web/messages.js";
import { headName, siteName } from "../../web/sites.js";
import { mounted, trying } from "../../web/part.js";
import { html, useLayoutEffect, useState } from "../../web/preact.js";
import { laterModule } from "../../web/scripts.js";
import { isOwn, page } from "../../web/store.js";

const GRID_PX = 64; // of a head in the picture of all heads
const EDGE_PX = 22; // its numbers
const LONGEST_NAME = 60; // letters of a file's

// ---- the pictures that can be seen ----

const isSeen = (part) => part.getClientRects().length > 0;
// Whether it belongs to the shown run: a hidden part may still hold an earlier run's.
const isCurrent = (box) => isSeen(box) && !box.closest("[aria-busy=true]");
// A picture is named after the last heading before it.
const nameOf = (box) => {
  const before = [...document.querySelectorAll("#right :is(h2, h3, h4)")].filter(
    (title) =>
      isSeen(title) && title.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING,
  );
  const title = before.at(-1)?.textContent.trim();
  const label = before.at(-1)?.querySelector(".head-label")?.textContent; // its last part
  const named =
    label && title && say("{title}: {part}", { title: title.slice(0, -label.length), part: label });
  return named || title || "picture";
};
// {name, box, draw(format)} of every picture of the page.
const picturesSeen = () => {
  const figure = (box) => {
    const name = nameOf(box);
    return { name, box, draw: (format) => figurePicture(name, box, format) };
  };
  const found = [...document.querySelectorAll(".js-plotly-plot")].filter(isCurrent).map(figure);
  const grid = document.querySelector(".head-grid");
  if (grid && isCurrent(grid) && grid.querySelector("canvas"))
    found.push({ name: say("Every head"), box: grid, draw: (format) => gridPicture(grid, format) });
  const journey = document.querySelector(".journey");
  if (journey && isCurrent(journey))
    found.unshift({ name: say("Journey"), box: journey, draw: journeyPicture });
  return found;
};

// The text, what comes next and the journey, as they are drawn.
const PAGE_PICTURE = "views/export/page_picture.js";
const journeyPicture = async (format) => {
  const [{ pagePicture }] = await Promise.all([laterModule(PAGE_PICTURE), document.fonts.ready]);
  const { svg, width, height } = pagePicture(document.querySelector("#columns"));
  const blob = new Blob([svg], { type: "image/svg+xml" });
  return format === "svg" ? blob : drawn(blob, 2 * width, 2 * height);
};

const figurePicture = async (name, box, format) => {
  const { data, layout } = box;
  const { l = 60, r = 20, t = 20, b = 60 } = layout.margin ?? {};
  const title = { text: escapeLabel(name), x: 0.01, xanchor: "left", font: { size: 17 } };
  const [width, height] = [layout.width, layout.height + 36];
  const look = { title, paper_bgcolor: paperColour(), margin: { l, r, t: t + 36, b }, height };
  const plotly = await loadPlotly();
  const size = { format, width, height, scale: format === "png" ? 2 : 1 };
  const url = await plotly.toImage({ data, layout: { ...layout, ...look } }, size);
  return (await fetch(url)).blob();
};

// Every head in one picture: layers across, heads down, both numbered.
const gridPicture = async (grid, format) => {
  const heads = [...grid.querySelectorAll("canvas")];
  const across = Number(grid.dataset.layers);
  const down = heads.length / across;
  const [width, height] = [EDGE_PX + across * GRID_PX, EDGE_PX + down * GRID_PX];
  const start = (place) => EDGE_PX + place * GRID_PX;
  const image = (canvas, at) =>
    `<image x="${start(at % across)}" y="${start(Math.floor(at / across))}" width="${GRID_PX - 4}" height="${GRID_PX - 4}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${canvas.toDataURL()}"/>`;
  const number = (place, x, y) => `<text x="${x}" y="${y}" text-anchor="middle">${place}</text>`;
  const numbers = [
    ...Array.from({ length: across }, (_, layer) => number(layer, start(layer + 0.5), 15)),
    ...Array.from({ length: down }, (_, head) => number(head, 10, start(head + 0.5) + 5)),
  ];
  const { color } = getComputedStyle(document.body);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="14" fill="${color}"><rect width="100%" height="100%" fill="${paperColour()}"/>${numbers.join("")}${heads.map(image).join("")}</svg>`;
  const blob = new Blob([svg], { type: "image/svg+xml" });
  return format === "svg" ? blob : drawn(blob, 2 * width, 2 * height);
};
// An SVG as a PNG of so many pixels.
const drawn = async (svg, width, height) => {
  const picture = Object.assign(new Image(), { src: URL.createObjectURL(svg) });
  await picture.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  canvas.getContext("2d")?.drawImage(picture, 0, 0, width, height);
  URL.revokeObjectURL(picture.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
};

// ---- files ----

const safe = (text) =>
  text
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, LONGEST_NAME);
const sizeOf = ({ size }) =>
  size < 1e5 ? `${Math.ceil(size / 1e3)} KB` : `${numeral((size / 1e6).toFixed(1))} MB`;

const pictureFile = async (picture, format) => {
  if (!picture) throw new Error(say("No picture can be seen now; open a tab that has one."));
  const name = [page.run.model, picture.name].filter(Boolean).join(" ");
  return { blob: await picture.draw(format), name: `${safe(name) || "picture"}.${format}` };
};
// withNetwork: of "html", whether the network is in the file too.
const runFile = async (form, withNetwork) => {
  const head = ["csv", "html", "py"].includes(form)
    ? { site: siteName(page.head), head: page.head.head }
    : {};
  const { origin, pathname } = window.location;
  const address = form === "py" ? { address: origin + pathname } : {};
  const { run } = page.run;
  const answer = await (form === "html" && withNetwork
    ? ask("offline_page", { run, ...head })
    : ask("export", { run, form, ...head, ...address }));
  const content = answer.base64 ? decodeBytes(answer.base64) : answer.text;
  return { blob: new Blob([content], { type: answer.type }), name: answer.name };
};

const Exports = () => {
  const [isOpen, setOpen] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [note, setNote] = useState("");
  const [seen, setSeen] = useState(/** @type {any[]} */ ([]));
  const [picked, setPicked] = useState(null); // the box of the picture that the visitor chose
  const look = () => setSeen(picturesSeen());
  // A picture is offered once it is drawn and until it is out of date.
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    look();
    const follow = new MutationObserver(look);
    follow.observe(document.body, { subtree: true, attributeFilter: ["aria-busy"] });
    return () => follow.disconnect();
  }, [isOpen]);

  const save = trying(async (file) => {
    setBusy(true);
    setNote(say("Making the file …"));
    let said = "";
    try {
      const { blob, name } = await file();
      saveFile(blob, name);
      said = say("Saved {name} ({size}).", { name, size: sizeOf(blob) });
    } finally {
      setNote(said);
      setBusy(false);
    }
  });
  const [withNetwork, setWithNetwork] = useState(false);
  const { run } = page;
  const isOwnRun = Boolean(run) && isOwn(run.model);
  const head = isOpen && page.head;
  const disabled = !run?.run || isBusy;
  const chosen = Math.max(
    0,
    seen.findIndex(({ box }) => box === picked),
  );
  const picture = (format, words) => html`<button type="button" data-picture=${format}
    disabled=${disabled} onClick=${() => save(() => pictureFile(seen[chosen], format))}>${words}</button>`;
  const form = (name, words) => html`<button type="button" data-form=${name} disabled=${disabled}
    onClick=${() => save(() => runFile(name, withNetwork && !isOwnRun))}>${words}</button>`;
  const option = ({ name }, at) => html`<option selected=${at === chosen}>${name}</option>`;
  const pick = ({ target }) => setPicked(seen[target.selectedIndex].box);
  const filesOfRun = html`<div class="export-row">
      <span class="what">${capital(say("head"))} <b class="chosen-head">${
        head ? headName(head) : "–"
      }</b></span>
      ${form("csv", "CSV")}
    </div>
    <div class="export-row">
      <span class="what">${say("This run")}</span>
      ${form("json", "JSON")}${form("npz", "NPZ")}${form("html", say("Offline page"))}
      ${!isOwnRun && form("py", "Python")}
      ${
        !isOwnRun &&
        html`<label><input type="checkbox" class="with-network" checked=${withNetwork}
          onChange=${({ target }) => setWithNetwork(target.checked)} />
          ${say("Offline page with the network in it, in which everything can be tried")}</label>`
      }
    </div>`;
  return html`<details class="exports" onToggle=${({ target }) => setOpen(target.open)}>
    <summary>${say("Export")}</summary>
    <div class="export-row">
      <label>${say("Picture")} <select class="which" onPointerDown=${look} onFocus=${look}
        onChange=${pick}>${seen.map(option)}</select></label>
      ${picture("png", "PNG")}${picture("svg", "SVG")}
    </div>
    ${hasServer() && filesOfRun}
    <p class="hint export-note" role="status">${note}</p>
  </details>`;
};
export const mount = mounted(Exports);
