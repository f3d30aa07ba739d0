// The text of the run that is shown or being written, with the seed, the n-best list of a beam search, a line of
// status and, at the window's lower edge, the changes to the network.

import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html, untracked, useLayoutEffect, useMemo, useRef, useState } from "../../web/preact.js";
import { controls, isOwn, page, setBatch, setRun, showStatus } from "../../web/store.js";
import { Arcs } from "../../web/arcs.js";
import { fields } from "../../web/fields.js";
import { inText, wordStart } from "../../web/text.js";
import { Text } from "../../web/tokens.js";
import { numeral, say, sayWith, wholeText } from "../../web/messages.js";
import { alter, interventions } from "../../web/runs.js";
import { focusText, openTab, setControls } from "./gradio.js";
import { generate } from "./presses.js";

/** @import { BatchFacts, Change, Hypothesis, RunFacts } from "../../web/types" */
/** @import { Examined } from "./types" */

// ---- the visitor's text: Gradio's box opens in place ----

const COUNTED_SHARE = 0.9; // of the characters that a text may have

// The text's characters out of those that it may have, once few are left.
/** @param {{ most: number }} props */
const CharacterCount = ({ most }) => {
  const count = Array.from(controls.text ?? "").length; // as Python counts
  return html`<span class="characters" role="status" data-over=${count > most}>${
    count > COUNTED_SHARE * most &&
    say("{count} of {most} characters", { count: wholeText(count), most: wholeText(most) })
  }</span>`;
};

/** @param {{ props: { max_characters: number } }} props */
const OwnText = ({ props }) => {
  const [isOpen, setOpen] = useState(false);
  /** @type {{ current: HTMLElement }} */
  const button = useRef(null);
  useLayoutEffect(() => {
    document.body.classList.toggle("writing", isOpen);
    page.typing = isOpen;
    if (isOpen) focusText();
  }, [isOpen]);
  // It closes once its text is shown; a refused one, or one that was typed meanwhile, stays in sight.
  useLayoutEffect(() => {
    if (!isOpen || untracked(() => controls.text) !== page.run?.text) return;
    if (document.activeElement?.closest("#prompt")) button.current.focus();
    setOpen(false);
  }, [page.run]);
  return html`<button type="button" class="own-text" ref=${button} aria-expanded=${String(isOpen)} aria-controls="prompt"
    onClick=${() => setOpen(!isOpen)}>${say("Type your own text")}</button>
    ${isOpen && html`<${CharacterCount} most=${props.max_characters} />`}`;
};

// ---- the text ----

/** @param {{ props: { value: RunFacts, batch: BatchFacts } }} props */
const Tokens = ({ props }) => {
  useLayoutEffect(() => {
    if (!page.run) setRun(props.value);
    if (!page.batch) setBatch(props.batch);
  }, []);
  const facts = page.writing ?? page.run;
  const isStory = fields.tab === "journey";
  return facts && html`<${Text} facts=${facts} Arcs=${isStory ? Arcs : null} />`;
};

// ---- the seed that the shown text was drawn with, and a new one in one click ----

const SHORT_SEEDS = 10_000; // below which a seed is short to read

// What makes two runs the same text.
/** @type {(run: import("../../web/types").Run) => string} */
const essence = ({ model, text, how, interventions: altered, ids }) =>
  JSON.stringify([model, text, how, altered, ids]);

/** @type {(seed: number | null, again: boolean) => string} */
const inWords = (seed, again) => {
  if (!again) return seed === null ? "" : say("Seed {seed}", { seed });
  return seed === null
    ? say("Nothing is drawn at random: the same text again.")
    : say("Seed {seed} again: the same text.", { seed });
};

const Seed = () => {
  const before = useRef("");
  const { run } = page;
  const again = useMemo(() => {
    const now = run ? essence(run) : "";
    const same = now !== "" && now === before.current;
    before.current = now;
    return same;
  }, [run?.run]);
  const seed = run?.seed ?? null;
  const draw = () => {
    const other = Math.floor(Math.random() * (SHORT_SEEDS - 1));
    setControls({ seed: other < (seed ?? SHORT_SEEDS) ? other : other + 1 });
    generate();
  };
  return html`<div class="seed" hidden=${seed === null && !again}>
    <span class="seed-says" role="status">${inWords(seed, again)}</span>
    <button type="button" class="new-seed" hidden=${seed === null} onClick=${draw}>${say("New seed")}</button>
  </div>`;
};

// ---- the n-best list ----

/** @param {number} value */
const score = (value) => html`<td class="value">${numeral(value.toFixed(3))}</td>`;
/** @param {Hypothesis} hypothesis */
const row = ({ text, score: total, normalised, ended }) => html`<tr>
  <td><bdi>${text}</bdi>${!ended && html`<small> ${say("(cut at the length)")}</small>`}</td>
  ${score(total)}${score(normalised)}
</tr>`;

const Hypotheses = () => {
  const hypotheses = page.run?.hypotheses ?? [];
  const names = [say("text"), say("score"), say("per length")];
  return html`<section class="hypotheses" hidden=${!hypotheses.length} data-run=${page.run?.run}>
    <div class="next-head"><h2>${say("The search's best texts")}</h2>
      <button type="button" class="to-tab" onClick=${() => openTab("prediction")}>${say("Prediction")}</button></div>
    <table>
      <thead><tr>${names.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${hypotheses.map(row)}</tbody>
    </table>
    <p class="hint">${say("Score: the sum of the tokens' log-probabilities. The texts are ranked by score ÷ length to the power of the length penalty. The pictures are of the first one; Prediction shows the tree of all.")}</p>
  </section>`;
};

// ---- how it went: progress and results quietly, mistakes as an alert ----

