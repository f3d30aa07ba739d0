// The language that this visitor has chosen, which is kept in this browser alone (header.js): if
// the browser's own led to another one, the page is asked for anew.

(() => {
  "use strict";
  const { lang } = document.documentElement;
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
