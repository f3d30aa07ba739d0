// Attention: the grid of all heads, the chosen head large, and the numbers under the pointer.

import { ask } from "../../ui/static/ask.js";
import { decodeBytes } from "../../ui/static/bytes.js";
import { el, finder, nextPaint } from "../../ui/static/dom.js";
import { declaredFields } from "../../ui/static/fields.js";
import { endFirstLook } from "../../ui/static/first_look.js";
import { isSilent } from "../../ui/static/interventions.js";
import { escapeLabel } from "../../ui/static/labels.js";
import { say } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { setReader } from "../../ui/static/reading.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { siteName } from "../../ui/static/sites.js";
import { emit, on, page, sameToken, setHead, setQuery } from "../../web/store.js";
import { connectFinding } from "../head_metrics/finding.js";
import { headLabel } from "../head_metrics/known.js";
import { connectSilenceButton } from "../silence/silence_button.js";
import { linkCell } from "./cell_link.js";
import { mountCells } from "./cells.js";
import { headGrid, MANY } from "./grid.js";
import { linePictures } from "./line_picture.js";
import { connectMotion } from "./motion.js";
import { pictureStore, pictureTitle } from "./pictures.js";
import { pictureReader, usualKind } from "./reader.js";
import { sharedKeys } from "./shared_keys.js";
import { attentionSwitches, drawKindButtons } from "./switches.js";
import { cellTexts, colourValues } from "./values.js";

const LEAST_PX = 480; // of the cells' side, where the screen is so wide
const MOST_ABOVE_PX = 200; // what stands above on a phone is scrolled away

