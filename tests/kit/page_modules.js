// For tests: what the page's modules export, and its state, under one name, `viz`. Playwright runs
// this in every page; in this project's it imports the page's script again, which gives the same one.
document.addEventListener("DOMContentLoaded", async () => {
  if (!document.querySelector("script[type=importmap]")) return;
  // A page without a server reads its language first, which its script says things in.
  if ("spokenHere" in globalThis)
    await new Promise((done) => document.addEventListener("mounted", done, { once: true }));
  const name = "page"; // of the page's import map
  const { modules } = await import(name);
  const { page } = modules["web/store.js"];
  const holder = (/** @type {string | symbol} */ name) =>
    Object.values(modules).find((one) => name in one) ?? {};
  /** @type {any} */ (window).viz = new Proxy(page, {
    get: (_, name) => (name in page ? page[name] : holder(name)[name]),
  });
});
