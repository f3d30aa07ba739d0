// A card of the tour or of a lesson: its words, what it asks, its hints and the verdict.

import { pause } from "./ask.js";
import { useDocument } from "./part.js";
import { fields } from "./fields.js";
import { numberOf, say, sayWith } from "./messages.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "./preact.js";
import { siteName } from "./sites.js";
import { page, nextPaint, reactive } from "./store.js";
import { Marked } from "./text.js";

/** @import { CardProps, Opening, Question } from "./types" */
/**
 * @typedef {import("./types").CardOf} CardOf
 * @typedef {import("./types").Deck} Deck
 * @typedef {import("./types").Answered} Answered
 * @typedef {import("./types").Answering} Answering
 * @typedef {Answered & Answering} CardState
 * @typedef {Record<string, Answered>} ByCard
 */

// place: of the shown card in its deck, null for none; isChoosing: whether the lessons are listed. lessonPress: the
// latest press on a lesson, which may still be on its way; linked: how many cards of links are; endedBy: what was
// being opened as a card was put away.
export const cardState = reactive({
  deck: /** @type {Deck} */ ({ name: "", title: "", cards: [] }),
  place: /** @type {number | null} */ (null),
  isChoosing: false,
  lessonPress: {},
  linked: 0,
  endedBy: /** @type {Opening | null} */ (null),
});

/** @type {Answered} */
const NOTHING = {
  guess: null,
  text: "",
  option: null,
  hints: 0,
  right: null,
  says: "",
  solved: false,
};
export const OF_CLASS = -1; // in place of a guess: those of a class's phones
/** @type {Record<string, number>} */
const LEAFING = { ArrowRight: 1, ArrowLeft: -1 };

// The guess at a card, the answer to it and the verdict, by the card's name. tell(right, says): set the
// verdict, right null for none; give({number} or {option}): fill in the form.
/** @type {(name: string) => CardState} */
export const useAnswers = (name) => {
  const [all, setAll] = useState(/** @type {ByCard} */ ({}));
  const of = (/** @type {ByCard} */ answers) => answers[name] ?? NOTHING;
  /** @type {Answering["set"]} */
  const set = (change) =>
    setAll((answers) => ({ ...answers, [name]: { ...of(answers), ...change } }));
  /** @type {Answering["tell"]} */
  const tell = (right, says) =>
    setAll((answers) => {
      const solved = of(answers).solved || right === true;
      return { ...answers, [name]: { ...of(answers), right, says, solved } };
    });
  /** @type {Answering["give"]} */
  const give = ({ number, option }) =>
    set(option === undefined ? { text: String(number ?? "") } : { option });
  return { ...of(all), set, tell, give };
};
// Whether a card's picture is still closed, and whether its explanation is open.
/** @type {(words: CardOf, state: CardState) => boolean} */
export const isGuessing = ({ guess }, state) => Boolean(guess) && state.guess === null;
/** @type {(words: CardOf, state: CardState) => boolean} */
export const isExplained = (words, state) =>
  !isGuessing(words, state) && (!words.task || state.solved);

// The places of a card's guesses or options as they are shown, in an order of this visit that does not
// change.
/** @type {Map<string, number[]>} */
const orders = new Map();
/** @type {(card: string, words: CardOf, of: "guesses" | "options") => number[]} */
export const inOrder = (card, words, of) => {
  const places = [...(words[of] ?? []).keys()];
  if (words.ordered?.[of]) return places;
  const name = `${card}.${of}`;
  if (!orders.has(name)) {
    const drawn = places.map((at) => ({ at, by: Math.random() }));
    drawn.sort((a, b) => a.by - b.by);
    orders.set(
      name,
      drawn.map(({ at }) => at),
    );
  }
  return /** @type {number[]} */ (orders.get(name));
};

// What answers a card is read off the page, {field: value}, by kind of question; null: nothing is chosen yet.
/** @type {Record<string, () => Question | null>} */
const ANSWERS = {
  head: () => page.head && { site: siteName(page.head), head: page.head.head },
  token: () => {
    const { stack, index } = page.query ?? {};
    return page.query && { stack: stack === page.run.stack ? "own" : stack, token: index };
  },
  cell: () => {
    const cell = fields.cell;
    return cell.includes(",") ? { site: siteName(page.head), cell } : null;
  },
  run: () => ({}),
};

