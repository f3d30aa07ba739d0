// Which words of the text mattered to the next one: each is left out in turn. The words in the text are shaded by their
// effect; the one that is pressed, or pointed at, is struck out there, and its text without it is in the card.

import { askOnce } from "../../web/ask.js";
import { effects } from "../../web/effects.js";
import { percentText, say, sayWith } from "../../web/messages.js";
import { useAnswer } from "../../web/part.js";
import { html, useLayoutEffect, useMemo, useState } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { continued, Token, WORD, wordOf } from "../../web/text.js";
import { shared } from "./next_words.js";

const MAX_ROWS = 5;
const MIN_CHANGE = 0.02; // of a probability: a smaller change is none
const FULL_CHANGE = 0.2; // a change that is shaded in full, if none is larger

/**
 * @typedef {import("./types").WordEffect} Effect
 * @typedef {import("./types").NextToken} NextToken
 * @typedef {Effect & { alone?: Effect[] }} WordRow alone: of all mentions of a word, each of them
 */

// Each word, the largest effect first. Where all mentions of a word change more together than each alone, they stand
// for it.
/** @type {(answer: import("./types").WordEffects) => WordRow[]} */
const entriesOf = ({ words, mentions, target }) => {
  const size = (/** @type {Effect} */ { probability: p }) => Math.abs(p - target.probability);
  const together = mentions
    .map((all) => ({ ...all, alone: words.filter(({ places: [at] }) => all.places.includes(at)) }))
    .filter((all) => all.alone.every((one) => size(one) < size(all)));
  const others = words.filter(
    ({ places: [at] }) => !together.some(({ places }) => places.includes(at)),
  );
  return [...together, ...others].sort((a, b) => size(b) - size(a));
};

const strong = (/** @type {string} */ label) => html`<strong><${Token} label=${label} /></strong>`;

// What the probability of a word is without each mention alone: "84 %", or "84 to 91 %".
/** @type {(alone: Effect[]) => string} */
const between = (alone) => {
  const all = alone.map(({ probability }) => probability);
  const [least, most] = [Math.min(...all), Math.max(...all)].map((p) => percentText(p));
  return least === most ? least : say("{least} to {most}", { least, most });
};

/** @param {{ entries: WordRow[], target: NextToken, word: string }} props */
const Finding = ({ entries, target, word }) => {
  const [first] = entries;
  const before = percentText(target.probability);
  if (!first) return say("There is no other word that could be left out.");
  const values = {
    ...{ word: strong(first.word), next: strong(word), before },
    after: html`<strong>${percentText(first.probability)}</strong>`,
  };
  if (Math.abs(first.probability - target.probability) < MIN_CHANGE)
    return sayWith("Leaving out any one word changes little: {next} stays near {before}.", values);
  if (!first.alone) return sayWith("Without {word}, {next} goes from {before} to {after}.", values);
  return sayWith(
    "Without all {n} mentions of {word}, {next} goes from {before} to {after}; without one of them alone, to {alone}.",
    { ...values, n: first.alone.length, alone: between(first.alone) },
  );
};

/** @param {{ entry: WordRow, target: NextToken, isShown: boolean, choose: () => void }} props */
const Row = ({ entry: { word, alone, probability }, target, isShown, choose }) => {
  const wide = (/** @type {number} */ share) => `${(100 * share).toFixed(2)}%`;
  const name = alone ? say("{word} (all {n})", { word, n: alone.length }) : word;
  return html`<li><button type="button" class="reader" aria-pressed=${String(isShown)} onClick=${choose}>
    <bdi translate=${false}>${name}</bdi>
    <span class="bars"><i class="without" style=${{ width: wide(probability) }} />
      <i class="own" style=${{ left: wide(target.probability) }} /></span>
    <span class="value">${percentText(probability)}</span></button></li>`;
};

