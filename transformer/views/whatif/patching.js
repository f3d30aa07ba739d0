// Patching: another text's activations at each layer and position, and their effect on one token.

import { ask } from "../../web/ask.js";
import { alter, experiment, generates, interventions } from "../../web/runs.js";
import { cellBox, useCells } from "../../web/cells.js";
import { Switch } from "../../web/controls.js";
import { Figure } from "../../web/figure.js";
import { labelRoom } from "../../web/labels.js";
import { PredictedToken, predictedIfChosen, tokenAt } from "../../web/selection.js";
import { capital, colourEnds, numeral, say, sayWith } from "../../web/messages.js";
import { mounted, useAnswer, useEvent, usePart, trying } from "../../web/part.js";
import { html, useLayoutEffect, useState } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { Token } from "../../web/text.js";

const STACKS = { encoder: say("encoder"), decoder: say("decoder") };
const PARTS = { resid_post: say("residual stream"), z: say("heads"), mlp_out: say("feed-forward") };
const KINDS = { self: say("self-attention"), cross: say("cross-attention") };
const TARGETS = { other: say("what the other run expects"), here: say("token here") };

// ---- the map ----

// Make room for the labels of both texts.
/** @type {(figure: import("../../web/types").Figure) => void} */
const look = ({ layout }) => {
  const [t, b] = [layout.xaxis2, layout.xaxis].map((axis) => labelRoom(axis) + 30);
  layout.height += t - layout.margin.t + b - layout.margin.b;
  Object.assign(layout.margin, { t, b });
};
/** @type {(log: number) => string} */
const probability = (log) => numeral(Math.exp(log).toPrecision(2));
/** @type {(map: import("./types").PatchMap) => string} */
const inWords = ({ before, other, limit, lengths: [here, there], altered }) =>
  [
    say("ln p is {here} here (p = {p_here}) and {there} in the other run (p = {p_there}).", {
      here: numeral(before.toFixed(2)),
      p_here: probability(before),
      there: numeral(other.toFixed(2)),
      p_there: probability(other),
    }),
    say(
      "Orange: the patch makes the token likelier. Purple: it makes it less likely. The colours " +
        "go from {least} to {most}.",
      colourEnds(limit),
    ),
    here !== there &&
      say(
        "The texts have {here} and {there} tokens. Places are counted from the first token, so " +
          "after a word of another length they no longer correspond.",
        { here, there },
      ),
    altered && say("The map shows the intact network."),
  ]
    .filter(Boolean)
    .join(" ");

/** @type {(cell: import("../../web/types").Cell, box: import("../../web/types").Drawn) => string} */
const cellInWords = ({ row, column }, { layout, calcdata }) => {
  const change = calcdata[0][0].z[row][column];
  return say("layer {layer}, place {place} “{token}”: ln p {change}", {
    layer: row,
    place: column,
    token: layout.meta.column_labels[column],
    change: `${change < 0 ? "" : "+"}${numeral(change.toFixed(4))}`,
  });
};
/** @type {(box: import("../../web/types").Drawn) => import("../../web/types").Cell} */
const strongest = ({ calcdata }) => {
  /** @type {{ z: number[][] }} */
  const { z } = calcdata[0][0];
  const best = Math.max(...z.map((row) => Math.max(...row.map(Math.abs))));
  const row = z.findIndex((values) => values.some((value) => Math.abs(value) === best));
  return { row, column: [...z[row]].findIndex((value) => Math.abs(value) === best) };
};
/** @type {(cell: import("../../web/types").Cell, box: import("../../web/types").Drawn) => void} */
const bringIntoSight = ({ row, column }, box) => {
  const frame = /** @type {HTMLElement} */ (box.closest(".wide"));
  const { left, width } = cellBox(box, column, column, row, row);
  if (left < frame.scrollLeft || left + width > frame.scrollLeft + frame.clientWidth) {
    frame.scrollLeft = left - frame.clientWidth / 2;
  }
};
/** @type {(cell: import("../../web/types").Cell, asked: import("./types").PatchChoice & { other: string }) => void} */
const apply = ({ row, column }, { stack, part, kind, other }) => {
  const patch = { type: "patch", stack, layer: row, positions: [column], text: other, part };
  if (kind !== "self") Object.assign(patch, { kind });
  const others = interventions().filter(({ type }) => type !== "patch");
  alter([...others, patch], [], page.run.text); // positions are those of this text
};

/** @param {{ part: import("../../web/part.js").Part, answer: import("./types").PatchMap, asked: import("./types").PatchChoice & { run: string, other: string } }} props */
const Found = ({ part, answer, asked }) => {
  const [said, setSaid] = useState("");
  const [drawn, setDrawn] = useState(/** @type {import("./types").PatchMap | null} */ (null)); // the answer of the drawn map
  const { cells, light } = useCells({
    name: say("What if a part came from another text?"),
    keys: "patch-keys",
    start: strongest,
    move: (cell, box) => {
      bringIntoSight(cell, box);
      setSaid(cellInWords(cell, box));
    },
    pin: (cell) => apply(cell, asked),
  });
  useEvent("run", () => light(null));
  const { run, stack, part: what, target } = asked;
  const facts = Object.entries({ run, stack, part: what, target, place: answer.position });
  const data = drawn === answer && facts.map(([name, value]) => [`data-${name}`, value]);
  const title = sayWith("Change of ln p(“{target}”) as token {place}, where “{token}” stands", {
    target: html`<${Token} label=${answer.target} />`,
    ...tokenAt(answer.position, answer.token),
  });
  return html`<div class="patch-found">
    <h4 class="patch-title">${title}</h4>
    <p class="patch-says">${inWords(answer)}</p>
    <${Figure} part=${part} name="patching" figure=${answer.figure} ...${cells}
      box=${{ ...cells.box, ...Object.fromEntries(data || []) }} done=${() => setDrawn(answer)}
      change=${look} wide=${say("What if a part came from another text?")} />
    <p class="patch-said" role="status" aria-live="polite">${said}</p>
    <p class="hint" id="patch-keys">${say("Click a cell, or press Enter, to run the text again with that patch instead of an earlier one. Arrow keys move from cell to cell.")}</p>
  </div>`;
};

