// What the chosen head does, in three sentences: what it reads, what it adds to the next word, and what would be
// written without it.

import { isAblated, SwitchOff } from "../../web/runs.js";
import { askOnce, keptAnswer } from "../../web/ask.js";
import { knownName } from "../../web/head_grid.js";
import { weightsOfRow } from "../../web/head_numbers.js";
import { capital, numeral, percentText, say, sayWith } from "../../web/messages.js";
import { useAnswer } from "../../web/part.js";
import { html, useLayoutEffect } from "../../web/preact.js";
import { headName, siteName } from "../../web/sites.js";
import { page, sameHead, setHead } from "../../web/store.js";
import { continued, Token, WORD, wordOf } from "../../web/text.js";
import { WhoReads } from "../../web/tokens.js";
import { amountOf, partsOf } from "./geometry.js";
import { isSurprise } from "./leading_head.js";
import { forwardName, shared, withoutHead } from "./next_words.js";

const MIN_NAMED_WEIGHT = 0.15; // a weight that is named after the largest

/**
 * @typedef {import("../../web/types").Head} Head
 * @typedef {import("./types").JourneyAnswer} JourneyAnswer
 * @typedef {{ weight: number, column: number, label: string }} ReadKey
 * @typedef {import("./types").Forward & { kind?: string, head?: number }} AnyPart a head, or a feed-forward
 */

// ---- the sentences ----

const signed = (/** @type {number} */ amount) =>
  `${amount < 0 ? "−" : "+"}${numeral(Math.abs(amount).toFixed(1))}`;
export const strong = (/** @type {string} */ label) =>
  html`<strong><${Token} label=${label.replace(WORD, "") || label} /></strong>`;

// The places that the head reads most at a row, with their weights, largest first.
/** @type {(numbers: import("../../web/head_numbers.js").HeadNumbers, row: number) => ReadKey[]} */
const readAt = (numbers, row) =>
  Array.from(weightsOfRow(numbers, row))
    .map((weight, column) => ({ weight, column, label: numbers.labels.key[column] }))
    .sort((a, b) => b.weight - a.weight);
// row: of the token in the head's stack; it may be before the recorded ones; gap: the guess, if it is a gap; writes:
// of cross-attention, the word that is written next.
/** @param {{ numbers: import("../../web/head_numbers.js").HeadNumbers, row: number | null, isSelf: boolean, gap: string | null, writes: string | null }} props */
const Reads = ({ numbers, row, isSelf, gap, writes }) => {
  if (row === null || row < 0 || row >= numbers.labels.query.length) return null;
  const { query, key } = numbers.labels;
  const [most, ...others] = readAt(numbers, row);
  const follows = (/** @type {ReadKey} */ { column }) =>
    isSelf && column > 0 && column <= row && key[column - 1] === query[row];
  const alike = others.filter(
    (one) =>
      one.weight >= MIN_NAMED_WEIGHT && one.label === most.label && follows(one) === follows(most),
  );
  const all = [most, ...alike].map(({ weight }) => percentText(weight)).join(" + ");
  const shares = html`<span class="shares">${all}</span>`;
  const values = { at: strong(gap ?? query[row]), key: strong(most.label), shares };
  if (writes !== null)
    return sayWith("To write {word} it reads {key} most: {shares} of its attention.", {
      ...values,
      word: strong(writes),
    });
  if (isSelf && most.column === row)
    return sayWith("At {at} it reads that token itself: {shares} of its attention.", values);
  return follows(most)
    ? sayWith(
        "At {at} it reads the {key} that followed {at} before: {shares} of its attention.",
        values,
      )
    : sayWith("At {at} it reads {key} most: {shares} of its attention.", values);
};

// The part that adds most to the word, apart from this one; see partsOf.
const isHead = /** @type {(part: AnyPart) => part is Head} */ ((part) => Boolean(part.kind));
/** @type {(answer: JourneyAnswer, at: AnyPart) => AnyPart & { amount: number }} */
const largestOther = (answer, at) =>
  partsOf(answer, page.run.n_heads)
    .map((part) => ({ stack: page.run.stack, ...part }))
    .filter((part) =>
      isHead(at) ? !isHead(part) || !sameHead(part, at) : part.kind || part.layer !== at.layer,
    )
    .reduce((best, part) => (part.amount > best.amount ? part : best));