// Every token has its label: those that would lie on each other go when the room is known.
const withAllLabels = (figure, labels) => {
  for (const [axis, of] of [
    [figure.layout.xaxis, labels.key],
    [figure.layout.yaxis, labels.query],
  ]) {
    axis.tickvals = of.map((_, place) => place);
    axis.ticktext = of.map((label) => `\u2068${escapeLabel(label)}\u2069`);
  }
  return figure;
};

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props, server }) {
  const find = finder(element);
  const root = find(".attention");
  const large = find(".large");
  /** @type {() => void} */
  let refreshLarge = () => {}; // until all parts stand
  const state = declaredFields("attention", () => refreshLarge());
  Object.assign(state, { kind: 0, layer: 0, head: 0, pin: null, over: null });
  Object.assign(state, { numbers: null, labels: null });
  /** @type {any} */
  let clicked = null;

  const kind = () => page.run.kinds[state.kind];
  const queryStack = () => kind().stack;
  const keyStack = () => (kind().kind === "cross" ? "encoder" : kind().stack);
  const site = () => siteName({ ...kind(), layer: state.layer });
  const isHeatmap = () => !["lines", "alignment"].includes(state.picture);

  const shift = () => (state.picture === "alignment" && state.by === "written" ? 1 : 0);
  const cells = mountCells(element, state, { queryStack, keyStack, isHeatmap, shift });
  linkCell(state, queryStack, keyStack, cells.show);

  // ---- the grid ----

  const drawGrid = async (current) => {
    const { stack, kind: sort } = kind();
    const wanted = { run: page.run.run, stack, kind: sort };
    const sent = props.first; // that of the stored example comes with the page
    const here = Object.entries(wanted).every(([name, value]) => sent[name] === value);
    const atlas = here ? sent : await ask(server.atlas, wanted);
    if (!current()) return;
    const [pixels, masked] = [decodeBytes(atlas.pixels), decodeBytes(atlas.masked)];
    heads.draw({ shape: atlas.shape, pixels, masked }, wanted, page.run.heads_per_key);
    find(".zoom").hidden = atlas.shape[1] <= MANY;
    heads.mark(state.layer, state.head);
    heads.cross((layer, head) => isSilent({ stack, kind: sort, layer, head }));
    endFirstLook(find(".large-box"));
  };

  const chooseHead = (layer, head) => {
    clicked = performance.now();
    setHead({ stack: kind().stack, kind: kind().kind, layer, head });
  };
  const pressHead = (layer, head) => isHeatmap() && pictures.foresee(state, kind(), layer, head);
  const heads = headGrid(find(".head-grid"), props.palette, chooseHead, pressHead);
  find(".zoom").addEventListener("click", () => {
    const isLarge = find(".head-grid").classList.toggle("zoomed");
    find(".zoom").setAttribute("aria-pressed", isLarge);
    heads.mark(state.layer, state.head);
  });

  // ---- the picture ----

  const pictures = pictureStore(server);
  setReader(pictureReader(state, pictures, kind));
  const between = linePictures(find(".lines-box"), find(".lines"), server, (row) => {
    const token = cells.tokenOf(queryStack(), row); // a click on a query
    setQuery(sameToken(page.query, token) ? null : token);
  });

  const side = () => {
    const box = find(".large-box");
    const top = root.getBoundingClientRect().top + window.scrollY;
    const above = box.getBoundingClientRect().top - root.getBoundingClientRect().top;
    const room = window.innerHeight - 24 - Math.min(top, MOST_ABOVE_PX) - above;
    return { width: box.clientWidth, height: Math.max(360, room) };
  };

  const drawLarge = async (current) => {
    const run = page.run.run;
    drawSwitches();
    const { head, stage, scale, range, picture } = state;
    const { numbers, figure } = await pictures.get(state, kind());
    if (!current()) return;
    Object.assign(state, { numbers, labels: numbers.labels });
    if (isHeatmap()) await drawHeatmap(figure);
    else await drawBetween(current, run);
    find(".first-head")?.remove();
    if (!current()) return;
    find(".large-title").textContent = pictureTitle(state, kind());
    large.setAttribute(
      "aria-label",
      say("{title}; heatmap of query by key", { title: find(".large-title").textContent }),
    );
    writeLabel();
    const shared = isHeatmap() ? sharedKeys(head, page.run.heads_per_key) : "";
    find(".shared-keys").textContent = shared && say("This head {shared}.", { shared });
    Object.assign(root.dataset, { site: site(), head, stage, scale, range, picture, run });
    cells.show();
    emit("reading");
    if (clicked !== null) {
      await nextPaint();
      root.dataset.clickMs = (performance.now() - clicked).toFixed(1);
      clicked = null;
    }
  };

  const drawHeatmap = async (json) => {
    const { numbers, labels, stage, scale, picture } = state;
    const { query, key } = labels;
    const shown = picture === "heatmap" ? stage : "weights";
    const figure = withAllLabels(JSON.parse(json), labels);
    await drawFigure(large, figure, {
      fit: { side: side(), top: 12, bar: true, least: LEAST_PX },
      tools: true,
      on: cells.listeners,
      change: ({ data }) => {
        // It comes as its numbers: what its colours stand for is worked out here.
        cells.closer.fill(data[0], query.length, key.length, (part) =>
          colourValues(numbers, key.length, shown, scale, numbers.floor, part),
        );
      },
      numbers: cellTexts(numbers, key.length, shown),
    });
  };

  const drawBetween = (current, run) => {
    const { layer, head, picture, over_heads: over, by } = state;
    if (picture === "lines") {
      const row = state.pin?.row ?? cells.rowOf(page.query);
      const query = row >= 0 ? row : null;
      return between.lines(current, {
        run,
        site: site(),
        head,
        query,
        threshold: Number(state.threshold),
      });
    }
    return between.alignment(current, {
      run,
      layer: over === "all" ? "mean" : layer,
      head: over === "head" ? head : "mean",
      by,
    });
  };

  // What the ranking of heads says of this one, if it says anything.
  const writeLabel = () => {
    const one = ["heatmap", "lines"].includes(state.picture) && page.run;
    const said = one ? headLabel(page.run.run, site(), state.head) : null;
    find(".head-label")?.remove();
    if (said) find(".large-title").append(el("span", "head-label", said));
  };

  // ---- choices ----

  const drawSwitches = attentionSwitches(element, state, kind, () => refreshLarge());
  const drawKinds = () =>
    drawKindButtons(find(".kinds"), state.kind, (one) => setHead({ ...one, layer: 0, head: 0 }));

  const tellHead = () => {
    const { layer, head } = state;
    setHead({ stack: kind().stack, kind: kind().kind, layer, head });
  };
  // Another head was chosen: here in the grid, or elsewhere on the page.
  const follow = ({ stack, kind: sort, layer, head }) => {
    const index = page.run.kinds.findIndex((one) => one.stack === stack && one.kind === sort);
    if (index === state.kind && layer === state.layer && head === state.head) return;
    const changed = index !== state.kind;
    Object.assign(state, { kind: index, layer, head });
    if (changed) {
      Object.assign(state, { pin: null, over: null });
      drawKinds();
      refreshGrid();
    } else {
      heads.mark(layer, head);
    }
    refreshLarge();
  };
  on("head", follow);
  on("run", () => {
    pictures.forget();
    between.forget();
    const fits =
      page.run.kinds[state.kind]?.n_layers > state.layer && page.run.n_heads > state.head;
    Object.assign(state, { pin: null, over: null, numbers: null, labels: null });
    if (!fits) Object.assign(state, { kind: 0, layer: 0, head: 0 });
    drawKinds();
    tellHead();
  });
  on("query", () => {
    if (state.picture === "lines" && state.labels) refreshLarge();
  });
  // A token that the shown picture is not of brings the attention that it usually shows.
  const lastHeads = new Map(); // the head that was last looked at, of each kind of attention
  on("head", (head) => lastHeads.set(`${head.stack} ${head.kind}`, head));
  on("choose", ({ stack }) => {
    if ([queryStack(), keyStack()].includes(stack)) return;
    const { stack: of, kind: sort } = usualKind(stack);
    setHead(lastHeads.get(`${of} ${sort}`) ?? { stack: of, kind: sort, layer: 0, head: 0 });
  });
  on("labels", writeLabel);
  connectFinding(find(".head-finding"), server, heads.label);
  connectSilenceButton(find(".silence-head"));
  connectMotion(find(".motion"), root, state, () => refreshLarge());
  const whenRun = (draw) => async (current) => (page.run ? draw(current) : undefined);
  if (page.run) drawKinds();
  const refreshGrid = redrawWhen(find(".heads-side"), ["run"], whenRun(drawGrid));
  refreshLarge = redrawWhen(root, ["run"], whenRun(drawLarge));
  // A link may have chosen a head before this part stood on the page.
  if (page.run && page.head) follow(page.head);
  else if (page.run) tellHead();
}