// ---- what can be chosen ----

/** @param {{ chosen: import("./types").PatchChoice, choose: (chosen: import("./types").PatchChoice) => void, translates: boolean }} props */
const Choices = ({ chosen, choose, translates }) => {
  /** @param {keyof import("./types").PatchChoice} name @param {string} title @param {Record<string, string>} words @param {boolean} [hidden] */
  const one = (name, title, words, hidden = false) =>
    html`<${Switch} name=${`patch-${name}`} title=${title} options=${Object.entries(words)}
      value=${chosen[name]} hidden=${hidden} set=${(/** @type {string} */ value) => choose({ ...chosen, [name]: value })} />`;
  const ofOneKind = chosen.stack !== "decoder" || chosen.part !== "z";
  return html`<div class="whatif-head">
    ${one("stack", say("Stack"), STACKS, !translates)}
    ${one("part", capital(say("part")), PARTS)}
    ${one("kind", say("Which attention"), KINDS, !translates || ofOneKind)}
    ${one("target", say("Probability of"), TARGETS)}
  </div>`;
};
// The choices that apply to the shown network.
/** @type {(chosen: import("./types").PatchChoice, translates: boolean) => import("./types").PatchChoice} */
const wanted = ({ stack, part, kind, target }, translates) => ({
  stack: translates ? stack : "decoder",
  part,
  kind: translates && stack === "decoder" && part === "z" ? kind : "self",
  target,
});

// The other text: the last proposal, until the visitor types another.
/** @type {(proposed: string | null | undefined) => { text: string, type: (text: string | null) => void }} */
const useText = (proposed) => {
  const [typed, type] = useState(/** @type {string | null} */ (null));
  useLayoutEffect(() => type((text) => (text === proposed ? null : text)), [proposed]);
  return { text: typed ?? proposed ?? "", type };
};
const FIRST_CHOICE = { stack: "encoder", part: "resid_post", kind: "self", target: "other" };

const Patching = () => {
  const part = usePart();
  const [chosen, setChosen] = useState(FIRST_CHOICE);
  const [asked, setAsked] = useState(
    /** @type {{ of: string, question: import("./types").PatchChoice & { run: string, other: string } } | null} */ (
      null
    ),
  ); // of: the model and text of its map
  const { run } = page;
  const translates = (run?.source_labels.length ?? 0) > 0;
  const position = run && predictedIfChosen();
  const reads = run && generates() && { run: run.run, position };
  const { answer: other } = useAnswer(part, "other_text", reads);
  const { text, type } = useText(other?.variant);

  const fits = asked?.of === `${run?.model} ${run?.text}`;
  const map = useAnswer(part, ({ question }) => ask("patching", question), fits && asked);
  const showMap = trying((/** @type {import("./types").PatchChoice} */ choices) => {
    if (!text.trim()) throw new Error(say("A patch needs another text: type one first."));
    const question = { run: run.run, other: text, position, ...wanted(choices, translates) };
    return setAsked({ of: `${run.model} ${run.text}`, question });
  });
  const choose = (/** @type {import("./types").PatchChoice} */ choices) => {
    setChosen(choices);
    if (asked) showMap(choices);
  };
  const tryPair = () => {
    type(null);
    alter([], [], other?.teaching);
  };
  const none =
    other &&
    !other.variant &&
    say(
      "There is no word here that we know how to replace: type another text, or try our example.",
    );
  return html`<section class="patching whatif" ...${part.attributes({ run: run?.run })}>
    <p>${say("The network reads another text too. What it computes there, at one layer and one place, is put in place of what it computes here. Where that changes the next token, the network carries what tells the two texts apart.")}</p>
    <label class="patch-label">${say("Another text, ideally with one word replaced")}
      <textarea class="patch-text" rows="2" maxlength="2000" value=${text}
        onInput=${(/** @type {import("../../web/types").ChangeOf<HTMLTextAreaElement>} */ { target }) => type(target.value)}></textarea>
    </label>
    <p class="patch-hint hint" role="status">${none}</p>
    ${position !== null && run && html`<${PredictedToken} />`}
    <${Choices} ...${{ chosen, choose, translates }} />
    <div class="whatif-buttons">
      <button type="button" class="main show-map" onClick=${() => showMap(chosen)}>${say("Show what each patch changes")}</button>
      <button type="button" class="try-pair" hidden=${!other || other.teaching === run?.text}
        onClick=${tryPair}>${other && say("Try it with “{text}”", { text: other.teaching })}</button>
    </div>
    ${fits && map.asked?.of === asked?.of && html`<${Found} part=${part} answer=${map.answer} asked=${map.asked?.question} />`}
  </section>`;
};
export const mount = mounted(...experiment(Patching));
