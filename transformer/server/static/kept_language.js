// The language that this visitor has chosen, which is kept in this browser alone (header.js): if
// the browser's preference led to another language, the page is loaded again.

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
    // a browser may deny an embedded page its storage: the address then says the language
  }
})();
