// The mask of an attention, to be edited cell by cell and run again with.

import { ask } from "../../ui/static/ask.js";
import { decodeBytes, unpackBits } from "../../ui/static/bytes.js";
import { fillSelect, finder } from "../../ui/static/dom.js";
import { alter, generates, interventions } from "../../ui/static/interventions.js";
import { say } from "../../ui/static/messages.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { attentionOf } from "../../ui/static/site_words.js";
import { on, page } from "../../web/store.js";
import { drawKindButtons } from "../attention/switches.js";
import { boardCell, boardSize, drawBoard } from "./mask_board.js";
import { cellWords, maskNotes } from "./mask_notes.js";
import {
  editCell,
  editLine,
  editsByPlace,
  isEdited,
  masksOf,
  noEdits,
  planOf,
} from "./mask_edits.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".maskedit");
  const canvas = find(".board");
  // layer: "*" for every layer. edits: by "stack.layer.kind". used: what the shown run's attention used.
  /** @type {Record<string, any>} */
  const state = { kind: 0, layer: "*", edits: new Map(), used: null, size: null, at: null };

  const kind = () => page.run.kinds[state.kind];
  const nameOf = (layer) => [kind().stack, layer, kind().kind].join(".");
  const editsAt = (layer) => {
    const name = nameOf(layer);
    if (!state.edits.has(name)) state.edits.set(name, noEdits());
    return state.edits.get(name);
  };
  const own = () => editsAt(state.layer);
  const isCausal = () => kind().stack === "decoder" && kind().kind === "self";

  // ---- what the mask is and will be ----

  // Those of every layer come before a layer's own, in the network as here.
  const plan = () => planOf(state.layer === "*" ? [own()] : [editsAt("*"), own()], isCausal());
  const wanted = () => masksOf(state.edits);
  const ofRun = () => editsByPlace(interventions());
  const isApplied = () => JSON.stringify(wanted()) === JSON.stringify(masksOf(ofRun()));

  // ---- the board ----

  const labels = () => ({ queries: state.used.query_labels, keys: state.used.key_labels });
  const counts = () => ({ queries: labels().queries.length, keys: labels().keys.length });
  const used = (query, key) => state.used.allowed[query * counts().keys + key] === 1;
  const lineEdit = (line) =>
    own().forbid.has(line) ? "forbid" : own().allow.has(line) ? "allow" : null;
  const showBoard = () => {
    const applied = isApplied();
    const { edit, planned } = plan();
    // "Every layer" shows the first one's mask, which edits of that layer alone may change.
    const own0 = state.layer === "*" && state.edits.has(nameOf("0")) && isEdited(editsAt("0"));
    const allowed = applied && !own0 ? used : planned;
    const width = find(".board-box").clientWidth;
    state.size = boardSize(canvas, labels(), width);
    const count = drawBoard(canvas, labels(), state.size, { allowed, edit, lineEdit });
    const where = say("{attention}, {layer}", {
      attention: attentionOf(kind()),
      layer:
        state.layer === "*" ? say("every layer") : say("layer {layer}", { layer: state.layer }),
    });
    canvas.setAttribute(
      "aria-label",
      say("Mask of {where}: {queries} queries by {keys} keys", {
        where,
        queries: counts().queries,
        keys: counts().keys,
      }),
    );
    find(".mask-says").textContent = applied
      ? say("{where}: {count} of {total} cells are allowed, as in the run that is shown.", {
          where,
          count,
          total: counts().queries * counts().keys,
        })
      : say("{where}: {count} cells would be allowed. Not yet applied.", { where, count });
    find(".apply").disabled = applied;
    find(".clear").disabled = !isEdited(own());
    Object.assign(root.dataset, { allowed: count, applied });
    showCursor();
  };

  const words = (at) => cellWords(at, { sides: labels(), lineEdit, ...plan() });
  const showCursor = () => {
    const cursor = find(".board-cursor");
    const { at, size } = state;
    cursor.hidden = !at;
    find(".board-cell").textContent = at ? words(at) : "";
    if (!at) return;
    const { cell, left, top } = size;
    const [x, width] = at.key < 0 ? [0, left] : [left + at.key * cell, cell];
    const [y, height] = at.query < 0 ? [0, top] : [top + at.query * cell, cell];
    for (const [name, value] of Object.entries({ left: x, top: y, width, height }))
      cursor.style[name] = `${value}px`;
  };
  const change = ({ query, key }) => {
    if (key < 0) editLine(own(), `${query},*`);
    else if (query < 0) editLine(own(), `*,${key}`);
    else editCell(own(), query, key, plan().before(query, key), counts());
    edited();
    find(".board-said").textContent = words({ query, key });
  };

  const under = (event) => (state.size ? boardCell(canvas, state.size, labels(), event) : null);
  canvas.addEventListener("click", (event) => {
    const cell = under(event);
    if (!cell) return;
    state.at = cell;
    change(cell);
  });
  canvas.addEventListener("pointermove", (event) => {
    state.at = under(event);
    showCursor();
  });
  const leave = () => {
    state.at = null;
    if (state.size) showCursor();
  };
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("focus", () => {
    if (state.size && canvas.matches(":focus-visible")) go(state.at ?? { query: 0, key: 0 });
  });
  const go = (cell) => {
    state.at = cell;
    showCursor();
    find(".board-cursor").scrollIntoView({ block: "nearest", inline: "nearest" });
    find(".board-said").textContent = words(cell);
  };
  const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const moved = (key, at) => {
    const { queries, keys } = counts();
    const clamp = (value, last) => Math.min(last, Math.max(-1, value));
    if (key === "Home") return { ...at, key: at.query < 0 ? 0 : -1 };
    if (key === "End") return { ...at, key: keys - 1 };
    if (!(key in MOVES)) return null;
    const to = {
      query: clamp(at.query + MOVES[key][0], queries - 1),
      key: clamp(at.key + MOVES[key][1], keys - 1),
    };
    return to.query < 0 && to.key < 0 ? at : to;
  };
  canvas.addEventListener("keydown", (event) => {
    if (!state.size || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = state.at ?? { query: 0, key: 0 };
    if (event.key === "Enter" || event.key === " ") {
      state.at = at;
      change(at);
    } else {
      const to = moved(event.key, at);
      if (!to) return;
      go(to);
    }
    event.preventDefault();
  });

  // ---- choices ----

  const drawNotes = () => {
    const { planned, isRemoved } = plan();
    const all = Array.from({ length: counts().keys }, (_, key) => key);
    const empty = labels().queries.some((_, query) => all.every((key) => !planned(query, key)));
    find(".mask-note").textContent = maskNotes({
      slid: page.run.trace_start > 0,
      causal: isCausal() && isRemoved("causal"),
      padding: isRemoved("padding"),
      row: empty,
    });
  };
  const edited = () => {
    showBoard();
    drawNotes();
    drawBoxes();
  };
  const drawBoxes = () => {
    find(".causal-box").hidden = !isCausal();
    find(".no-causal").checked = own().without.has("causal");
    find(".no-padding").checked = own().without.has("padding");
  };
  for (const mask of ["causal", "padding"]) {
    find(`.no-${mask}`).addEventListener("change", ({ target }) => {
      if (target.checked) own().without.add(mask);
      else own().without.delete(mask);
      edited();
    });
  }
  const drawLayers = () => {
    const layers = ["*", ...Array.from({ length: kind().n_layers }, (_, layer) => String(layer))];
    fillSelect(
      find(".edit-layer"),
      layers.map((layer) => [layer, layer === "*" ? say("all") : layer]),
      state.layer,
    );
  };
  find(".edit-layer").addEventListener("change", ({ target }) => {
    state.layer = target.value;
    refresh();
  });
  find(".apply").addEventListener("click", () =>
    alter([...interventions().filter(({ type }) => type !== "mask"), ...wanted()]),
  );
  find(".clear").addEventListener("click", () => {
    state.edits.delete(nameOf(state.layer));
    edited();
  });

  const take = () => {
    if (!page.run.kinds[state.kind]) state.kind = 0;
    if (Number(state.layer) >= kind().n_layers) state.layer = "*";
    state.edits = ofRun();
    Object.assign(state, { used: null, at: null });
  };
  const draw = async (current) => {
    if (!page.run) return;
    root.dataset.generates = generates();
    drawKindButtons(find(".kinds"), state.kind, ({ stack, kind: sort }) => {
      state.kind = page.run.kinds.findIndex((one) => one.stack === stack && one.kind === sort);
      Object.assign(state, { layer: "*", at: null });
      refresh();
    });
    drawLayers();
    const { run } = page.run;
    const site = nameOf(state.layer === "*" ? 0 : state.layer);
    const answer = await ask(server.used_mask, { run, site });
    if (!current()) return;
    const count = answer.query_labels.length * answer.key_labels.length;
    state.used = { ...answer, allowed: unpackBits(decodeBytes(answer.allowed), count) };
    edited();
    Object.assign(root.dataset, { run, site: nameOf(state.layer) });
  };
  if (page.run) take();
  on("run", take);
  const refresh = redrawWhen(root, ["run"], draw);
}
