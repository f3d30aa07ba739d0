// A symbol, the code that computes it and its numbers light up together. Whatever has `data-part`
// within `root` is one of them; of pieces that are of several parts, `data-parts` names them all.

/** @typedef {{clear: () => void, refresh: () => void}} Lit */

const PART = "[data-part]";

// tell(part): what is lit now, null for nothing. columns: each is one stop of the tab key, within
// which arrow keys go on.
/** @type {(root: HTMLElement, columns: HTMLElement[], tell: (part: string | null) => void) => Lit} */
export const mountLit = (root, columns, tell) => {
  /** @type {{chosen: string | null, over: string | null}} */
  const state = { chosen: null, over: null };
  /** @type {(target: EventTarget | null) => any} */
  const partOf = (target) => (target instanceof Element ? target.closest(PART) : null);
  /** @type {(column: HTMLElement) => any[]} */
  const stops = (column) => [...column.querySelectorAll("[tabindex]")];

  const show = () => {
    const part = state.over ?? state.chosen;
    for (const one of /** @type {any} */ (root.querySelectorAll(PART))) {
      const parts = (one.dataset.parts ?? one.dataset.part).split(" ");
      one.classList.toggle("is-lit", part !== null && parts.includes(part));
    }
    root.dataset.lit = part ?? "";
    tell(part);
  };
  /** @type {(change: Partial<typeof state>) => void} */
  const set = (change) => {
    const before = state.over ?? state.chosen;
    Object.assign(state, change);
    if ((state.over ?? state.chosen) !== before) show();
  };

  root.addEventListener("pointerover", (event) => {
    if (event.pointerType === "mouse") set({ over: partOf(event.target)?.dataset.part ?? null });
  });
  root.addEventListener("pointerleave", () => set({ over: null }));
  root.addEventListener("focusin", ({ target }) => {
    const found = partOf(target);
    if (found) set({ chosen: found.dataset.part });
  });
  root.addEventListener("click", ({ target }) => {
    const found = partOf(target);
    if (found) set({ chosen: found.dataset.part });
  });
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") set({ chosen: null, over: null });
  });

  const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  for (const column of columns) {
    column.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      const all = stops(column);
      const next = all[all.indexOf(document.activeElement) + step];
      if (!step || !next) return;
      event.preventDefault();
      for (const one of all) one.setAttribute("tabindex", one === next ? "0" : "-1");
      next.focus();
    });
  }
  return {
    clear: () => set({ chosen: null, over: null }),
    refresh: () => {
      for (const column of columns) {
        stops(column).forEach((one, at) => one.setAttribute("tabindex", at ? "-1" : "0"));
      }
      const kept = state.over ?? state.chosen;
      if (kept && !root.querySelector(`[data-part="${kept}"]`)) {
        Object.assign(state, { chosen: null, over: null });
      }
      show();
    },
  };
};
