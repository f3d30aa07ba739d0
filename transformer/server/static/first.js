// The language that this visitor has chosen, which is kept in this browser alone (header.js): if
// the browser's own led to another one, the page is asked for anew. Gradio's words follow the page's.

(() => {
  "use strict";
  const { lang } = document.documentElement;
  Object.defineProperty(navigator, "language", { get: () => lang });
  const asked = new URLSearchParams(location.search);
  try {
    const kept = localStorage.getItem("viz-language");
    if (!kept || kept === lang || asked.has("__lang")) return;
    asked.set("__lang", kept);
    location.replace(`?${asked}${location.hash}`);
  } catch {
    // a browser may keep a page inside another one from its storage: the address then says it
  }
})();

// A page at rest takes no time. The clock of Gradio 6.31's loading message ticks at every frame, sixty
// times a second, and never stops once the message is gone; no such clock is shown on this page.

(() => {
  "use strict";
  const frame = window.requestAnimationFrame.bind(window);
  const source = (tick) => Function.prototype.toString.call(tick);
  const isClock = (tick) => /performance\.now\(\)-[^;]*\/1e3/.test(source(tick));
  window.requestAnimationFrame = (tick) => (isClock(tick) ? 0 : frame(tick));
})();
