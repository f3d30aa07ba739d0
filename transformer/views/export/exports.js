// Files for the visitor: pictures drawn in the page, and the run in the forms that the server makes.
// The server sends bytes as an answer; the file itself is made here.

import { ask } from "../../ui/static/ask.js";
import { decodeBytes } from "../../ui/static/bytes.js";
import { el, finder } from "../../ui/static/dom.js";
import { figureIn, paperColour } from "../../ui/static/drawn.js";
import { saveFile } from "../../ui/static/files.js";
import { escapeLabel } from "../../ui/static/labels.js";
import { numeral, say } from "../../ui/static/messages.js";
import { loadPlotly } from "../../ui/static/plotly.js";
import { siteName } from "../../ui/static/sites.js";
import { on, page, showProblem } from "../../web/store.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".exports");
  const which = find(".which");
  const note = find(".export-note");
  const buttons = [...element.querySelectorAll("button")];
  const GRID_PX = 64; // of a head in the picture of all heads
  const EDGE_PX = 22; // its numbers
  let busy = false;
  let shown = []; // the pictures that can be seen: {name, box}
  let picked = ""; // the name of the one that the visitor chose; else it is the first

  const site = () => page.head && siteName(page.head);
  const ready = () => Boolean(page.run?.run) && !busy;
  const update = () => {
    for (const button of buttons) button.disabled = !ready();
    find(".chosen-head").textContent = site()
      ? say("{site}, head {head}", { site: site(), head: page.head.head })
      : "–";
  };

  // ---- pictures ----

  const seen = (part) => part.getClientRects().length > 0;
  // Whether it is of what the page shows now: a part out of sight may still hold an earlier run's.
  const isCurrent = (box) => seen(box) && !box.closest("[aria-busy=true]");
  // A picture is called what the last heading before it says.
  const nameOf = (box) => {
    const before = [...document.querySelectorAll("#right :is(h2, h3, h4)")].filter(
      (title) =>
        seen(title) && title.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING,
    );
    return before.at(-1)?.textContent.trim() || "picture";
  };
  const listPictures = () => {
    const grid = document.querySelector(".head-grid");
    shown = [...document.querySelectorAll(".js-plotly-plot")]
      .filter(isCurrent)
      .map((box) => ({ name: nameOf(box), box }));
    if (grid && isCurrent(grid) && grid.querySelector("canvas"))
      shown.push({ name: say("Every head"), grid });
    which.replaceChildren(...shown.map(({ name }) => el("option", "", name)));
    which.selectedIndex = Math.max(
      0,
      shown.findIndex(({ name }) => name === picked),
    );
  };

  const figureOf = ({ name, box }) => {
    const { data, layout } = figureIn(box);
    const { l = 60, r = 20, t = 20, b = 60 } = layout.margin ?? {};
    const title = { text: escapeLabel(name), x: 0.01, xanchor: "left", font: { size: 17 } };
    return {
      data,
      layout: {
        ...layout,
        title,
        paper_bgcolor: paperColour(),
        margin: { l, r, t: t + 36, b },
        height: layout.height + 36,
      },
    };
  };
  const drawn = async (picture, format) => {
    if (picture.grid) return gridPicture(picture.grid, format);
    const plotly = await loadPlotly();
    const figure = figureOf(picture);
    const { width, height } = figure.layout;
    const url = await plotly.toImage(figure, {
      format,
      width,
      height,
      scale: format === "png" ? 2 : 1,
    });
    return (await fetch(url)).blob();
  };

  // Every head in one picture: layers down, heads across, both numbered.
  const gridPicture = async (grid, format) => {
    const heads = [...grid.querySelectorAll("canvas")];
    const across = Number(grid.dataset.heads);
    const [width, height] = [
      EDGE_PX + across * GRID_PX,
      EDGE_PX + (heads.length / across) * GRID_PX,
    ];
    const color = getComputedStyle(document.body).color;
    /** @type {(at: number) => [number, number]} */
    const place = (at) => [
      EDGE_PX + (at % across) * GRID_PX,
      EDGE_PX + Math.floor(at / across) * GRID_PX,
    ];
    const numbers = [];
    for (let head = 0; head < across; head += 1)
      numbers.push([head, EDGE_PX + (head + 0.5) * GRID_PX, 15]);
    for (let layer = 0; layer < heads.length / across; layer += 1)
      numbers.push([layer, 10, EDGE_PX + (layer + 0.5) * GRID_PX + 5]);
    if (format === "svg") {
      const images = heads.map(
        (canvas, at) =>
          `<image x="${place(at)[0]}" y="${place(at)[1]}" width="${GRID_PX - 4}" height="${GRID_PX - 4}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${canvas.toDataURL()}"/>`,
      );
      const texts = numbers.map(
        ([text, x, y]) => `<text x="${x}" y="${y}" text-anchor="middle">${text}</text>`,
      );
      const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="14" fill="${color}"><rect width="100%" height="100%" fill="${paperColour()}"/>${texts.join("")}${images.join("")}</svg>`;
      return new Blob([svg], { type: "image/svg+xml" });
    }
    const canvas = Object.assign(document.createElement("canvas"), {
      width: 2 * width,
      height: 2 * height,
    });
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    pen.scale(2, 2);
    pen.fillStyle = paperColour();
    pen.fillRect(0, 0, width, height);
    pen.imageSmoothingEnabled = false;
    heads.forEach((head, at) => pen.drawImage(head, ...place(at), GRID_PX - 4, GRID_PX - 4));
    Object.assign(pen, { fillStyle: color, font: "14px sans-serif", textAlign: "center" });
    for (const [text, x, y] of numbers) pen.fillText(text, x, y);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  };

  // ---- files ----

  const save = (blob, name) => {
    saveFile(blob, name);
    note.textContent = say("Saved {name} ({size}).", {
      name,
      size:
        blob.size < 1e5
          ? `${Math.ceil(blob.size / 1e3)} KB`
          : `${numeral((blob.size / 1e6).toFixed(1))} MB`,
    });
  };
  const safe = (text) =>
    text
      .normalize("NFKD")
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 60);

  const savePicture = async (format) => {
    const picture = shown[which.selectedIndex];
    if (!picture) throw new Error(say("No picture can be seen now; open a tab that has one."));
    const name = [page.run.model, picture.name].filter(Boolean).join(" ");
    save(await drawn(picture, format), `${safe(name) || "picture"}.${format}`);
  };
  const saveRun = async (form) => {
    const head = form === "csv" ? { site: site(), head: page.head.head } : {};
    const answer = await ask(server.export, { run: page.run.run, form, ...head });
    const content = answer.base64 ? decodeBytes(answer.base64) : answer.text;
    save(new Blob([content], { type: answer.type }), answer.name);
  };

  element.addEventListener("click", async ({ target }) => {
    const { picture, form } = target.dataset ?? {};
    if (!ready() || !(picture || form)) return;
    busy = true;
    update();
    note.textContent = say("Making the file …");
    try {
      await (picture ? savePicture(picture) : saveRun(form));
    } catch (error) {
      note.textContent = "";
      showProblem(error.message);
    }
    busy = false;
    update();
  });
  root.addEventListener("toggle", listPictures);
  // A picture is offered as soon as it is drawn, and no longer once it is out of date.
  const follow = new MutationObserver(() => root.open && listPictures());
  follow.observe(document.body, { subtree: true, attributeFilter: ["aria-busy"] });
  which.addEventListener("pointerdown", listPictures);
  which.addEventListener("focus", listPictures);
  which.addEventListener("change", () => (picked = which.value));
  on("run", update);
  on("head", update);
  update();
}
