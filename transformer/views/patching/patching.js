// Patch: another text's activity put in at each layer and place, and what that does to one token.

import { ask } from "../../ui/static/ask.js";
import { cellBox } from "../../ui/static/axis_labels.js";
import { finder, tokenElement } from "../../ui/static/dom.js";
import { alter, generates, interventions } from "../../ui/static/interventions.js";
import { fontPx, labelRoom } from "../../ui/static/labels.js";
import { chosenPlace } from "../../ui/static/looked_at.js";
import { numeral, say, sayWith } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { on, page, showProblem } from "../../web/store.js";
import { typeText } from "../../ui/static/gradio.js";
import { cellBands, cellCursor } from "../attention/cell_cursor.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".patching");
  const [text, box, frame] = [find(".patch-text"), find("[data-picture=patching]"), find(".wide")];
  // suggested: what was last put into the box, which the visitor may have replaced. asked: what the map
  // that is shown was asked with; of: {model, text} of its run; answer: what the server said.
  /** @type {Record<string, any>} */
  const state = { suggested: "", teaching: "", asked: null, of: null, answer: null };

  const chosen = (group) => find(`.patch-${group} input:checked`).value;
  const translates = () => page.run.source_labels.length > 0;
  const wants = () => ({
    stack: translates() ? chosen("stacks") : "decoder",
    part: chosen("parts"),
    kind:
      translates() && chosen("stacks") === "decoder" && chosen("parts") === "heads"
        ? chosen("kinds")
        : "self",
    target: chosen("targets"),
  });

  // ---- what can be chosen ----

  const drawChoices = () => {
    root.dataset.generates = generates();
    if (!generates()) return;
    const { part } = wants();
    find(".patch-stacks").hidden = !translates();
    find(".patch-kinds").hidden =
      !translates() || chosen("stacks") !== "decoder" || part !== "heads";
  };
  const suggest = async (current) => {
    if (!page.run || !generates()) return;
    const { run } = page.run;
    const { variant, teaching } = await ask(server.other_text, { run, place: chosenPlace() });
    if (!current()) return;
    if (text.value === state.suggested) text.value = variant ?? "";
    Object.assign(state, { suggested: variant ?? "", teaching });
    find(".patch-hint").textContent = variant
      ? ""
      : say(
          "There is no word here that we know how to exchange: type another text, or " +
            "try our example.",
        );
    const place = chosenPlace();
    find(".show-map").replaceChildren(
      ...(place === null
        ? [say("Show what each patch changes")]
        : sayWith("Show what each patch changes for token {place}, “{token}”", {
            place,
            token: tokenElement(page.run.labels[place]),
          })),
    );
    find(".try-pair").hidden = teaching === page.run.text;
    find(".try-pair").textContent = say("Try it with “{text}”", { text: teaching });
    await drawMap(current);
    Object.assign(root.dataset, { run });
  };
  find(".try-pair").addEventListener("click", async () => {
    text.value = state.suggested;
    await typeText(state.teaching);
    alter([]);
  });
  root.addEventListener("change", (event) => {
    if (!event.target.matches("input")) return;
    drawChoices();
    if (state.asked) showMap();
  });

  // ---- the map ----

  const showMap = () => {
    if (!text.value.trim()) return showProblem(say("A patch needs another text: type one first."));
    const place = chosenPlace();
    state.asked = { run: page.run.run, other: text.value, place, ...wants() };
    state.of = { model: page.run.model, text: page.run.text };
    state.answer = null;
    refresh();
  };
  find(".show-map").addEventListener("click", showMap);
  const stillFits = () =>
    state.of && state.of.model === page.run.model && state.of.text === page.run.text;

  const drawMap = async (current) => {
    if (!stillFits()) Object.assign(state, { asked: null, answer: null });
    find(".patch-found").hidden = !state.asked;
    if (!state.asked) return;
    const { asked } = state;
    if (state.answer?.dark !== page.dark) {
      const answer = await ask(server.patching, { ...asked, dark: page.dark });
      if (!current()) return;
      state.answer = { ...answer, dark: page.dark };
    }
    const { answer } = state;
    words(answer);
    await drawFigure(box, answer.figure, {
      change: look(JSON.parse(answer.figure).layout.width),
      on: LISTENERS,
    });
    Object.assign(box.dataset, {
      run: asked.run,
      stack: asked.stack,
      part: asked.part,
      target: asked.target,
      place: answer.place,
    });
  };
  const look =
    (width) =>
    ({ data, layout }) => {
      data[0].colorbar.title.font = { size: fontPx() };
      const { l: left, r: right } = layout.margin;
      const room = [layout.xaxis2, layout.xaxis].map((axis) => labelRoom(axis) + 30);
      const rows = layout.height - layout.margin.t - layout.margin.b;
      layout.margin = { l: left, r: right, t: room[0], b: room[1] };
      Object.assign(layout, { width, height: rows + room[0] + room[1], dragmode: false });
      for (const axis of [layout.xaxis, layout.xaxis2, layout.yaxis]) {
        Object.assign(axis, { automargin: false, fixedrange: true });
        Object.assign(axis.title, { standoff: 4, font: { size: fontPx() } });
      }
    };
  const probability = (log) => numeral(Math.exp(log).toPrecision(2));
  const words = ({ place, stands, target, before, other, limit, lengths, altered }) => {
    find(".patch-title").replaceChildren(
      ...sayWith("Change of ln p(“{target}”) as token {place}, where “{token}” stands", {
        target: tokenElement(target),
        place,
        token: tokenElement(stands),
      }),
    );
    const [here, there] = lengths;
    const told = [
      say("ln p is {here} here (p = {p_here}) and {there} in the other run (p = {p_there}).", {
        here: numeral(before.toFixed(2)),
        p_here: probability(before),
        there: numeral(other.toFixed(2)),
        p_there: probability(other),
      }),
      say(
        "Orange: the patch makes the token likelier. Blue: it makes it less likely. The colours " +
          "go from {least} to {most}.",
        { least: numeral((-limit).toPrecision(3)), most: numeral(limit.toPrecision(3)) },
      ),
    ];
    if (here !== there) {
      told.push(
        say(
          "The texts have {here} and {there} tokens. Places are counted from the first token, so " +
            "after a word of another length they no longer correspond.",
          { here, there },
        ),
      );
    }
    if (altered) told.push(say("The map shows the intact network."));
    find(".patch-says").textContent = told.join(" ");
  };

  // ---- its cells ----

  const last = () =>
    state.answer &&
    box.calcdata && {
      row: box.calcdata[0][0].z.length - 1,
      column: box.calcdata[0][0].z[0].length - 1,
    };
  const bands = cellBands(root, box);
  const point = (cell) => bands(cell?.row ?? null, cell?.column ?? null, last());
  const inWords = ({ row, column }) => {
    const { meta } = box.layout;
    const change = box.calcdata[0][0].z[row][column];
    return say("layer {layer}, place {place} “{token}”: ln p {change}", {
      layer: row,
      place: column,
      token: meta.column_labels[column],
      change: `${change < 0 ? "" : "+"}${numeral(change.toFixed(4))}`,
    });
  };
  const apply = async ({ row, column }) => {
    if (column === null) return;
    const { stack, part, kind, other } = state.asked;
    const patch = { type: "patch", stack, layer: row, positions: [column], text: other, part };
    if (kind !== "self") patch.kind = kind;
    await typeText(page.run.text); // the places are those of this text
    alter([...interventions().filter(({ type }) => type !== "patch"), patch]);
  };
  const LISTENERS = {
    plotly_click: ({ points }) => apply({ row: points[0].y, column: points[0].x }),
  };
  cellCursor(box, {
    last,
    start: () => {
      const { z } = box.calcdata[0][0];
      const best = Math.max(...z.map((row) => Math.max(...row.map(Math.abs))));
      const row = z.findIndex((values) => values.some((value) => Math.abs(value) === best));
      return { row, column: [...z[row]].findIndex((value) => Math.abs(value) === best) };
    },
    move: (cell) => {
      point(cell);
      const { left, width } = cellBox(box, cell.column, cell.column, cell.row, cell.row);
      if (left < frame.scrollLeft || left + width > frame.scrollLeft + frame.clientWidth) {
        frame.scrollLeft = left - frame.clientWidth / 2;
      }
      find(".patch-said").textContent = inWords(cell);
    },
    pin: apply,
    leave: () => point(null),
  });

  on("run", () => {
    drawChoices();
    point(null);
  });
  find(".patch-stacks input").checked = true;
  drawChoices();
  const refresh = redrawWhen(root, ["run", "query"], suggest);
}
