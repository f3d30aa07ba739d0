// The shown card of the tour or of a lesson, in place of the controls above the text. Arrow keys leaf,
// Esc ends.

import { ask } from "./ask.js";
import { checkOfCard } from "./card_check.js";
import { el, finder } from "./dom.js";
import { mountLessons } from "./lesson_list.js";
import { marked } from "./marked_text.js";
import { say } from "./messages.js";
import { on } from "../../web/store.js";
import {
  cardCount,
  cardPlace,
  cardShown,
  deckShown,
  endTour,
  goToCard,
  setLessons,
} from "./touring.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props, server }) {
  const find = finder(element);
  const root = find(".card");
  const [back, next, end] = [".card-back", ".card-next", ".card-end"].map(find);
  setLessons(async (name) => {
    const { steps, title } = await ask(server.lesson, { name });
    return { name, title, cards: steps };
  }, props.lessons ?? []);
  const drawCheck = checkOfCard(find, server);
  mountLessons(find(".lesson-list"), server);
  /** @type {any} */
  let from = null; // what had the focus before the tour

  const draw = () => {
    const card = cardShown();
    const began = card && root.hidden;
    root.hidden = !card;
    root.dataset.place = card ? String(cardPlace()) : "";
    root.dataset.deck = deckShown().name;
    drawCheck(card);
    if (!card) return leave();
    drawWords(card);
    if (began) enter();
    else if (document.activeElement === document.body) find(".card-title").focus();
    return undefined;
  };
  /** @type {(card: import("./touring.js").Card) => void} */
  const drawWords = (card) => {
    const place = cardPlace() ?? 0;
    const { name, title } = deckShown();
    const count = say("{place} of {count}", { place: place + 1, count: cardCount() });
    find(".card-count").textContent = name ? `${title} · ${count}` : count;
    find(".card-title").textContent = say(card.title);
    const says = [card.says].flat().map(() => el("p"));
    says.forEach((p, at) => p.append(...marked(say([card.says].flat()[at]))));
    find(".card-says").replaceChildren(...says);
    find(".card-look").hidden = !card.look;
    if (card.look)
      find(".card-look").replaceChildren(el("strong", "", say("Look at:")), " ", say(card.look));
    back.disabled = place === 0;
    next.hidden = place === cardCount() - 1;
  };
  // The focus comes from the button that began the tour, and goes back there.
  const enter = () => {
    if (!document.activeElement?.closest(".tour, .lesson-list")) return;
    from = document.querySelector(deckShown().name ? ".lessons-button" : ".tour-button");
    if (document.activeElement.closest(".tour")) from = document.activeElement;
    find(".card-title").focus({ preventScroll: true });
  };
  const leave = () => {
    from?.focus();
    from = null;
  };

  const leaf = (by) => {
    const to = (cardPlace() ?? 0) + by;
    if (to < 0 || to >= cardCount()) return;
    goToCard(to);
    if (document.activeElement === document.body || document.activeElement?.matches(":disabled"))
      find(".card-title").focus();
  };
  back.addEventListener("click", () => leaf(-1));
  next.addEventListener("click", () => leaf(1));
  end.addEventListener("click", endTour);
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input")) return;
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) leaf(by);
    else if (event.key === "Escape") endTour();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  on("card", draw);
  draw();
}
