// For tests: what the page's modules export, and its state, under one name, `viz`. Playwright runs
// this in every page; in this project's it imports the page's script again, which gives the same one.
const isMounted = new Promise((done) => document.addEventListener("mounted", done, { once: true }));
document.addEventListener("DOMContentLoaded", async () => {
  // A page without a server unpacks its scripts first, and reads its language, which they say things in.
  if ("spokenHere" in globalThis) await isMounted;
  if (!document.querySelector("script[type=importmap]")?.textContent.includes('"page"')) return;
  const name = "page"; // of the page's import map
  const { modules } = await import(name);
  const { page } = modules["web/store.js"];
  const holder = (/** @type {string | symbol} */ name) =>
    Object.values(modules).find((one) => name in one) ?? {};
  /** @type {any} */ (window).viz = new Proxy(page, {
    get: (_, name) => (name in page ? page[name] : holder(name)[name]),
  });
});

// What the mouse pressed last and where, for the report of a test that fails.
/** @type {string[]} */
const presses = [];
for (const kind of ["pointerdown", "click"])
  addEventListener(
    kind,
    (event) => {
      const { target, clientX, clientY } = /** @type {MouseEvent} */ (event);
      const { localName, classList, id } = /** @type {Element} */ (target);
      const at = `${Math.round(clientX)}, ${Math.round(clientY)}`;
      presses.push(`${kind} (${at}) ${localName}#${id}.${[...classList].join(".")}`);
      presses.splice(0, presses.length - 8);
    },
    true,
  );
/** @type {any} */ (window).stateForReport = () => {
  const { viz, scrollX, scrollY } = /** @type {any} */ (window);
  const alert = document.querySelector("#status .problem:not([hidden])")?.textContent;
  const chosen = { query: viz?.query, run: viz?.run?.run, opening: viz?.isOpening?.() };
  const seen = [document.visibilityState, document.hasFocus(), location.hash, alert];
  return JSON.stringify({ presses, scroll: [scrollX, scrollY], chosen, seen }, null, 1);
};

// Gradio's clock of the page's loading asks for 60 frames a second as long as the page is open, also where its
// element is gone, which takes a twelfth of a core for each page. A test that waits does without.
const CLOCK = /\(performance\.now\(\)\s*-\s*[^;]{1,20}\)\s*\/\s*1e3\)/;
const nativeFrame = window.requestAnimationFrame;
window.requestAnimationFrame = (callback) =>
  CLOCK.test(String(callback)) ? 0 : nativeFrame(callback);
