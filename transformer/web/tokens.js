// A text as tokens: generated ones shaded by probability, or all by the weights of one of them; and, for a
// translator, the source that its encoder reads. On the first tab it is a text to read: words with real spaces,
// arcs from a token to those that it reads, and what would follow.

import { ask, askOnce } from "./ask.js";
import { Player } from "./controls.js";
import { followStack, forgotten, readPosition } from "./selection.js";
import { headNumbers, weightsOfRow } from "./head_numbers.js";
import { numeral, say } from "./messages.js";
import { hasMoved } from "./pointer.js";
import { effects } from "./effects.js";
import { useAnswer, useEvent, usePart } from "./part.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "./preact.js";
import { chosenRow, page, sameToken, setKey, setQuery, tracedFrom } from "./store.js";
import {
  inText,
  ReadingInWords,
  sourceOf,
  Token,
  weightAt,
  wholeCharacters,
  WORD,
} from "./text.js";

const SHADE_ROOT = 1.5; // the shade is a root of the weight, so that 0.05 is visible as well as 0.5
const MANY_TOKENS = 90; // tokens: more are written smaller
/** @type {Record<string, (here: number, last: number) => number>} */
const MOVES = {
  ArrowRight: (here) => here + 1,
  ArrowLeft: (here) => here - 1,
  Home: () => 0,
  End: (_, last) => last,
};

/** @type {(facts: import("./types").TextFacts) => string} */
const ownStack = (facts) => facts.stack ?? "decoder";
/** @type {(facts: import("./types").TextFacts, stack: string) => string[]} */
const labelsOf = (facts, stack) => (stack === ownStack(facts) ? facts.labels : facts.source_labels);

/** @type {(facts: import("./types").TextFacts, token: import("./types").Query) => string} */
const describe = (facts, { stack, index }) => {
  const values = { place: index, token: labelsOf(facts, stack)[index] };
  if (stack !== ownStack(facts)) return say("Source token {place}: {token}, given", values);
  if (index < facts.n_prompt) return say("Token {place}: {token}, given", values);
  const probability = numeral(facts.probabilities[index - facts.n_prompt].toFixed(3));
  return say("Token {place}: {token}, generated, probability {probability}", {
    ...values,
    probability,
  });
};

// The weights of a token in the shown picture, {token, reading}; null for none.
/** @type {(of: import("./types").Query & import("./text.js").WeightsSource) => Promise<import("./text.js").Reading | null>} */
const reading = async ({ stack, index, name, data, whose, stacks: { keys } }) => {
  const numbers = await askOnce(name, data, headNumbers);
  const row = index - tracedFrom(stack);
  if (row >= numbers.labels.query.length) return null;
  return { stack: keys, whose, weights: weightsOfRow(numbers, row), first: tracedFrom(keys) };
};
/** @type {(part: import("./part.js").Part, token: import("./types").Query | null) => import("./types").Read | null} */
const useReading = (part, token) => {
  const run = page.run?.run;
  const source = token && sourceOf(token);
  const wanted = source && { stack: token.stack, index: token.index, run, ...source };
  const { answer, asked } = useAnswer(part, reading, wanted);
  const shown = token && asked?.run === run ? answer : null;
  return useMemo(() => shown && asked && { token: asked, reading: shown }, [shown]);
};

// The network's guesses for the gaps of a text, {place: label}; places: joined by commas.
/** @type {(of: { run: string, places: string }) => Promise<Record<string, string>>} */
const guessed = async ({ run, places }) => {
  const all = places.split(",").map((place) => ask("masked", { run, position: Number(place) }));
  const answers = await Promise.all(all);
  return Object.fromEntries(answers.map(({ position, labels }) => [position, labels?.[0]]));
};

const PLACEHOLDER = "oooo"; // of what follows the stored example, hidden until it is known; as in server/page/pages.py
const MAX_GHOST_SIGNS = 12; // signs that fit on a line with a token
const END_EVENTS = /** @type {const} */ (["escape", "run", "query"]); // events that end a question about two tokens
const PADDING_PX = 3; // as in server/static/tokens.css

// Places of tokens, word by word.
/** @type {(labels: string[], special: number[]) => number[][]} */
const wordsOf = (labels, special) => {
  const words = /** @type {number[][]} */ ([]);
  labels.forEach((label, place) => {
    const isFirst = place === 0 || WORD.test(label) || special.includes(place - 1);
    if (isFirst || special.includes(place)) words.push([]);
    words[words.length - 1].push(place);
  });
  return words;
};

/** @type {(token: import("./types").Query | null) => void} */
const point = (token) => {
  if (!sameToken(token, page.pointed)) page.pointed = token;
};

