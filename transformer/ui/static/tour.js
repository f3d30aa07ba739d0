// What the page is for, in the bar under its name: one-click starts, and the tour.

import { el, finder } from "./dom.js";
import { say, sayN } from "./messages.js";
import { goToCard, setCards } from "./touring.js";

/** @param {import("./state.js").Mounted} mounted */
export function mount({ element, props }) {
  const find = finder(element);
  /** @type {import("./touring.js").Card[]} */
  const cards = props.value ?? [];
  const starts = cards.flatMap(({ start }, place) => {
    if (!start) return [];
    const button = el("button", "start", say(start));
    button.addEventListener("click", () => goToCard(place));
    return [button];
  });
  find(".starts").replaceChildren(...starts);
  find(".tour-button").textContent = sayN("Tour: {n} card", "Tour: {n} cards", cards.length);
  find(".tour-button").addEventListener("click", () => goToCard(0));
  find(".tour").hidden = cards.length === 0;
  setCards(cards);
}
