// Opens the page from a folder of files on any web server.

import { fetched, fetchedParts } from "./fetched.js";
import { unzipped } from "./packed.js";

/** @type {(answer: Promise<Response>) => Promise<string>} */
const textOf = async (answer) =>
  new TextDecoder().decode(await unzipped(await (await answer).arrayBuffer()));

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
  const [spoken, text] = await Promise.all(page.texts.map(textOf));
  const address = (/** @type {string} */ name) => new URL(name, document.baseURI).href;
  page.site = { isPacked: false, address, read: fetched, readParts: fetchedParts, text, keep };
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