// The tokens of a stack. read: see useReading; lit: the tokens of the cell that is pointed at,
// {query, key}; written: the last place that is shown; ghost: what would follow; guesses: see guessed.
/** @param {import("./types").TokensProps} props */
const Tokens = ({
  facts,
  stack,
  class: name,
  title,
  read,
  lit,
  written,
  ghost = "",
  guesses = {},
  isStory = false,
  mattering = null,
}) => {
  const pairs = page.asksKey;
  /** @type {{ current: HTMLElement }} */
  const box = useRef(null);
  const buttons = useRef(/** @type {(HTMLElement | null)[]} */ ([]));
  const labels = labelsOf(facts, stack);
  const whole = useMemo(() => (isStory ? wholeCharacters(labels) : labels), [labels, isStory]);
  const special = stack === ownStack(facts) ? facts.special : facts.source_special;
  const ready = facts.state === "done";
  const chosen = page.query?.stack === stack ? page.query.index : -1;
  // Without a choice the default token is marked; for a masked word, the word itself.
  const isLast = ready && !page.query && stack === "decoder" && page.run?.run === facts.run;
  const usual = isLast ? readPosition() : -1;

  // A long text scrolls in its own box, and the page stays where it is.
  useLayoutEffect(() => {
    const laidOut = new ResizeObserver(() => {
      const [button, { scrollTop, clientHeight }] = [buttons.current[chosen], box.current];
      const { offsetTop: top = NaN, offsetHeight: height = 0 } = button ?? {};
      if (!button || (top >= scrollTop && top + height <= scrollTop + clientHeight)) return;
      const highest = top - clientHeight / 2;
      const first = buttons.current.find((each) => each && each.offsetTop >= highest) ?? button;
      box.current.scrollTop = first.offsetTop - PADDING_PX; // no line is cut
    });
    if (chosen >= 0) laidOut.observe(box.current); // also where another tab makes it smaller
    return () => laidOut.disconnect();
  }, [chosen, page.query]);

  const placeOf = (/** @type {Event} */ { target }) => {
    /** @type {HTMLElement | null} */
    const button = /** @type {Element} */ (target).closest("button.token");
    return ready && button ? { stack, index: Number(button.dataset.index) } : null;
  };
  const words = mattering?.stack === stack ? mattering : null;
  const effectAt = (/** @type {number} */ index) => words?.shares[index] ?? NaN;
  const choose = (/** @type {import("./types").Query} */ place) => {
    followStack(place.stack);
    setQuery(place);
  };
  const click = (/** @type {MouseEvent} */ event) => {
    const place = placeOf(event);
    if (place && pairs && page.query) return setKey(place);
    if (place && !Number.isNaN(effectAt(place.index))) return words?.choose(place.index);
    // A second click deselects; the second half of a double click and a key do not.
    if (place && sameToken(page.query, place) && event.detail === 1) setQuery(null);
    else if (place) choose(place);
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    const place = placeOf(event);
    const last = labels.length - 1;
    const to = place ? (MOVES[event.key]?.(place.index, last) ?? -1) : -1;
    if (!(to >= 0 && to <= last)) return;
    event.preventDefault();
    buttons.current[to]?.focus();
    if (!pairs || !page.query) choose({ stack, index: to });
  };

  /** @param {string} label @param {number} index */
  const token = (label, index) => {
    const here = { stack, index };
    const generated = stack === ownStack(facts) && index >= facts.n_prompt;
    /** @type {Record<string, boolean | undefined>} */
    const looks = {
      generated,
      special: special.includes(index),
      unwritten: index > written,
      gap: stack === ownStack(facts) && facts.hidden?.includes(index),
      guessed: guesses[index] !== undefined,
      "last-read": index === usual,
      asks: sameToken(read?.token, here),
      "is-query": sameToken(lit?.query, here),
      "is-key": sameToken(page.key ?? lit?.key, here),
      helps: effectAt(index) > 0,
      hinders: effectAt(index) < 0,
      left: words?.left.includes(index),
    };
    const look = Object.keys(looks).filter((one) => looks[one]);
    const weight = read?.reading.stack === stack ? weightAt(read.reading, index) : 0;
    const shade = {
      "--p": generated ? facts.probabilities[index - facts.n_prompt].toFixed(3) : "0",
      "--read": read ? Math.pow(weight, 1 / SHADE_ROOT).toFixed(3) : null,
      "--effect": effectAt(index) ? Math.abs(effectAt(index)).toFixed(3) : null,
    };
    const button = html`<button type="button" class=${["token", ...look].join(" ")} style=${shade}
      ref=${(/** @type {HTMLElement | null} */ element) => void (buttons.current[index] = element)} key=${index} data-index=${index}
      data-votes=${page.votes.stack === stack ? page.votes.tokens[index] : undefined}
      tabindex=${index === Math.max(0, chosen) ? 0 : -1} aria-pressed=${index === chosen}
      title=${looks.special && !looks.gap ? label : undefined}
      aria-label=${describe(facts, here)}><${Token} label=${guesses[index] ?? whole[index]} /></button>`;
    // One child per token, including its line break: one for several newlines.
    return label.includes("⏎") && !labels[index + 1]?.includes("⏎")
      ? html`<span class="slot" key=${index}>${button}<span class="break" /></span>`
      : button;
  };
  const groups = wordsOf(labels, special);
  const [begun, ...more] = ghost.split(/(?= )/u);
  const last = groups.length - 1;
  const begins =
    begun &&
    html`<bdi class=${begun === PLACEHOLDER ? "ghost awaited" : "ghost"} translate=${false} aria-hidden="true">${begun}</bdi>`;
  const isShort = begun.length <= MAX_GHOST_SIGNS;
  // What follows stays on the line of the token that it goes on with.
  const piece = (/** @type {number} */ place) =>
    place === labels.length - 1 && begins && isShort
      ? html`<span class="goes-on" key=${place}>${token(labels[place], place)}${begins}</span>`
      : token(labels[place], place);
  /** @param {number[]} places @param {number} at */
  const word = (places, at) =>
    html`${at > 0 && " "}<span class="word" key=${places[0]}>${places.map(piece)}${at === last && !isShort && begins}</span>`;
  return html`<div class=${`tokens ${name} ${labels.length > MANY_TOKENS ? "many" : ""}`} role="group" aria-label=${title} ref=${box}
    data-stack=${stack} onClick=${click} onKeyDown=${press} onPointerLeave=${() => point(null)}
    onPointerOver=${(/** @type {PointerEvent} */ event) => hasMoved(event) && placeOf(event) && point(placeOf(event))}>${groups.map(word)}${
      more.length > 0 &&
      html`<bdi class="ghost" translate=${false} aria-hidden="true">${more.join("")}</bdi>`
    }</div>`;
};