const POLL_MS = 50; // until the page is ready
// Grade what the visitor does in the pictures as an answer to this card, once the page is as the card sets
// it. kind: of the question, "" for none yet.
/** @type {(name: string, kind: string, grade: (answer: Question) => void, isReady: () => boolean) => void} */
export const useFollowed = (name, kind, grade, isReady) => {
  const read = ANSWERS[kind];
  const latest = useRef(name);
  latest.current = name;
  const card = useMemo(
    () => ({ previous: /** @type {string | null} */ (null), waits: false }),
    [name],
  );
  const follow = async () => {
    if (!read || card.waits) return;
    const isShown = () => latest.current === name;
    card.waits = true;
    await nextPaint();
    while (isShown() && !isReady()) await pause(POLL_MS);
    card.waits = false;
    if (!isShown()) return;
    const answer = read();
    const now = JSON.stringify([answer, page.run.run]);
    const isNew = card.previous !== null && answer !== null && now !== card.previous;
    card.previous = now;
    if (isNew) grade(answer);
  };
  useLayoutEffect(() => void follow(), [name, Boolean(read)]);
  useDocument(kind in ANSWERS ? ["pointerup", "keyup", "change"] : [], follow, true);
  useLayoutEffect(() => void follow(), kind ? [page.run, page.head, page.query] : []);
};

/** @typedef {(said: { number?: number, option?: number }) => void} Say */
/** @param {{ state: CardState, answer: Say }} props */
const NumberForm = ({ state, answer }) => {
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    const number = numberOf(state.text);
    if (Number.isNaN(number)) state.tell(null, say("Give a number, such as 0.25."));
    else answer({ number });
  };
  return html`<form class="card-form" novalidate onSubmit=${send}>
    <label>${say("Your answer:")}${" "}<input type="text" name="answer" inputmode="decimal"
      value=${state.text} onInput=${(/** @type {import("./types").ChangeOf} */ { target }) => state.set({ text: target.value })} /></label>
    <button type="submit">${say("Check")}</button>
  </form>`;
};
/** @param {{ options: string[], order: number[], chosen: number | null, choose: (at: number) => void }} props */
const ChoiceForm = ({ options, order, chosen, choose }) => {
  const one = (
    /** @type {number} */ at,
  ) => html`<label key=${at}><input type="radio" name="answer" value=${at}
    checked=${chosen === at} onChange=${() => choose(at)} />${" "}<bdi><${Marked} text=${options[at]} /></bdi></label>`;
  return html`<form class="card-form" novalidate>${order.map(one)}</form>`;
};

// The guess of the visitor, marked once the step is answered; a class has its own.
/** @param {{ words: CardOf, state: CardState }} props */
const Guessed = ({ words, state }) => {
  const { guesses = [], guessed = -1 } = words;
  const isMarked = guessed >= 0 && isExplained(words, state);
  const right = html`<${Marked} text=${guesses[guessed] ?? ""} />`;
  if (state.guess === OF_CLASS) return null;
  return html`<p class="card-guessed">${say("Your guess:")} <${Marked} text=${guesses[state.guess ?? 0]} />${
    isMarked &&
    (state.guess === guessed ? " ✓" : html` · ${sayWith("right: {guess}", { guess: right })}`)
  }</p>`;
};

/** @param {{ words: CardOf, name: string, state: CardState }} props */
const Guess = ({ words, name, state }) => {
  const { guess, guesses } = words;
  const choose = (/** @type {number} */ at) => state.set({ guess: at });
  if (!isGuessing(words, state)) return html`<${Guessed} ...${{ words, state }} />`;
  return html`<div class="card-guess"><p class="card-task"><${Marked} text=${guess} /></p>
    <${ChoiceForm} options=${guesses} order=${inOrder(name, words, "guesses")} chosen=${null} choose=${choose} />
    <p class="hint">${say("Guess first: then the picture opens.")}</p></div>`;
};

/** @param {Pick<CardState, "right" | "says">} props */
const Verdict = ({
  right,
  says,
}) => html`<p class=${`card-verdict ${right ? "right" : ""}`} role="status"
  hidden=${!says}>${
    right !== null && html`<strong>${right ? say("Right.") : say("Not yet.")}</strong> `
  }${says}</p>`;

