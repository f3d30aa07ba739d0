// The contribution of each part of the network to the logit of the chosen token.

import { openTab } from "../../ui/static/gradio.js";
import {
  alter,
  isAblated,
  withAblation,
  experiment,
  interventions,
} from "../../ui/static/interventions.js";
import { numeral, say, sayWith, colourEnds } from "../../web/messages.js";
import { html, useState } from "../../web/preact.js";
import { useCells } from "../../web/cells.js";
import { Figure } from "../../web/figure.js";
import { PredictedToken, predictedPosition, tokenAt } from "../../web/selection.js";
import { mounted, useAnswer, useEvent, usePart } from "../../web/part.js";
import { page, setHead } from "../../web/store.js";
import { Token } from "../../web/text.js";

// The parts of the cells of the contribution map, and a cell in words.

const BEFORE = ["token", "position", "embedding norm"]; // rows above the layers, if any

// The head of a cell, or null. answer: the server's, see contribution.py.
/** @type {(cell: {row: number, column: number}, answer: any, stack: string) => any} */
const headOf = ({ row, column }, { heads, others }, stack) => {
  const kinds = Object.entries(heads);
  const [layers, across] = [kinds[0][1].length, kinds[0][1][0].length];
  const layer = row - BEFORE.filter((name) => name in others).length;
  const kind = kinds[Math.floor(column / across)]?.[0];
  if (!kind || layer < 0 || layer >= layers) return null;
  return { stack, kind, layer, head: column % across };
};

// A cell of the drawn map in words.
const partInWords = ({ row, column }, { calcdata, layout }) => {
  const value = calcdata[0][0].z[row][column];
  if (!Number.isFinite(value)) return say("There is no such part.");
  const { row_labels: rows, column_labels: columns } = layout.meta;
  const told = {
    part: html`<b>${`${rows[row]}, ${columns[column]}`}</b>`,
    value: numeral(value.toFixed(4).replace("-", "−")),
  };
  return sayWith("{part} adds {value} to the logit.", told);
};

// Actions for the head of the chosen cell, null without one.
const HeadButtons = ({ head }) => {
  const toggle = () => alter(withAblation(head));
  const words =
    head &&
    (isAblated(head)
      ? say("Switch this head on again")
      : say("Switch off {head}", { head: say("layer {layer}, head {head}", head) }));
  return html`<p class="whatif-buttons contribution-head" hidden=${!head}>
    <button type="button" class="show-head" onClick=${() => openTab("attention")}>${
      head && say("Show {head}", { head: say("layer {layer}, head {head}", head) })
    }</button>
    <button type="button" class="ablate-part" onClick=${toggle}>${words}</button>
  </p>`;
};

const sumInWords = ({ limit, total, logit }) =>
  say(
    "Orange adds, blue takes away; the colours go from {least} to {most}. All cells sum to " +
      "{total}; the network's own logit is {logit}. A norm divides by the size of the whole " +
      "stream, which is held fixed here.",
    { ...colourEnds(limit), total: numeral(total.toFixed(4)), logit: numeral(logit.toFixed(4)) },
  );

// The map for one token, made on request.
const Found = ({ part, answer, position }) => {
  const [{ of, cell, says }, tell] = useState(/** @type {any} */ ({}));
  const title = (token) =>
    sayWith("What each part adds to the logit of “{token}” as token {place}", {
      token,
      place: position,
    });
  const { cells } = useCells({
    name: `${title(answer.label).join("")}. ${answer.sentence}`,
    keys: "contribution-keys",
    start: () => ({ row: 0, column: 0 }),
    move: (at, box) => tell({ of: answer, cell, says: partInWords(at, box) }),
    pin: (at, box) => {
      tell({ of: answer, cell: at, says: partInWords(at, box) });
      const head = headOf(at, answer, page.run.stack);
      if (head) setHead(head);
    },
  });
  const intact = interventions().length ? [say("The map shows the intact network.")] : [];
  const head = of === answer && cell ? headOf(cell, answer, page.run.stack) : null;
  return html`<div class="contribution-found">
    <h4 class="contribution-title">${title(html`<${Token} label=${answer.label} />`)}</h4>
    <p class="contribution-says" role="status">${[answer.sentence, ...intact].join(" ")}</p>
    <${Figure} part=${part} name="contribution" figure=${answer.figure} ...${cells}
      wide=${say("Contribution to one logit")} />
    <p class="contribution-part" role="status">${of === answer && says}</p>
    <${HeadButtons} head=${head} />
    <p class="hint" id="contribution-keys">${say("Click a cell, or press Enter, to choose its part. Arrow keys move from cell to cell.")}</p>
    <p class="contribution-sum hint">${sumInWords(answer)}</p>
    <p class="hint">${say("This counts what a part adds directly. Switching a head off also takes away what later parts made of it: a head that adds little here but matters much there is read by another head or feed-forward. A logit means something only beside the logits of other tokens.")}</p>
  </div>`;
};

const Contribution = () => {
  const part = usePart();
  const [wanted, ask] = useState(/** @type {any} */ (null)); // {run, position}
  useEvent("run", () => ask(null));
  const { run } = page;
  const { answer, asked } = useAnswer(part, "contribution", wanted);
  const shown = wanted && asked?.run === wanted.run && answer;
  const position = run && predictedPosition();
  const question =
    run &&
    (position < run.labels.length
      ? sayWith("What does each part add to “{token}”, token {place}?", tokenAt(position))
      : say("What does each part add to the likeliest token?"));
  const facts = shown && { place: asked.position, total: answer.total, logit: answer.logit };
  return html`<section class="contribution whatif" ...${part.attributes({ run: run?.run, ...facts })}>
    <p>${say("Every head and every feed-forward adds something to the residual stream, and the network's last step reads the logits from that stream. So the logit of a token is a sum, with one number for each part.")}</p>
    ${run && html`<${PredictedToken} />`}
    <div class="whatif-buttons">
      <button type="button" class="contributes" onClick=${() => ask({ run: run.run, position })}>${question}</button>
    </div>
    ${shown && html`<${Found} part=${part} answer=${answer} position=${asked.position} />`}
  </section>`;
};
export const mount = mounted(...experiment(Contribution));
