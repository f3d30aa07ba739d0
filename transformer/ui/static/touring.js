// The tour and the lessons: decks of cards, each with the state of the page that it asks for.

import { nextPaint } from "./dom.js";
import { ownFields, shownFields } from "./fields.js";
import { apply, isOpening } from "./link.js";
import { oneOf, wholeNumber } from "./link_text.js";
import { emit, showProblem } from "../../web/store.js";

/**
 * @typedef {object} Card
 * @property {string} title
 * @property {string | string[]} says
 * @property {string} [look] what to look at
 * @property {string} [sight] the part of the tab that is to be in sight
 * @property {string} [start] the words of a button that leads here
 * @property {string} [task] of a lesson: what there is to do
 * @property {string} [check] how that is answered: click (head, token, cell), number, choose, run
 * @property {boolean} [types] whether the text and the settings stay in sight
 * @property {string[]} [options]
 * @property {string[]} [hints]
 * @property {Record<string, string>} state fields of a link; none: the page stays as it is
 */
/** @typedef {{ name: string, title: string, cards: Card[] }} Deck the tour's name is "" */

const STAYS = ["more", "projector", "lesson"]; // of the page, whatever card is shown
const LONGEST_MS = 8000; // until a card's part is drawn

/** @type {Deck} */
const tour = { name: "", title: "", cards: [] };
/** @type {Deck} */
let deck = tour;
/** @type {number | null} */
let place = null;
let ended = false; // while the state of its last card is still on its way
let settled = false; // whether the page shows the card's state
/** @type {Map<string, Promise<Deck>>} */
const lessons = new Map();
/** @typedef {(name: string) => Promise<Deck>} Fetch */
/** @type {(fetch: Fetch) => void} */
let setFetch = () => {};
/** @type {Promise<Fetch>} */
const fetchLesson = new Promise((done) => (setFetch = done)); // once its part is on the page

export const cardCount = () => deck.cards.length;
/** @returns {Card | null} */
export const cardShown = () => (place === null ? null : deck.cards[place]);
export const cardPlace = () => place;
export const deckShown = () => deck;
export const isSettled = () => settled && !isOpening();

/** @type {(to: number | null, among?: Deck) => void} */
const show = (to, among = deck) => {
  [deck, place] = [among, to];
  const { types = false } = cardShown() ?? {};
  document.body.classList.toggle("touring", to !== null && !types);
  emit("card");
};

// A lesson by its name, fetched once.
/** @type {(name: string) => Promise<Deck>} */
const lessonOf = (name) => {
  if (!lessons.has(name))
    lessons.set(
      name,
      fetchLesson.then((fetch) => fetch(name)),
    );
  return /** @type {Promise<Deck>} */ (lessons.get(name));
};

// The card's part of the page's state. A link to a lesson's step shows it as soon as it is there.
/** @type {(tour: string, lesson: string) => void} */
const showFields = (number, lesson) => {
  const wasEnded = ended;
  ended = false;
  settled = true;
  if (wasEnded || (number === "" && lesson === "")) return show(null);
  if (number !== "") return show(wholeNumber("tour", number, 1, tour.cards.length) - 1, tour);
  const [name, step] = lesson.split(".");
  lessonOf(name)
    .then((found) => show(wholeNumber("lesson", step, 1, found.cards.length) - 1, found))
    .catch((error) => {
      lessons.delete(name);
      showProblem(error.message);
    });
  return undefined;
};

/** @type {(cards: Card[]) => void} */
export const setCards = (cards) => {
  tour.cards = cards;
  const named = () => String((place ?? 0) + 1);
  ownFields(
    { tour: "", lesson: "" },
    () => ({
      tour: place === null || deck.name ? "" : named(),
      lesson: place === null || !deck.name ? "" : `${deck.name}.${named()}`,
    }),
    (values) => showFields(values.tour, values.lesson),
  );
};

/** @type {(ask: Fetch, names: string[]) => void} */
export const setLessons = (ask, names) =>
  setFetch(async (name) => ask(oneOf("lesson", name, names)));

/** @type {(selector: string) => Promise<void>} */
const bringIntoSight = async (selector) => {
  const mine = place;
  const until = performance.now() + LONGEST_MS;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
  const drawn = () => {
    const part = document.querySelector(selector);
    return part?.getClientRects().length && part.querySelector(".js-plotly-plot, math")
      ? part
      : null;
  };
  while (!drawn() && place === mine && performance.now() < until) await nextPaint();
  if (place === mine) drawn()?.scrollIntoView({ block: "start", behavior });
};

// What of the page stays as it is where something else is shown: a lesson goes on.
/** @type {() => Record<string, string>} */
export const staying = () => {
  const shown = Object.entries(shownFields());
  return Object.fromEntries(shown.filter(([name]) => STAYS.includes(name)));
};

// Show a card: the page as it says.
/** @type {(to: number, among?: Deck) => Promise<void>} */
export const goToCard = async (to, among = deck) => {
  const { state, sight } = among.cards[to];
  /** @type {Record<string, string>} */
  const here = among.name ? { lesson: `${among.name}.${to + 1}` } : { tour: String(to + 1) };
  ended = false;
  settled = Object.keys(state).length === 0;
  show(to, among);
  window.scrollTo({ top: 0 });
  if (settled) return;
  const stays = staying();
  delete stays.lesson;
  await apply({ ...state, ...stays, ...here });
  if (sight) bringIntoSight(sight);
};
/** @type {(to: number) => Promise<void>} */
export const goToTour = (to) => goToCard(to, tour);
/** @type {(name: string, to?: number) => Promise<void>} */
export const goToLesson = async (name, to = 0) => goToCard(to, await lessonOf(name));
// Bring the page to what answers the shown card.
/** @type {(state: Record<string, string>) => Promise<void>} */
export const goToAnswer = (state) =>
  apply({
    ...cardShown()?.state,
    ...state,
    ...staying(),
    lesson: `${deck.name}.${(place ?? 0) + 1}`,
  });
export const endTour = () => {
  ended = isOpening();
  show(null);
};