/** @param {{ words: CardOf, name: string, kind: string, state: CardState, answer: Say, solve: () => void, write?: () => void }} props */
const Check = ({ words, name, kind, state, answer, solve, write }) => {
  const { task, options = [], hints = [] } = words;
  const shown = state.hints;
  const isHint = shown < hints.length;
  const hint = () => state.set({ hints: shown + 1 });
  const order = inOrder(name, words, "options");
  const choose = (/** @type {number} */ option) => {
    state.give({ option });
    answer({ option });
  };
  return html`<div class="card-check" hidden=${!task || isGuessing(words, state)}>
    <p class="card-task"><${Marked} text=${task ?? ""} /></p>
    ${kind === "number" && html`<${NumberForm} ...${{ state, answer }} />`}
    ${kind === "choose" && html`<${ChoiceForm} ...${{ options, order, choose }} chosen=${state.option} />`}
    <${Verdict} ...${state} />
    <ol class="card-hints" aria-live="polite">${hints
      .slice(0, shown)
      .map((/** @type {string} */ text) => html`<li><${Marked} text=${text} /></li>`)}</ol>
    <button type="button" class=${isHint ? "card-hint" : "card-solve"} hidden=${!kind} onClick=${isHint ? hint : solve}>${
      isHint
        ? say("Hint {n} of {count}", { n: shown + 1, count: hints.length + 1 })
        : say("Show me the answer")
    }</button>
    ${write && html`<button type="button" class="card-write" onClick=${write}>${say("Type your own text")}</button>`}
  </div>`;
};

/**
 * words: see CardOf; deck: the lesson's name, "" for the tour; over: the line above the words; place, count:
 * of the card among its deck's. kind: of what it asks, "" for nothing; state: see useAnswers; answer({number}
 * or {option}): what the visitor says; solve(): the visitor wants to see it; write(), where the text is to be
 * replaced next to an open section: go to its box. leaf(by); end() puts it away;
 * onward, {words, go}, where something follows the last card. focus: whether the title takes the focus as it
 * first comes. teach(), where it is a lesson's: the phones of a class are to answer; teacher: a ref to its
 * button.
 * @param {CardProps} props
 */
export const Card = ({
  words,
  deck,
  over,
  place,
  count,
  leaf,
  end,
  onward,
  focus,
  teach,
  teacher,
  ...check
}) => {
  const name = `${deck}.${place}`;
  /** @type {{ current: HTMLElement }[]} */
  const [root, title] = [useRef(null), useRef(null)];
  const isDrawn = useRef(false);
  useLayoutEffect(() => {
    const { activeElement: active, body } = document;
    const inCard = root.current.contains(active);
    const lost = active === body || (inCard && active?.matches("[hidden]"));
    if (isDrawn.current ? lost : focus) title.current.focus({ preventScroll: true });
    isDrawn.current = true;
  }, [deck, place, isGuessing(words, check.state)]);
  const press = (/** @type {import("./types").KeyIn} */ event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input")) return;
    if (event.key in LEAFING) leaf(LEAFING[event.key]);
    else if (event.key === "Escape") end();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const next = place === count - 1 ? onward : { words: say("Next ›"), go: () => leaf(1) };
  const paragraph = (/** @type {string} */ text) => html`<p><${Marked} text=${text} /></p>`;
  return html`<section class=${`card ${check.state.solved ? "solved" : ""}`} aria-label=${say("Guide")}
    data-place=${place} data-deck=${deck} onKeyDown=${press} ref=${root}>
    <p class="card-count"><span class="card-over">${over}</span>${say("{place} of {count}", { place: place + 1, count })}</p>
    <div aria-live="polite">
      <h2 class="card-title" tabindex="-1" ref=${title}><${Marked} text=${words.title} /></h2>
      <div class="card-says">${words.says.map(paragraph)}</div>
      <p class="card-look" hidden=${!words.look}><strong>${say("Look at:")}</strong> <${Marked} text=${words.look ?? ""} /></p>
    </div>
    ${words.guess && html`<${Guess} ...${{ words, name }} state=${check.state} />`}
    <${Check} ...${{ words, name }} ...${check} />
    <div class="card-explains" aria-live="polite">${
      isExplained(words, check.state) && (words.explains ?? []).map(paragraph)
    }</div>
    <div class="card-buttons">
      <button type="button" class="card-back" disabled=${place === 0} onClick=${() => leaf(-1)}>${say("‹ Back")}</button>
      <button type="button" class="card-next" hidden=${!next} onClick=${next?.go}>${next?.words}</button>
      ${teach && html`<button type="button" class="card-class" ref=${teacher} onClick=${teach}>${say("Let the class answer")}</button>`}
      <button type="button" class="card-end" onClick=${end}>${say("End")}</button>
    </div>
  </section>`;
};
