// Opens the page from a folder of files on any web server.

import { addElement, prepare, scriptAddress } from "./opened.js";
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
  // The worker keeps what is read; Firefox reports an answer that is not read to its end as an error.
  for (const name of names) {
    const { body } = await fetch(name, { cache: "force-cache" });
    await body?.pipeTo(new WritableStream());
  }
};

const address = (/** @type {string} */ name) => new URL(name, document.baseURI).href;
const open = async () => {
  const { texts, later } = /** @type {typeof globalThis & import("../types.d.ts").WrittenPage} */ (
    globalThis
  );
  const [words, text, schema, style, ...scripts] = await Promise.all(texts.map(textOf));
  addElement("style", { textContent: style });
  addElement("script", { type: "application/json", id: "view-schema", textContent: schema });
  const [page, start] = scripts.map(scriptAddress);
  const imports = { page, start, later: address(later) };
  prepare({ address, source: address, text, keep }, words, imports);
};
const start = "start"; // of the map
open().then(() => import(start));
