// Opens the page from a folder of files on any web server.

import { unzippedText } from "./packed.js";

/** @type {(answer: Promise<Response>) => Promise<string>} */
const textOf = async (answer) => unzippedText(/** @type {ReadableStream} */ ((await answer).body));

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
  for (const name of names) await (await fetch(name, { cache: "force-cache" })).body?.cancel(); // the worker keeps it
};

const open = async () => {
  const page = /** @type {any} */ (globalThis);
  const [spoken, text] = await Promise.all(page.texts.map(textOf));
  const address = (/** @type {string} */ name) => new URL(name, document.baseURI).href;
  page.site = { address, source: address, text, keep };
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
