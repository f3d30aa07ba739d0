// The tour: which card is shown, and the state of the page that it asks for.

import { nextPaint } from "./dom.js";
import { ownFields, shownFields } from "./fields.js";
import { apply, isOpening } from "./link.js";
import { wholeNumber } from "./link_text.js";
import { emit } from "./state.js";

/**
 * @typedef {object} Card
 * @property {string} title
 * @property {string} says
 * @property {string} look what to look at
 * @property {string} [sight] the part of the tab that is to be in sight
 * @property {string} [start] the words of a button that leads here
 * @property {Record<string, string>} state fields of a link
 */

const STAYS = ["more", "projector"]; // of the page, whatever card is shown
const LONGEST_MS = 8000; // until a card's part is drawn

/** @type {Card[]} */
let cards = [];
/** @type {number | null} */
let place = null;
let ended = false; // while the state of its last card is still on its way

export const cardCount = () => cards.length;
/** @returns {Card | null} */
export const cardShown = () => (place === null ? null : cards[place]);
export const cardPlace = () => place;

/** @type {(to: number | null) => void} */
const show = (to) => {
  place = to;
  document.body.classList.toggle("touring", to !== null);
  emit("card");
};

/** @type {(given: Card[]) => void} */
export const setCards = (given) => {
  cards = given;
  ownFields(
    { tour: "" },
    () => ({ tour: place === null ? "" : String(place + 1) }),
    ({ tour }) => {
      show(tour === "" || ended ? null : wholeNumber("tour", tour, 1, cards.length) - 1);
      ended = false;
    },
  );
};

/** @type {(selector: string) => Promise<void>} */
const bringIntoSight = async (selector) => {
  const mine = place;
  const until = performance.now() + LONGEST_MS;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
  const drawn = () => {
    const part = document.querySelector(selector);
    return part?.getClientRects().length && part.querySelector(".js-plotly-plot") ? part : null;
  };
  while (!drawn() && place === mine && performance.now() < until) await nextPaint();
  if (place === mine) drawn()?.scrollIntoView({ block: "start", behavior });
};

// Show a card: the page as it says.
/** @type {(to: number) => Promise<void>} */
export const goToCard = async (to) => {
  const { state, sight } = cards[to];
  ended = false;
  const stays = Object.entries(shownFields()).filter(([name]) => STAYS.includes(name));
  show(to);
  window.scrollTo({ top: 0 });
  await apply({ ...state, ...Object.fromEntries(stays), tour: String(to + 1) });
  if (sight) bringIntoSight(sight);
};
export const endTour = () => {
  ended = isOpening();
  show(null);
};
