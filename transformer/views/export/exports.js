// Downloads: pictures drawn in the page, and the run in the server's formats. The server sends bytes as an
// answer; the file is made here.

import { ask, decodeBytes, hasServer } from "../../web/ask.js";
import { loadPlotly, paperColour, saveFile } from "../../web/plots.js";
import { escapeLabel } from "../../web/labels.js";
import { capital, numeral, say } from "../../web/messages.js";
import { headName, siteName } from "../../web/sites.js";
import { mounted, trying } from "../../web/part.js";
import { computed, html, useLayoutEffect, useState } from "../../web/preact.js";
import { laterModule } from "../../web/scripts.js";
import { isOwn, page } from "../../web/store.js";

/** @import { ComponentChild } from "preact" */
/** @import { ChangeOf } from "../../web/types" */
/** @import { NamedFile, PlotBox, VisiblePicture } from "./types" */

const GRID_PX = 64; // of a head in the picture of all heads
const EDGE_PX = 22; // its numbers
const MAX_LETTERS = 60; // of a file's name

// ---- the pictures that can be seen ----

/** @type {(part: Element) => boolean} */
const isSeen = (part) => part.getClientRects().length > 0;
// Whether it belongs to the shown run: a hidden part may still hold an earlier run's.
/** @type {(box: Element) => boolean} */
const isCurrent = (box) => isSeen(box) && !box.closest("[aria-busy=true]");
// A picture is named after the last heading before it.
/** @type {(box: Element) => string} */
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
// Every picture that can be seen.
/** @type {() => VisiblePicture[]} */
const visiblePictures = () => {
  /** @type {(box: PlotBox) => VisiblePicture} */
  const figure = (box) => {
    const name = nameOf(box);
    return { name, box, draw: (format) => figurePicture(name, box, format) };
  };
  /** @type {NodeListOf<PlotBox>} */
  const boxes = document.querySelectorAll(".js-plotly-plot");
  const pictures = [...boxes].filter(isCurrent).map(figure);
  /** @type {HTMLElement | null} */
  const grid = document.querySelector(".head-grid");
  if (grid && isCurrent(grid) && grid.querySelector("canvas")) {
    const name = say("Every head");
    pictures.push({ name, box: grid, draw: (format) => gridPicture(grid, format) });
  }
  const journey = document.querySelector(".journey");
  if (journey && isCurrent(journey))
    pictures.unshift({ name: say("Journey"), box: journey, draw: journeyPicture });
  return pictures;
};

// The text, what comes next and the journey, as they are drawn.
const PAGE_PICTURE = "views/export/page_picture.js";
/** @type {(format: string) => Promise<Blob>} */
const journeyPicture = async (format) => {
  const [{ pagePicture }] = await Promise.all([laterModule(PAGE_PICTURE), document.fonts.ready]);
  const { svg, width, height } = pagePicture(document.querySelector("#columns"));
  const blob = new Blob([svg], { type: "image/svg+xml" });
  return format === "svg" ? blob : pngOf(blob, 2 * width, 2 * height);
};

