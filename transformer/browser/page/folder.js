// Opens the page from a folder of files on any web server.

import { fetched } from "./fetched.js";
import { unzipped } from "./packed.js";

/** @type {(name: string) => Promise<string>} */
const textOf = async (name) => new TextDecoder().decode(await unzipped(await fetched(name)));

// Keep the page and these files in the browser, so that the page opens again without a network. Browsers allow it on https
// and on this machine.
/** @type {(names: string[]) => Promise<void>} */
const keep = async (names) => {
  const { serviceWorker } = navigator;
  if (!serviceWorker) return;
  await serviceWorker.register("offline.js");
  await serviceWorker.ready;
  if (!serviceWorker.controller)
    await new Promise((done) =>
      serviceWorker.addEventListener("controllerchange", done, { once: true }),
    );
  for (const name of names) await (await fetch(name, { cache: "force-cache" })).arrayBuffer(); // the worker keeps it
};

const open = async () => {
  const page = /** @type {any} */ (globalThis);
  const files = [`words/${page.spokenHere}.json.gz`, "site.json.gz"];
  const [spoken, text] = await Promise.all(files.map(textOf));
  const address = (/** @type {string} */ name) => new URL(name, document.baseURI).href;
  page.site = { address, read: fetched, text, keep };
  page.spoken = JSON.parse(spoken);
  const glossary = {
    type: "application/json",
    id: "glossary",
    textContent: JSON.stringify(page.spoken.glossary),
  };
  document.head.append(Object.assign(document.createElement("script"), glossary));
  const start = "start"; // of the page's import map
  await import(start);
};
open();
