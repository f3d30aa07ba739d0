// What the page is for, in the bar under its name: one-click starts, and the tour.

import { el, finder } from "./dom.js";
import { say, sayN } from "./messages.js";
import { emit } from "../../web/store.js";
import { cardShown, endTour, goToTour, setCards } from "./touring.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props }) {
  const find = finder(element);
  /** @type {import("./touring.js").Card[]} */
  const cards = props.value ?? [];
  const nLessons = props.lessons ?? 0;
  const starts = cards.flatMap(({ start }, place) => {
    if (!start) return [];
    const button = el("button", "start", say(start));
    button.addEventListener("click", () => goToTour(place));
    return [button];
  });
  find(".starts").replaceChildren(...starts);
  find(".tour-button").textContent = sayN("Tour: {n} card", "Tour: {n} cards", cards.length);
  find(".tour-button").addEventListener("click", () => goToTour(0));
  const lessons = find(".lessons-button");
  lessons.textContent = sayN("{n} lesson", "{n} lessons", nLessons);
  lessons.hidden = nLessons === 0;
  lessons.addEventListener("click", () => {
    if (cardShown()) endTour();
    emit("lessons");
  });
  find(".tour").hidden = cards.length === 0 && nLessons === 0;
  find(".tour-button").hidden = cards.length === 0;
  setCards(cards);
}
