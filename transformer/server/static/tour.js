// The tour and the lessons: decks of cards, each with the state of the page that it asks for.

import { batch as together } from "../../web/preact.js";
import { ask } from "../../web/ask.js";
import { cardState } from "../../web/card.js";
import { say } from "../../web/messages.js";
import { page, showProblem } from "../../web/store.js";
import { bindField, STAYS, staying } from "../../web/fields.js";
import { apply } from "./link.js";
import { declared, oneOf, textsOf, wholeNumber } from "../../web/declared.js";

/** @typedef {import("../../web/card.js").Deck} Deck the tour's name is "" */
/** @typedef {import("../../web/card.js").CardOf} Card */

/** @type {(cards: any[]) => Card[]} */
const withTexts = (cards) => cards.map((card) => ({ ...card, state: textsOf(card.state) }));
/** @type {(card: any) => any} */
const translated = ({ title, says, look, ...more }) => ({
  ...more,
  title: say(title),
  says: [say(says)],
  look: say(look),
});
/** @type {Deck} */
const tour = { name: "", title: "", cards: withTexts(declared.cards.map(translated)) };
cardState.deck = tour;
// The button that began it, to which the focus goes back.
export const opener = { current: /** @type {any} */ (null) };
/** @type {any} */
let ended = null; // the opening that is still on its way to the state of a card that was put away
/** @type {Map<string, Promise<Deck>>} */
const lessons = new Map();

/** @returns {Card | null} */
export const cardShown = () =>
  cardState.place === null ? null : cardState.deck.cards[cardState.place];

let lessonChosen = {}; // the latest press on a lesson, which may still be on its way
/** @type {(to: number | null, among?: Deck) => void} */
const show = (to, among = cardState.deck) => {
  lessonChosen = {};
  together(() => {
    Object.assign(cardState, { deck: among, place: to });
    if (to !== null) cardState.isChoosing = false;
  });
  const { types = false, presses = false } = cardShown() ?? {};
  const looks = { touring: to !== null && !types, typing: types, pressing: presses };
  for (const [name, is] of Object.entries(looks)) document.body.classList.toggle(name, is);
};

/** @type {(name: string) => Promise<Deck>} */
const fetchLesson = async (name) => {
  oneOf("lesson", name, declared.lessons);
  const { steps, title } = await ask("lesson", { name });
  return { name, title, cards: withTexts(steps) };
};
// A lesson by its name, fetched once.
/** @type {(name: string) => Promise<Deck>} */
const lessonOf = (name) => {
  if (!lessons.has(name)) {
    const deck = fetchLesson(name);
    deck.catch(() => lessons.delete(name)); // the next press asks again
    lessons.set(name, deck);
  }
  return /** @type {Promise<Deck>} */ (lessons.get(name));
};

// A link that says nothing but the step of a lesson opens the step's state as well.
const isAlone = () =>
  [...new URLSearchParams(window.location.hash.slice(1)).keys()].every((name) =>
    STAYS.includes(name),
  );
// The card's part of the page's state. A link to a card shows it as soon as its deck is there.
const wanted = { tour: "", lesson: "" };
let linkedCards = 0; // that are on their way
export const isCardLinked = () => linkedCards > 0;
/** @type {(field: "tour" | "lesson", text: string) => Promise<void>} */
const showLinked = async (field, text) => {
  const [number, name = ""] = text.split(".").reverse();
  const opens = field === "lesson" && isAlone();
  const deck = field === "tour" ? tour : await lessonOf(name);
  const to = wholeNumber(field, number, 1, deck.cards.length) - 1;
  if (wanted[field] !== text) return;
  const isShown = cardState.deck === deck && cardState.place === to;
  if (opens && !isShown) goToCard(to, deck, true);
  else show(to, deck);
};
/** @type {(field: "tour" | "lesson") => boolean} */
const isOf = (field) =>
  cardState.place !== null && (cardState.deck.name === "") === (field === "tour");
/** @type {(field: "tour" | "lesson") => void} */
const keptAsCard = (field) => {
  const get = () => {
    const { deck, place } = cardState;
    const card = String((place ?? 0) + 1);
    return isOf(field) ? [deck.name, card].filter(Boolean).join(".") : "";
  };
  bindField(field, get, (text) => {
    wanted[field] = ended && page.opening === ended ? "" : text;
    if (wanted[field]) {
      linkedCards += 1;
      showLinked(field, text)
        .catch((error) => void showProblem(error.message))
        .finally(() => (linkedCards -= 1));
    } else if (isOf(field)) show(null);
  });
};
keptAsCard("tour");
keptAsCard("lesson");

// Show a card: the page as it says. isHere: whether the address leads there already.
/** @type {(to: number, among?: Deck, isHere?: boolean) => void} */
export const goToCard = (to, among = cardState.deck, isHere = false) => {
  const { state } = among.cards[to];
  ended = null;
  show(to, among);
  if (!state.more) window.scrollTo({ top: 0 }); // a section scrolls to itself
  const here = among === tour && { tour: String(to + 1) };
  if (Object.keys(state).length) apply({ ...state, ...staying(), ...here }, null, isHere);
};
/** @type {(to: number) => void} */
export const goToTour = (to) => goToCard(to, tour);
/** @type {(name: string, to?: number) => Promise<void>} */
export const goToLesson = async (name, to = 0) => {
  const { isChoosing } = cardState;
  const mine = (lessonChosen = {});
  const deck = await lessonOf(name);
  if (lessonChosen === mine && cardState.isChoosing === isChoosing) goToCard(to, deck);
};
// Bring the page to what answers the shown card.
/** @type {(state: Record<string, any>) => void} */
export const goToAnswer = (state) =>
  apply({ ...cardShown()?.state, ...textsOf(state), ...staying() });
export const endTour = () => {
  ended = page.opening;
  show(null);
};
