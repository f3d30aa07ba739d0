// When a part of the page is drawn again.

import { nextPaint } from "./dom.js";
import { purgeFigures } from "./plots.js";
import { on, showProblem } from "../../web/store.js";

// Draw `root` again on each of `events`, on a change of theme or width, and only while it can be
// seen; in a tab that was left, its pictures go. draw(current) may stop early once current() is
// false. aria-busy while what stands there is not what it should be, until it is painted; then sets
// data-rev, and once data-first-ms, the time since the visitor asked for the page.
// Returns refresh(), which draws it again for any other reason.
export const redrawWhen = (root, events, draw) => {
  let stale = true;
  let seen = false;
  let ticket = 0;
  let width = 0;
  const go = async () => {
    if (!stale || !seen) return;
    stale = false;
    root.ariaBusy = "true";
    const mine = ++ticket;
    const current = () => mine === ticket;
    try {
      await draw(current);
      if (!current()) return;
      await nextPaint();
      root.dataset.rev = String(Number(root.dataset.rev ?? 0) + 1);
      root.dataset.firstMs ??= performance.now().toFixed(0);
    } catch (error) {
      if (current()) showProblem(error.message);
    } finally {
      if (current()) root.ariaBusy = null;
    }
  };
  const spoil = () => {
    stale = true;
    ticket += 1;
    root.ariaBusy = "true";
  };
  const refresh = () => {
    spoil();
    go();
  };
  const onSight = (entries) => {
    seen = entries[entries.length - 1].isIntersecting;
    if (!seen && root.getClientRects().length === 0 && root.querySelector(".js-plotly-plot")) {
      purgeFigures(root); // its tab was left
      spoil();
    }
    go();
  };
  new IntersectionObserver(onSight, { rootMargin: "600px" }).observe(root);
  new ResizeObserver(() => {
    if (root.clientWidth && Math.abs(root.clientWidth - width) > 4) {
      width = root.clientWidth;
      refresh();
    }
  }).observe(root);
  for (const name of [...events, "theme"]) on(name, refresh);
  return refresh;
};