/** @param {{ part: AnyPart }} props */
const PartName = ({ part }) => {
  const { stack, layer } = part;
  const go = () =>
    isHead(part)
      ? setHead({ stack, layer, kind: part.kind, head: part.head })
      : (page.forward = { stack, layer });
  const name = isHead(part) ? headName(part) : forwardName(part);
  return html`<button type="button" class="pick" onClick=${go}>${name}</button>`;
};
/** @param {{ answer: JourneyAnswer, at: AnyPart }} props */
export const Adds = ({ answer, at }) => {
  if (!answer.heads || !answer.feed_forward)
    return say("What each part adds cannot be told apart in this network.");
  const amount = isHead(at)
    ? amountOf(answer, at, page.run.n_heads)
    : answer.feed_forward[at.layer];
  const other = largestOther(answer, at);
  const values = {
    word: strong(wordOf(answer.target_label, answer.position)),
    amount: html`<strong>${signed(amount)}</strong>`,
    most: signed(other.amount),
    part: html`<${PartName} part=${other} />`,
  };
  if (!at.kind)
    return amount > other.amount
      ? sayWith(
          "This feed-forward adds more to {word} than any other part: {amount} (the next one {most}).",
          values,
        )
      : sayWith("This feed-forward adds {amount} to {word}; {part} adds most: {most}.", values);
  return amount > other.amount
    ? sayWith("It adds more to {word} than any other part: {amount} (the next one {most}).", values)
    : sayWith("It adds {amount} to {word}; {part} adds most: {most}.", values);
};

const NOTHING = continued([], 0);
// place: after which the texts follow. ofHead: whether a head is the part that they are with and without, or a
// feed-forward.
/** @param {{ place: number, texts: string[][], ofHead?: boolean }} props */
export const Writes = ({ place, texts, ofHead = true }) => {
  const written = texts.map((labels) => continued(labels, place));
  const [whole, without] = written.map(
    (text) =>
      html`<strong><bdi translate=${false}>${text === NOTHING ? text : `“${text}”`}</bdi></strong>`,
  );
  const values = { whole, without };
  if (written[0] === written[1])
    return ofHead
      ? sayWith("Without it, too, the network would write {whole}.", values)
      : sayWith("Without this feed-forward, too, the network would write {whole}.", values);
  return ofHead
    ? sayWith("With it the network writes {whole}, without it {without}.", values)
    : sayWith("With this feed-forward the network writes {whole}, without it {without}.", values);
};

// ---- the card ----

// What the network would write without a head, for `useTexts`, on pointer down on the head.
/** @type {(position: number, at: Head) => { run: string, position: number, site: string, head: number }} */
const textAsked = (position, at) => {
  const { run } = page.run;
  return { run, position, site: siteName(at), head: at.head };
};
/** @type {(answer: { position: number }, at: Head) => void} */
export const askTexts = ({ position }, at) =>
  page.run.stack === "decoder" &&
  void askOnce("continuation", textAsked(position, at)).catch(() => {});