/** @type {(name: string, box: PlotBox, format: string) => Promise<Blob>} */
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
/** @type {(grid: HTMLElement, format: string) => Promise<Blob>} */
const gridPicture = async (grid, format) => {
  const heads = [...grid.querySelectorAll("canvas")];
  const across = Number(grid.dataset.layers);
  const down = heads.length / across;
  const [width, height] = [EDGE_PX + across * GRID_PX, EDGE_PX + down * GRID_PX];
  const start = (/** @type {number} */ place) => EDGE_PX + place * GRID_PX;
  /** @type {(canvas: HTMLCanvasElement, at: number) => string} */
  const image = (canvas, at) =>
    `<image x="${start(at % across)}" y="${start(Math.floor(at / across))}" width="${GRID_PX - 4}" height="${GRID_PX - 4}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${canvas.toDataURL()}"/>`;
  /** @type {(place: number, x: number, y: number) => string} */
  const number = (place, x, y) => `<text x="${x}" y="${y}" text-anchor="middle">${place}</text>`;
  const numbers = [
    ...Array.from({ length: across }, (_, layer) => number(layer, start(layer + 0.5), 15)),
    ...Array.from({ length: down }, (_, head) => number(head, 10, start(head + 0.5) + 5)),
  ];
  const { color } = getComputedStyle(document.body);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="14" fill="${color}"><rect width="100%" height="100%" fill="${paperColour()}"/>${numbers.join("")}${heads.map(image).join("")}</svg>`;
  const blob = new Blob([svg], { type: "image/svg+xml" });
  return format === "svg" ? blob : pngOf(blob, 2 * width, 2 * height);
};
// An SVG as a PNG of so many pixels.
/** @type {(svg: Blob, width: number, height: number) => Promise<Blob>} */
const pngOf = async (svg, width, height) => {
  const picture = Object.assign(new Image(), { src: URL.createObjectURL(svg) });
  await picture.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  canvas.getContext("2d")?.drawImage(picture, 0, 0, width, height);
  URL.revokeObjectURL(picture.src);
  return new Promise((done) => {
    canvas.toBlob((png) => done(/** @type {Blob} */ (png)), "image/png");
  });
};

// ---- files ----

/** @type {(text: string) => string} */
const safe = (text) =>
  text
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, MAX_LETTERS);
/** @type {(file: Blob) => string} */
const sizeOf = ({ size }) =>
  size < 1e5 ? `${Math.ceil(size / 1e3)} KB` : `${numeral((size / 1e6).toFixed(1))} MB`;

/** @type {(picture: VisiblePicture | undefined, format: string) => Promise<NamedFile>} */
const pictureFile = async (picture, format) => {
  if (!picture) throw new Error(say("No picture can be seen now; open a tab that has one."));
  const name = [page.run.model, picture.name].filter(Boolean).join(" ");
  return { blob: await picture.draw(format), name: `${safe(name) || "picture"}.${format}` };
};
// withNetwork: of "html", whether the network is in the file too.
/** @type {(form: string, withNetwork: boolean) => Promise<NamedFile>} */
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
  const content = answer.base64 ? decodeBytes(answer.base64) : (answer.text ?? "");
  return { blob: new Blob([content], { type: answer.type }), name: answer.name };
};

const isThere = computed(() => Boolean(page.run?.run));
const isOfVisit = computed(() => page.run !== null && isOwn(page.run.model)); // its network is a visitor's own
const Exports = () => {
  const [isOpen, setOpen] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [note, setNote] = useState("");
  const [pictures, setPictures] = useState(/** @type {VisiblePicture[]} */ ([]));
  const [picked, setPicked] = useState(/** @type {Element | null} */ (null)); // the box of the picture that the visitor chose
  const look = () => setPictures(visiblePictures());
  // A picture is offered once it is drawn and until it is out of date.
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    look();
    const follow = new MutationObserver(look);
    follow.observe(document.body, { subtree: true, attributeFilter: ["aria-busy"] });
    return () => follow.disconnect();
  }, [isOpen]);

  const save = trying(async (/** @type {() => Promise<NamedFile>} */ file) => {
    setBusy(true);
    setNote(say("Making the file …"));
    let outcome = "";
    try {
      const { blob, name } = await file();
      saveFile(blob, name);
      outcome = say("Saved {name} ({size}).", { name, size: sizeOf(blob) });
    } finally {
      setNote(outcome);
      setBusy(false);
    }
  });
  const [withNetwork, setWithNetwork] = useState(false);
  const isOwnRun = isOfVisit.value;
  const head = isOpen && page.head;
  const disabled = !isThere.value || isBusy;
  const chosen = Math.max(
    0,
    pictures.findIndex(({ box }) => box === picked),
  );
  /** @param {string} format @param {string} words */
  const picture = (format, words) => html`<button type="button" data-picture=${format}
    disabled=${disabled} onClick=${() => save(() => pictureFile(pictures[chosen], format))}>${words}</button>`;
  /** @param {string} name @param {string} words */
  const form = (name, words) => html`<button type="button" data-form=${name} disabled=${disabled}
    onClick=${() => save(() => runFile(name, withNetwork && !isOwnRun))}>${words}</button>`;
  /** @param {VisiblePicture} picture @param {number} at */
  const option = ({ name }, at) => html`<option selected=${at === chosen}>${name}</option>`;
  const pick = (/** @type {ChangeOf<HTMLSelectElement>} */ { target }) =>
    setPicked(pictures[target.selectedIndex].box);
  // What is saved, and its formats: the rows of a table.
  /** @type {(what: ComponentChild, formats: ComponentChild) => ComponentChild} */
  const row = (what, formats) =>
    html`<span class="what">${what}</span><span class="formats">${formats}</span>`;
  const network = html`<label><input type="checkbox" class="with-network" checked=${withNetwork}
    onChange=${(/** @type {ChangeOf} */ { target }) => setWithNetwork(target.checked)} />
    ${say("with the network in it, to try everything")}</label>`;
  const filesOfRun = [
    row(
      capital(say("head")),
      html`<b class="chosen-head">${head ? headName(head) : "–"}</b>${form("csv", "CSV")}`,
    ),
    row(say("This run"), [
      form("json", "JSON"),
      form("npz", "NPZ"),
      !isOwnRun && form("py", "Python"),
    ]),
    row(say("Offline page"), [form("html", "HTML"), !isOwnRun && network]),
  ];
  return html`<details class="exports" onToggle=${(/** @type {ChangeOf<HTMLDetailsElement>} */ { target }) => setOpen(target.open)}>
    <summary>${say("Export")}</summary>
    <div class="export-rows">
      ${row(
        html`<label for="export-picture">${say("Picture")}</label>`,
        html`<select class="which" id="export-picture" onPointerDown=${look} onFocus=${look}
          onChange=${pick}>${pictures.map(option)}</select>
          <span class="of-picture">${picture("png", "PNG")}${picture("svg", "SVG")}</span>`,
      )}
      ${hasServer() && filesOfRun}
    </div>
    <p class="hint export-note" role="status">${note}</p>
  </details>`;
};
export const mount = mounted(Exports);
