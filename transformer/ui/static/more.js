// Simple first: what a beginner does not need stands behind "More", on every tab, for the whole visit.

import { ownFields } from "./fields.js";
import { oneOf } from "./link_text.js";
import { say } from "./messages.js";

const isOpen = () => document.body.classList.contains("more");
const draw = () => {
  for (const button of document.querySelectorAll(".more-button")) {
    button.setAttribute("aria-expanded", String(isOpen()));
    button.textContent = isOpen() ? say("Less") : say("More");
  }
};
/** @type {(open: boolean) => void} */
const set = (open) => {
  document.body.classList.toggle("more", open);
  draw();
};

document.addEventListener("click", ({ target }) => {
  if (target instanceof Element && target.closest(".more-button")) set(!isOpen());
});
ownFields(
  { more: "" },
  () => ({ more: isOpen() ? "1" : "" }),
  ({ more }) => set(oneOf("more", more, ["", "1"]) === "1"),
);
