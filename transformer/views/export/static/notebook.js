// All heads small and one large, for a notebook. Token text is written by textContent only.

import { paletteWords } from "../../../ui/static/colours.js";
import { el, fillSelect } from "../../../ui/static/dom.js";
import { cellCursor } from "../../attention/cell_cursor.js";
import { headGrid, headName, paintHead } from "../../attention/grid.js";
import { numeral, say, sayWith } from "../../../ui/static/messages.js";
import { attentionOf, kindOf } from "../../../ui/static/site_words.js";
import { canUnpack, flatOf, unpack } from "./pack.js";

const SIDE_PX = 330; // of the large picture
/** @type {(id: string) => any} */
const byId = (id) => document.getElementById(id);

const show = (data) => {
  const large = byId("large");
  const colours = paletteWords(data.palette);
  const kinds = data.kinds.map(({ pixels, masked, ...kind }) => ({
    ...kind,
    atlas: { shape: pixels.shape, pixels: flatOf(pixels), masked: flatOf(masked) },
  }));
  /** @type {Record<string, any>} */
  const state = { kind: kinds.length - 1, layer: 0, head: 0, cell: null };
  const kind = () => kinds[state.kind];
  const place = () => state.layer * kind().atlas.shape[1] + state.head;
  const last = () => ({
    row: kind().query_labels.length - 1,
    column: kind().key_labels.length - 1,
  });

  const readOut = (cell) => {
    const { row, column } = (state.cell = cell);
    const { query_labels: queries, key_labels: keys, atlas } = kind();
    const at = row * keys.length + column;
    const weight = (atlas.pixels[place() * queries.length * keys.length + at] / 255) ** 2;
    const told = {
      row: kind().queries_before + row,
      query: el("bdi", "", queries[row]),
      column: kind().keys_before + column,
      key: el("bdi", "", keys[column]),
      weight: numeral(weight.toFixed(2)),
    };
    byId("readout").replaceChildren(
      ...(atlas.masked[at]
        ? sayWith("query {row} {query} reads key {column} {key}: hidden by the mask", told)
        : sayWith("query {row} {query} reads key {column} {key}: weight {weight}", told)),
    );
  };

  const choose = (layer, head) => {
    Object.assign(state, { layer, head });
    heads.mark(layer, head);
    const { queries_before: before, query_labels: queries } = kind();
    const cut = before || kind().keys_before;
    const all = before + queries.length;
    const name = headName(layer, head);
    byId("title").textContent = cut
      ? say("{head}, the last {count} of {all} queries", {
          head: name,
          count: queries.length,
          all,
        })
      : name;
    large.setAttribute(
      "aria-label",
      say("{attention}, {head}", { attention: attentionOf(kind()), head: name }),
    );
    paintHead(large, kind().atlas, place(), colours);
    const { width, height } = large;
    large.style.width = `${SIDE_PX * Math.min(1, width / height)}px`;
    large.style.height = `${SIDE_PX * Math.min(1, height / width)}px`;
    byId("readout").textContent = say("Point at a cell, or walk with the arrow keys.");
    if (state.cell) readOut(state.cell);
  };
  const heads = headGrid(byId("grid"), data.palette, choose);

  const chooseKind = (at) => {
    Object.assign(state, { kind: at, cell: null });
    heads.draw(kind().atlas);
    choose(0, 0);
  };

  large.addEventListener("pointermove", ({ offsetX, offsetY }) => {
    const at = (offset, room, most) =>
      Math.min(most, Math.max(0, Math.floor((offset / room) * (most + 1))));
    const { row, column } = last();
    readOut({
      row: at(offsetY, large.clientHeight, row),
      column: at(offsetX, large.clientWidth, column),
    });
  });
  const start = () => state.cell;
  cellCursor(large, { last, start, move: readOut, pin: () => {}, leave: () => {} });
  const names = kinds.map((one, at) => [at, kindOf(one)]);
  fillSelect(byId("kind"), names, state.kind);
  byId("kind").addEventListener("change", ({ target }) => chooseKind(Number(target.value)));
  chooseKind(state.kind);
};

const start = async () => {
  if (canUnpack) return show(await unpack(byId("data").textContent));
  byId("title").textContent = say(
    "This browser cannot unpack the picture’s data: it has no DecompressionStream.",
  );
  return undefined;
};
start();
