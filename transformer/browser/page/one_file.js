// Opens the page that is one file: its parts are texts in it. Scripts get addresses of their own; weights stay texts, which
// the worker unpacks.

import { unpacked, unzipped } from "./packed.js";

const SCRIPTS = ["server/static/page.js", "server/static/later.js", "browser/page/start.js"];
const WORKER = "browser/page_worker.js";
const WEIGHTS = /^models\//;

/** @type {(name: string) => string} */
const textOf = (name) =>
  document.querySelector(`[data-file="${CSS.escape(name)}"]`)?.textContent ?? "";
/** @type {(name: string) => Promise<string>} */
const decoded = async (name) =>
  new TextDecoder().decode(await unzipped(await unpacked(textOf(name))));

const open = async () => {
  /** @type {Map<string, string>} */
  const addresses = new Map();
  for (const name of [...SCRIPTS, WORKER]) {
    const script = new Blob([await unpacked(textOf(name))], { type: "text/javascript" });
    addresses.set(name, URL.createObjectURL(script));
  }
  const page = /** @type {any} */ (globalThis);
  page.site = {
    address: (/** @type {string} */ name) => addresses.get(name),
    read: async (/** @type {string} */ name) =>
      WEIGHTS.test(name) ? textOf(name) : unpacked(textOf(name)),
    text: await decoded("site.json.gz"),
  };
  page.spoken = JSON.parse(await decoded(`words/${page.spokenHere}.json.gz`));
  const element = (/** @type {Record<string, string>} */ given) =>
    document.head.append(Object.assign(document.createElement("script"), given));
  const glossary = JSON.stringify(page.spoken.glossary);
  element({ type: "application/json", id: "glossary", textContent: glossary });
  const imports = Object.fromEntries(
    ["page", "later", "start"].map((name, at) => [name, addresses.get(SCRIPTS[at])]),
  );
  element({ type: "importmap", textContent: JSON.stringify({ imports }) });
  const start = "start"; // of the map
  await import(start);
};
open();
