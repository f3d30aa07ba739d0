// Masks of a padded batch, what they do to the scores of one head, and what it is without one.

import { ask } from "../../ui/static/ask.js";
import { el, fillSelect, finder } from "../../ui/static/dom.js";
import { ownFields } from "../../ui/static/fields.js";
import { oneOf, siteNamed, wholeNumber } from "../../ui/static/link_text.js";
import { fontPx, labelRoom } from "../../ui/static/labels.js";
import { say, sayN } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { kindOf, maskOf } from "../../ui/static/site_words.js";
import { siteName } from "../../ui/static/sites.js";
import { page, setBatch } from "../../web/store.js";
import { drawPaddingNotes } from "./padding_notes.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props, watch, server }) {
  const find = finder(element);
  const root = find(".masks");
  const without = find(".removal");
  /** @type {Record<string, any>} */
  const state = { row: 0, kind: 0, layer: 0, head: 0, removed: null };
  const box = (name) => find(`[data-picture=${name}]`);
  const square = (name) => ({
    fit: { side: { width: box(name).clientWidth, height: 460 } },
  });

  const draw = async (current) => {
    if (!page.batch) return;
    const { batch, texts, kinds, stacks } = page.batch;
    const { row, head } = state;
    const dark = page.dark;
    const { stack, kind } = kinds[state.kind];
    const site = siteName({ stack, layer: state.layer, kind });
    const height = 32 + 2 * fontPx() + 40 * texts.length;
    for (const [name, read] of [
      ["padded", stacks[0]],
      ["padded-targets", stacks[1]],
    ]) {
      if (!read) continue;
      const answer = await ask(server.padded, { batch, stack: read, dark });
      if (!current()) return;
      await drawFigure(box(name), answer.figure, { height, change: widened(box(name)) });
    }
    for (const which of ["padding", "causal", "combined"]) {
      const answer = await ask(server.mask, { batch, row, which, stack, kind, dark });
      if (!current()) return;
      await drawFigure(box(which), answer.figure, square(which));
    }
    for (const stage of ["scores", "masked", "weights"]) {
      const answer = await ask(server.heatmap, { run: batch, site, head, stage, row, dark });
      if (!current()) return;
      await drawFigure(box(stage), answer.figure, square(stage));
    }
    Object.assign(root.dataset, { batch, row, site, head });
  };

  // ---- without one of the masks ----

  const drawRemoval = async (current) => {
    if (!page.batch) return;
    const { batch, kinds } = page.batch;
    const { row, head, removed } = state;
    const { stack, kind } = kinds[state.kind];
    const site = siteName({ stack, layer: state.layer, kind });
    const answer = await ask(server.removal, {
      batch,
      row,
      site,
      head,
      which: removed,
      dark: page.dark,
    });
    if (!current()) return;
    drawRemoved(answer);
    const none = answer.acting.length === 0;
    find(".removal-pictures").hidden = none;
    if (none) {
      find(".removal-says").textContent = say("No other mask applies here.");
      Object.assign(without.dataset, { batch, row, site, head, which: "", share: "" });
      return;
    }
    find(".removal-says").textContent = answer.sentence;
    find(".removal-title").textContent =
      answer.which === "causal"
        ? say("Weights without the causal mask")
        : say("Weights without the padding mask");
    for (const [name, show] of [
      ["without", "weights"],
      ["changes", "difference"],
    ]) {
      const side = { width: box(name).clientWidth, height: 460 };
      await drawFigure(box(name), answer.figures[show], { fit: { side, bar: true } });
      if (!current()) return;
    }
    const { which, share } = answer;
    Object.assign(without.dataset, { batch, row, site, head, which, share });
  };
  // Only the masks that act in the chosen attention can be taken away.
  const drawRemoved = ({ acting, which }) => {
    const group = find(".removed");
    const made = acting.map((name) => {
      const [label, input] = [el("label"), el("input")];
      Object.assign(input, {
        type: "radio",
        name: "mask-removed",
        value: name,
        checked: name === which,
      });
      input.addEventListener("change", () => {
        state.removed = name;
        redrawRemoval();
      });
      label.append(input, el("span", "", maskOf(name)));
      return label;
    });
    const names = [...group.querySelectorAll("input")].map((input) => input.value);
    if (names.join() !== acting.join()) group.replaceChildren(group.firstElementChild, ...made);
    for (const input of group.querySelectorAll("input")) input.checked = input.value === which;
  };

  // ---- choices ----

  // Wide enough for every token's words; it scrolls where the page is narrower. Sentences are
  // counted from 1 on the page.
  const widened =
    (picture) =>
    ({ layout, data }) => {
      layout.margin = { l: 36 + fontPx(), r: 8, t: 4, b: 26 + 2 * fontPx() };
      const length = layout.xaxis.range[1] + 0.5;
      const words =
        data[0].texttemplate && !page.projector ? labelRoom({ ticktext: data[0].text.flat() }) : 0;
      layout.width = Math.max(picture.parentElement.clientWidth, 58 + length * words);
      layout.yaxis.ticktext = layout.yaxis.tickvals.map((place) => String(place + 1));
    };

  const NOTES = {
    "encoder self": say("The encoder reads the source both ways: padding alone is hidden."),
    "decoder self": say("The decoder reads its own text: padding and the future are hidden."),
    "decoder cross": say(
      "The decoder's queries read the encoder's tokens: padding of the source is hidden.",
    ),
  };

  const drawSentences = () => {
    const { texts, lengths, outputs } = page.batch;
    find(".sentences").replaceChildren(
      ...texts.map((text, row) => {
        const button = el("button", "sentence");
        button.setAttribute("role", "radio");
        button.setAttribute("aria-checked", String(row === state.row));
        button.append(
          el("b", "", `${row + 1} `),
          el("bdi", "", text),
          el("small", "", ` ${sayN("{n} token", "{n} tokens", lengths[row])}`),
        );
        if (outputs[row] !== undefined) button.append(el("span", "output", outputs[row]));
        button.addEventListener("click", () => {
          state.row = row;
          drawSentences();
          redraw();
        });
        return button;
      }),
    );
  };

  const fill = (select, labels, chosen) =>
    fillSelect(
      select,
      labels.map((label, value) => [value, label]),
      chosen,
    );
  const drawChoices = () => {
    const { kinds, n_heads: nHeads } = page.batch;
    const count = (n) => Array.from({ length: n }, (_, place) => String(place));
    fill(find(".pick-kind"), kinds.map(kindOf), state.kind);
    fill(find(".pick-layer"), count(kinds[state.kind].n_layers), state.layer);
    fill(find(".pick-head"), count(nHeads), state.head);
    const { stack, kind } = kinds[state.kind];
    find(".pick-kind").parentElement.hidden = kinds.length < 2;
    find(".kind-note").textContent = kinds.length < 2 ? "" : NOTES[`${stack} ${kind}`];
    find(".targets").hidden = page.batch.stacks.length < 2;
    const causal = stack === "decoder" && kind === "self";
    drawPaddingNotes(find, page.batch.padding_hidden, causal);
  };
  for (const field of ["kind", "layer", "head"]) {
    find(`.pick-${field}`).addEventListener("change", (event) => {
      state[field] = Number(event.target.value);
      if (field === "kind") Object.assign(state, { layer: 0, removed: null });
      drawChoices();
      redraw();
    });
  }

  const take = () => {
    if (!props.value?.batch) return;
    Object.assign(state, { row: 0, kind: 0, layer: 0, head: 0, removed: null });
    setBatch(props.value);
    drawSentences();
    drawChoices();
  };
  const refresh = redrawWhen(root, ["batch"], draw);
  const redrawRemoval = redrawWhen(without, ["batch"], drawRemoval);
  const redraw = () => {
    refresh();
    redrawRemoval();
  };
  take();
  watch("value", take);
  const siteNow = () => {
    const { stack, kind } = page.batch.kinds[state.kind];
    return siteName({ stack, layer: state.layer, kind });
  };
  const firstSite = () => `${page.batch.kinds[0].stack}.0.${page.batch.kinds[0].kind}`;
  ownFields(
    { row: "0", mask_site: "", mask_head: "0", without: "" },
    () =>
      page.batch && {
        row: state.row,
        mask_site: siteNow() === firstSite() ? "" : siteNow(),
        mask_head: state.head,
        without: state.removed ?? "",
      },
    ({ row, mask_site: site, mask_head: head, without: which }) => {
      if (!page.batch) return;
      const { stack, kind, layer } = siteNamed("mask_site", site || firstSite(), page.batch);
      const index = page.batch.kinds.findIndex((one) => one.stack === stack && one.kind === kind);
      Object.assign(state, {
        row: wholeNumber("row", row, 0, page.batch.texts.length - 1),
        kind: index,
        layer,
        head: wholeNumber("mask_head", head, 0, page.batch.n_heads - 1),
        removed: which === "" ? null : oneOf("without", which, ["causal", "padding"]),
      });
      drawSentences();
      drawChoices();
      redraw();
    },
  );
}