// The texts that follow with a word and without it, as far as they are known.
/** @type {(part: import("../../web/part.js").Part, position: number, places: number[] | undefined) => string[] | null} */
const useTexts = (part, position, places) => {
  const { run } = page.run;
  const both = async (/** @type {{ run: string, position: number, places: number[] }} */ data) => {
    const [whole, without] = await Promise.all([
      askOnce("continuation", { run, position }),
      askOnce("without_words", data),
    ]);
    return [whole, without].map(({ labels = [] }) => labels);
  };
  const asked = places && page.run.stack === "decoder" && { run, position, places };
  const texts = useAnswer(part, both, asked).current;
  return texts && texts.map((labels) => continued(labels, position));
};

// What would be written without the word, or in its gap.
/** @param {{ texts: string[] | null, shown: WordRow, isDecoder: boolean }} props */
const Texts = ({ texts, shown, isDecoder }) => {
  const { likeliest } = shown;
  const [whole, without] = (texts ?? []).map(
    (text) => html`<strong><bdi translate=${false}>“${text}”</bdi></strong>`,
  );
  const values = { word: strong(shown.word), whole, without };
  if (!isDecoder)
    return sayWith("Without {word}, the likeliest is {other}: {share}.", {
      ...values,
      other: strong(likeliest.label.replace(WORD, "")),
      share: percentText(likeliest.probability),
    });
  if (!texts) return null;
  return texts[0] === texts[1]
    ? sayWith("Without {word}, too, the network would write {whole}.", values)
    : sayWith("With {word} the network writes {whole}, without it {without}.", values);
};

// answer: of the journey, about whose target the words are asked; null while that is on its way.
/** @param {{ part: import("../../web/part.js").Part, answer: import("./types").JourneyAnswer | null }} props */
export const WordCard = ({ part, answer }) => {
  const { run } = page.run;
  const about = answer && { run, position: answer.position, target: answer.target };
  const result = useAnswer(part, (data) => askOnce("word_effects", data), about).current;
  const entries = useMemo(() => (result ? entriesOf(result) : []), [result]);
  const [pressed, press] = useState(/** @type {WordRow | null} */ (null));
  const entryAt = (/** @type {number} */ place) =>
    entries.find(({ places }) => places.includes(place)) ?? null;
  const { pointed } = page;
  const isOver = Boolean(pointed && result && pointed.stack === result.stack);
  const hovered = isOver ? entryAt(pointed?.index ?? -1) : null;
  const chosen = pressed && entries.includes(pressed) ? pressed : entries[0];
  const shown = hovered ?? chosen;
  const texts = useTexts(part, answer?.position ?? 0, shown?.places);
  useLayoutEffect(() => {
    const { stack = "", target } = result ?? {};
    const before = target?.probability ?? 0;
    const most = Math.max(
      FULL_CHANGE,
      ...entries.map(({ probability }) => Math.abs(probability - before)),
    );
    /** @type {number[]} */
    const shares = [];
    for (const { places, probability } of entries)
      for (const at of places) shares[at] = (before - probability) / most;
    const choose = (/** @type {number} */ place) => press(entryAt(place));
    effects.value = result && { ...{ run, stack, shares, choose }, left: shown?.places ?? [] };
    shared.word = result && shown ? { places: shown.places, word: shown.word } : null;
  }, [result, shown]);
  useLayoutEffect(
    () => () => {
      effects.value = null;
      shared.word = null;
    },
    [],
  );
  const word = answer ? wordOf(answer.target_label, answer.position) : "";
  const rows = entries.slice(0, MAX_ROWS);
  return html`<section class="head-card word-card" aria-live="polite" aria-busy=${!result}>
    <h3><span class="card-line">${answer ? sayWith("Which words mattered to {word}?", { word: html`<${Token} label=${word} />` }) : "…"}</span></h3>
    ${
      result &&
      html`<p>${Finding({ entries, target: result.target, word })}</p>
        <ol class="word-rows">${rows.map(
          (entry) =>
            html`<${Row} entry=${entry} target=${result.target} isShown=${entry === shown} choose=${() => press(entry)} />`,
        )}</ol>
        <p class="word-texts">${shown && html`<${Texts} texts=${texts} shown=${shown} isDecoder=${page.run.stack === "decoder"} />`}</p>
        <p class="hint">${result.masked ? say("A mask token takes the place of each word in turn. Press a word of the text.") : say("Each word is left out in turn, and the text is read again. Press a word of the text.")}</p>`
    }
  </section>`;
};
