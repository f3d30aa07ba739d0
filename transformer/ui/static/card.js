// The shown card of the tour, in place of the controls above the text. Arrow keys leaf, Esc ends.

import { el, finder } from "./dom.js";
import { say } from "./messages.js";
import { on } from "./state.js";
import { cardCount, cardPlace, cardShown, endTour, goToCard } from "./touring.js";

/** @param {import("./state.js").Mounted} mounted */
export function mount({ element }) {
  const find = finder(element);
  const root = find(".card");
  const [back, next, end] = [".card-back", ".card-next", ".card-end"].map(find);
  /** @type {any} */
  let from = null; // what had the focus before the tour

  const draw = () => {
    const card = cardShown();
    const began = card && root.hidden;
    root.hidden = !card;
    root.dataset.place = card ? String(cardPlace()) : "";
    if (!card) return leave();
    const place = cardPlace() ?? 0;
    find(".card-count").textContent = say("{place} of {count}", {
      place: place + 1,
      count: cardCount(),
    });
    find(".card-title").textContent = say(card.title);
    find(".card-says").textContent = say(card.says);
    find(".card-look").replaceChildren(el("strong", "", say("Look at:")), " ", say(card.look));
    back.disabled = place === 0;
    next.hidden = place === cardCount() - 1;
    if (began) enter();
    else if (document.activeElement === document.body) find(".card-title").focus();
    return undefined;
  };
  // The focus comes from the button that began the tour, and goes back there.
  const enter = () => {
    if (!document.activeElement?.closest(".tour")) return;
    from = document.activeElement;
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
    if (event.ctrlKey || event.altKey || event.metaKey) return;
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