// What the network would write at a place with the head and without, {texts: [labels, labels], or null where it writes
// nothing}; null while it is not known.
/** @type {(part: import("../../web/part.js").Part, answer: JourneyAnswer | null, at: Head) => import("./types").HeadTexts | null} */
const useTexts = (part, answer, at) => {
  const { run, stack } = page.run;
  const isOff = isAblated(at);
  /** @type {(data: ReturnType<typeof textAsked>) => Promise<import("./types").Continuation[]>} */
  const both = async (data) => {
    if (stack === "decoder") {
      const texts = await Promise.all(
        [{ run, position: data.position }, data].map((one) => askOnce("continuation", one)),
      );
      return isOff ? texts.reverse() : texts; // the second is of the head switched over
    }
    const without = await withoutHead(data);
    return [/** @type {JourneyAnswer} */ (answer), without].map(({ likeliest: [{ label }] }) => ({
      labels: [label],
    }));
  };
  const written = async (/** @type {ReturnType<typeof textAsked>} */ data) => {
    const texts = (await both(data)).map(({ labels }) => labels);
    return { texts: texts[0].length ? texts : null };
  };
  return useAnswer(part, written, answer && textAsked(answer.position, at)).current;
};
// Whether a head, without which these texts differ, alone changes the next token; false while it is not known, for which nothing
// waits: in a browser it takes seconds.
/** @type {(answer: JourneyAnswer | null, at: Head, texts: string[][] | null | undefined) => boolean} */
const useDecision = (answer, at, texts) => {
  const isChanged = texts && !isAblated(at) && texts[0][0] !== texts[1][0];
  const asked = answer && isChanged ? { run: page.run.run, position: answer.position } : null;
  useLayoutEffect(
    () => void (asked && askOnce("deciding", asked).catch(() => {})),
    [JSON.stringify(asked)],
  );
  return asked !== null && keptAnswer("deciding", asked).value?.n === 1;
};

// What a card says of a head.
/** @param {import("./types").HeadSentences} props */
const sentencesOf = ({ numbers, answer, at, row, texts, isOff, whose }) => {
  const { stack, hidden, labels } = page.run;
  const isOwn = at.stack === stack;
  const isSelf = at.kind === "self" && isOwn;
  const { position, target_label: target } = answer;
  const gap = hidden.includes(position) ? target : null;
  const writes = at.kind === "cross" ? (labels[position + 1] ?? target) : null;
  return [
    isOff
      ? say("{whose} is switched off: it reads nothing.", { whose })
      : html`<${Reads} numbers=${numbers} row=${row} isSelf=${isSelf} gap=${gap} writes=${writes} />`,
    isOwn && html`<${Adds} answer=${answer} at=${at} />`,
    texts && html`<${Writes} place=${position} texts=${texts} />`,
  ].filter(Boolean);
};

// All that is said of a head appears at once, and nothing of another under its name.
/** @param {import("./types").HeadCardProps} props */
export const HeadCard = ({ part, answer, numbers, at, row, label }) => {
  const isOff = isAblated(at);
  const whose = capital(headName(at));
  const written = useTexts(part, answer, at);
  const isDeciding = useDecision(answer, at, written?.texts);
  const isKnown = answer && numbers && written;
  const { kinds, n_heads: across } = page.run;
  const nHeads = kinds.reduce((sum, { n_layers: count }) => sum + count * across, 0);
  const name = knownName(whose, isOff);
  const decides = isKnown && isDeciding;
  const decision = say("One head of {n} decides", { n: nHeads });
  const sentences = isKnown
    ? sentencesOf({ numbers, answer, at, row, texts: written.texts, isOff, whose })
    : [];
  // Two lines, whichever are filled, and room for three sentences: the buttons stay where they are.
  return html`<section class="head-card" aria-live="polite" aria-busy=${!isKnown}>
    <h3><span class="card-line">${shared.isChoosing ? "…" : decides ? decision : name}</span>
      <small>${decides && name}${" "}${isKnown && label && html`<span class="head-label" aria-live="off">${label}</span>`}</small></h3>
    ${isKnown && isSurprise(answer.position) && !decides && html`<p class="hint">${say("No head leads in this text: its most surprising word.")}</p>`}
    <ol>${sentences.map((sentence) => html`<li>${sentence}</li>`)}</ol>
    <div class="card-actions"><${SwitchOff} of=${at} />
      <button type="button" class="enlarge" aria-expanded=${String(shared.isLarge)}
        onClick=${() => (shared.isLarge = !shared.isLarge)}>${shared.isLarge ? say("Back to all heads") : say("Look at it large")}</button>
      ${page.query && html`<${WhoReads} />`}
      ${
        isKnown &&
        label &&
        html`<button type="button" class="where-else" aria-expanded=${String(shared.showsPassages)}
          onClick=${() => (shared.showsPassages = !shared.showsPassages)}>${say("Where else?")}</button>`
      }</div>
  </section>`;
};