const STORED = say("A stored example, read by this model.");
const QUOTED_TOKENS = 2; // tokens before the chosen one that its question quotes

// The question that the first tab answers about a stored example; null for what predicts no next token.
const question = () => {
  const { stack, labels } = page.run ?? {};
  if (stack !== "decoder" || fields.tab !== "journey") return null;
  const place = page.query?.stack === stack ? page.query.index : labels.length - 1;
  const end = inText(labels.slice(Math.max(0, place - QUOTED_TOKENS), place + 1)).trim();
  const next = inText(labels.slice(place + 1, place + 2)).trim();
  const [quoted, follows] = [end, next].map((text) => html`<bdi>${text}</bdi>`);
  return next
    ? sayWith("Why does the network write “{next}” after “{end}”?", { next: follows, end: quoted })
    : sayWith("What will the network write after “{end}”, and why?", { end: quoted });
};

/** @param {{ props: { value: { kind: string, text: string } } }} props */
const Status = ({ props }) => {
  useLayoutEffect(() => void (page.status.rev || showStatus(props.value)), []);
  const { kind, text, rev } = page.status;
  const failed = kind === "error";
  const asks = text === STORED && page.run?.example ? question() : null;
  // Each alert is a new element: where a part fails, server/page/components.py writes into this one.
  return html`<div data-rev=${rev}>
    <div class="status" role="status" hidden=${failed}><span class=${asks ? "asks" : undefined}>${!failed && (asks ?? text)}</span></div>
    <div class="problem" role="alert" hidden=${!failed} key=${rev}><span>${failed && text}</span></div>
  </div>`;
};

// ---- at the window's lower edge: each change, what it changes in the text, and how it is taken back ----

const NARROW_PX = 700;
// Tokens shown of the common beginning, and from the first difference on.
const shared = () => (window.innerWidth < NARROW_PX ? 2 : 6);
const DIFFERENT_TOKENS = 24;

// What is altered, {says, others}: in words, and all that stays where it is taken back.
/** @type {(run: import("../../web/types").Run) => { says: string, others: Change[] }[]} */
const changesOf = ({ interventions: all, forced_tokens: forced, n_prompt: start, labels }) => {
  const plain = interventions();
  const changes = all.map(({ says }, place) => ({
    says,
    others: plain.filter((_, at) => at !== place),
  }));
  const place = start + forced.length - 1;
  const token = say("token {place} is “{token}”", { place, token: labels[place] });
  return forced.length ? [...changes, { says: token, others: plain }] : changes;
};
/** @param {{ says: string, others: Change[] }} props */
const ChangeLine = ({ says, others }) => html`<li><bdi>${says}</bdi>
  <button type="button" aria-label=${say("Take back: {change}", { change: says })}
    onClick=${() => alter(others)}>×</button>
</li>`;

// of: its data-text; both: what the server says of the intact text.
/** @param {{ of: string, word: string, labels: string[], both: { same: number, n_prompt: number } }} props */
const Line = ({ of, word, labels, both: { same, n_prompt: from } }) => {
  const changed = wordStart(labels, same);
  const start = Math.min(changed, Math.max(from, wordStart(labels, same - shared())));
  const alike = inText(labels.slice(start, changed));
  const differs = inText(labels.slice(changed, same + DIFFERENT_TOKENS)).trimEnd();
  const gap = alike && differs.startsWith(" ") ? " " : "";
  return html`<p class="altered-text"><span class="which">${word}</span>${" "}
    <bdi data-text=${of} translate=${false}>${start > from && "… "}${alike}${gap}${
      differs ? html`<span class="differs">${differs.trim()}</span>` : say("(nothing)")
    }</bdi>
  </p>`;
};

/** @type {(both: { equal: boolean }, examined: Examined | null | false) => string} */
const effectInWords = ({ equal }, examined) =>
  [
    equal && say("It changes no token of this text."),
    examined &&
      say("Held-out questions answered right: {intact} of {asked} before, {altered} after.", {
        ...examined,
      }),
  ]
    .filter(Boolean)
    .join(" ");

const Altered = () => {
  const part = usePart();
  const { run, model, labels } = page.run ?? {};
  const changes = run ? changesOf(page.run) : [];
  const texts = useAnswer(part, "intact_text", changes.length && { run, forced: false });
  const both = changes.length > 0 && texts.asked?.run === run && texts.answer;
  // A network that has learned an exercise is asked all of it again.
  const asked = { model, interventions: interventions() };
  const exam = useAnswer(part, "examined", both && isOwn(model) && asked);
  const right = both && JSON.stringify(exam.asked) === JSON.stringify(asked) && exam.answer;
  const facts = both && { run, same: both.same, equal: both.equal };
  const grades = right && { right: right.altered, "right-before": right.intact };
  return html`<section class="altered" aria-label=${say("What is altered")} hidden=${!changes.length}
    ...${part.attributes({ ...facts, ...grades })}>
    <div class="altered-head">
      <ul aria-label=${say("What is altered")}>${changes.map(({ says, others }) => html`<${ChangeLine} says=${says} others=${others} />`)}</ul>
      <button type="button" class="intact" onClick=${() => alter([])}>${say("Reset")}</button>
    </div>
    <div class="altered-texts" role="status">
      <p class="altered-says">${both && effectInWords(both, right)}</p>
      ${
        both &&
        !both.equal &&
        html`<${Line} of="before" word=${say("before")} labels=${both.labels} both=${both} />
        <${Line} of="after" word=${say("after")} labels=${labels} both=${both} />`
      }
    </div>
  </section>`;
};

export const mount = {
  own_text: mounted(OwnText),
  tokens: mounted(Tokens),
  seed: mounted(Seed),
  hypotheses: mounted(Hypotheses),
  status: mounted(Status),
  altered: mounted(Altered),
};
