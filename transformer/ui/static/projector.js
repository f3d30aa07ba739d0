// Projector mode: larger type, pictures first, settings away. A field of the page's state.

import { finder } from "./dom.js";
import { ownFields } from "./fields.js";
import { oneOf } from "./link_text.js";
import { emit, on, page } from "../../web/store.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element }) {
  const button = finder(element)(".projector-button");
  const set = (large) => {
    if (large === page.projector) return;
    page.projector = large;
    document.body.classList.toggle("projector", large);
    button.setAttribute("aria-pressed", String(large));
    emit("projector");
    emit("theme", page.dark); // every picture is drawn anew, with larger type
  };
  button.addEventListener("click", () => set(!page.projector));
  // Projected, the buttons stand in the line of the tabs, which leave them their room.
  const line = button.closest("#top");
  const measure = () => {
    if (!page.projector) return;
    const parts = [...line.children].map((part) => part.getBoundingClientRect());
    const left = Math.min(...parts.filter(({ width }) => width).map((part) => part.left));
    const room = line.getBoundingClientRect().right - left + 8;
    document.body.style.setProperty("--top-width", `${room}px`);
  };
  for (const part of line.children) new ResizeObserver(measure).observe(part);
  on("projector", measure);
  ownFields(
    { projector: "" },
    () => ({ projector: page.projector ? "1" : "" }),
    ({ projector }) => set(oneOf("projector", projector, ["", "1"]) === "1"),
  );
}
