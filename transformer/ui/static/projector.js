// Projector mode: larger type, pictures first, settings away. A field of the page's state.

import { html, useLayoutEffect, useRef } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { say } from "./messages.js";

// Projected, the buttons stand in the line of the tabs, which leave them their room.
const followLine = (line) => {
  const measure = () => {
    const parts = [...line.children].map((part) => part.getBoundingClientRect());
    const left = Math.min(...parts.filter(({ width }) => width).map((part) => part.left));
    const room = line.getBoundingClientRect().right - left + 8;
    document.body.style.setProperty("--top-width", `${room}px`);
  };
  const sizes = new ResizeObserver(measure);
  for (const part of line.children) sizes.observe(part);
  return () => sizes.disconnect();
};

export const Projector = () => {
  const button = useRef(/** @type {any} */ (null));
  const { projector } = page;
  useLayoutEffect(
    () => (projector ? followLine(button.current.closest("#top")) : undefined),
    [projector],
  );
  return html`<button type="button" class="projector-button" aria-pressed=${projector} ref=${button}
    onClick=${() => (page.projector = !projector)}>${say("Projector")}</button>`;
};
