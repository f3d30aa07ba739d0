// The tour and the lessons: decks of cards, each with the state of the page that it asks for.

import { batch as together } from "../../web/preact.js";
import { ask } from "../../web/ask.js";
import { cardState } from "../../web/card.js";
import { say } from "../../web/messages.js";
import { forgetPressed } from "../../web/pointer.js";
import { page, showProblem } from "../../web/store.js";
import { bindField, STAYS, staying } from "../../web/fields.js";
import { apply } from "./link.js";
import { declared, oneOf, textsOf, wholeNumber } from "../../web/declared.js";

/** @import { CardOf, Deck, Declared, PlainValues } from "../../web/types" */
/** @typedef {Omit<CardOf, "state"> & { state: PlainValues }} SentCard a card whose state is no texts yet */

/** @type {(cards: SentCard[]) => CardOf[]} */
const withTexts = (cards) => cards.map((card) => ({ ...card, state: textsOf(card.state) }));
/** @type {(card: Declared["cards"][number]) => SentCard} */
const translated = ({ title, says, look = "", ...more }) => ({
  ...more,
  title: say(title),
  says: [say(says)],
  look: say(look),
});
/** @type {Deck} */
const tour = { name: "", title: "", cards: withTexts(declared.cards.map(translated)) };
cardState.deck = tour;
// The button that began it, to which the focus goes back.
export const opener = { current: /** @type {HTMLElement | null} */ (null) };
/** @type {Map<string, Promise<Deck>>} */
const lessons = new Map();

/** @returns {CardOf | null} */
export const cardShown = () =>
  cardState.place === null ? null : cardState.deck.cards[cardState.place];

/** @type {(to: number | null, among?: Deck) => void} */
const show = (to, among = cardState.deck) => {
  cardState.lessonPress = {};
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
    const { endedBy } = cardState;
    wanted[field] = endedBy && page.opening === endedBy ? "" : text;
    if (wanted[field]) {
      cardState.linked += 1;
      showLinked(field, text)
        .catch((error) => void showProblem(error.message))
        .finally(() => (cardState.linked -= 1));
    } else if (isOf(field)) show(null);
  });
};
keptAsCard("tour");
keptAsCard("lesson");

// Show a card: the page as it says. isHere: whether the address leads there already.
/** @type {(to: number, among?: Deck, isHere?: boolean) => void} */
export const goToCard = (to, among = cardState.deck, isHere = false) => {
  const { state } = among.cards[to];
  cardState.endedBy = null;
  show(to, among);
  if (among !== tour) forgetPressed(); // or the page would be scrolled to keep Next where it was pressed
  if (!state.more) window.scrollTo({ top: 0 }); // a section scrolls to itself
  const here = among === tour && { tour: String(to + 1) };
  if (Object.keys(state).length) apply({ ...state, ...staying(), ...here }, null, isHere);
};
/** @type {(to: number) => void} */
export const goToTour = (to) => goToCard(to, tour);
/** @type {(name: string, to?: number) => Promise<void>} */
export const goToLesson = async (name, to = 0) => {
  const { isChoosing } = cardState;
  const mine = (cardState.lessonPress = {});
  const deck = await lessonOf(name);
  if (cardState.lessonPress === mine && cardState.isChoosing === isChoosing) goToCard(to, deck);
};
// Bring the page to what answers the shown card.
/** @type {(state: PlainValues) => void} */
export const goToAnswer = (state) =>
  apply({ ...cardShown()?.state, ...textsOf(state), ...staying() });
export const endTour = () => {
  cardState.endedBy = page.opening;
  show(null);
};