// Asks for a second token: which heads read it at the chosen one?
export const WhoReads = () => {
  const isAsked = page.asksKey;
  const toggle = () => {
    page.asksKey = Boolean(page.key) || !isAsked;
    page.key = null;
  };
  return html`<button type="button" class="who-reads" aria-pressed=${String(isAsked)} onClick=${toggle}>${
    isAsked ? say("Now choose a second token") : say("Who reads what?")
  }</button>`;
};

// facts: of the run, or of its beginning while it is written; see Run in store.js. Arcs: draws them where it is a
// text to read.
/** @param {{ facts: import("./types").TextFacts, Arcs?: typeof import("./arcs.js").Arcs | null }} props */
export const Text = ({ facts, Arcs = null }) => {
  const isStory = Arcs !== null;
  const part = usePart();
  const { pointed, lit } = page;
  const [written, setWritten] = useState(Infinity);
  for (const name of END_EVENTS) useEvent(name, () => (page.asksKey = false));
  const ready = facts.state === "done" && page.run?.run === facts.run;
  const usual = ready && isStory ? { stack: ownStack(facts), index: readPosition() } : null;
  const mattering = isStory && effects.value?.run === facts.run ? effects.value : null;
  const read = useReading(part, ready && !mattering ? (pointed ?? page.query ?? usual) : null);
  const ends = usual?.stack === "decoder" && usual.index === facts.labels.length - 1;
  const next = useAnswer(part, "continuation", ends && { run: facts.run, position: usual.index });
  const isKnown = ends && next.asked?.run === facts.run;
  const room = ends && facts.example ? PLACEHOLDER : ""; // so that the line breaks stay where they are
  const ghost = isKnown ? inText(next.answer?.labels ?? []) : room;
  const gaps = isStory && ready && facts.hidden?.join();
  const filling = useAnswer(part, guessed, gaps && { run: page.run.run, places: gaps });
  const guesses = gaps && filling.asked?.run === facts.run ? filling.answer : undefined;
  const translates = facts.source_labels.length > 0;
  const chosen = page.query && labelsOf(facts, page.query.stack)[page.query.index] !== undefined;
  const isForgotten = ready && !pointed && page.query && chosenRow(page.query.stack) === null;
  const shown = { facts, read, lit, isStory, mattering };
  return html`<div class=${`whole-text ${read ? "reading" : ""}`} data-state=${facts.state}
    data-run=${facts.run ?? ""} ...${part.attributes({ reads: read && `${read.token.stack}.${read.token.index}` })}>
    <div class="source" hidden=${!translates}>
      <h2>${say("Source, read by the encoder")}</h2>
      ${
        translates &&
        html`<${Tokens} ...${shown} stack="encoder" class="source-tokens" written=${Infinity}
          title=${say("Tokens of the source; arrow keys move")} />`
      }
    </div>
    <div class="tokens-head">
      <h2 class="text-title">${
        facts.task
          ? say("{task}, token by token", { task: say(facts.task) })
          : translates
            ? say("Translation, token by token")
            : say("Text, token by token")
      }</h2>
      <${Player} show=${setWritten} />
    </div>
    <${Tokens} ...${shown} stack=${ownStack(facts)} class="text-tokens" written=${written} ...${{ ghost, guesses }}
      title=${say("Tokens of the text; arrow keys move")} />
    ${isStory && read && html`<${Arcs} root=${part.element} ...${{ read, facts, written }} />`}
    <div class="token-room">
    <p class="token-says" role="status" hidden=${!read && !isForgotten}>
      ${isForgotten && forgotten(page.run.last_read)}
      ${read && html`<${ReadingInWords} ...${read} />`}${" "}
      ${chosen && !isStory && html`<${WhoReads} />`}
    </p>
    </div>
  </div>`;
};
