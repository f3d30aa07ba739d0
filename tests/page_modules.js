// For tests: what the page's modules export, and its state, under one name, `viz`. Playwright runs
// this in every page; in one of ours it imports the modules again, which gives the same ones.
document.addEventListener("DOMContentLoaded", async () => {
  /** @type {HTMLLinkElement[]} */
  const links = [];
  const found = document.querySelectorAll('link[rel=modulepreload][href^="modules/"]');
  for (const one of found) if (one instanceof HTMLLinkElement) links.push(one);
  if (!links.length) return;
  const modules = await Promise.all(links.map(({ href }) => import(href)));
  const { page } = modules.find((one) => "page" in one);
  const holder = (name) => modules.find((one) => name in one) ?? {};
  /** @type {any} */ (window).viz = new Proxy(page, {
    get: (_, name) => (name in page ? page[name] : holder(name)[name]),
  });
});
