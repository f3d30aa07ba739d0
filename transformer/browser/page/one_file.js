// Opens the page that is one file: its parts are texts in it. Scripts get addresses of their own; weights stay texts, which
// the worker unpacks.

import { unpacked, unzipped } from "./packed.js";

const WEIGHTS = /^models\//;

/** @type {(name: string) => string} */
const textOf = (name) =>
  document.querySelector(`[data-file="${CSS.escape(name)}"]`)?.textContent ?? "";
/** @type {(name: string) => Promise<string>} */
const decoded = async (name) =>
  new TextDecoder().decode(await unzipped(await unpacked(textOf(name))));
/** @type {(id: string) => void} */
const show = (id) => document.getElementById(id)?.removeAttribute("hidden");

const open = async () => {
  /** @type {Map<string, string>} */
  const addresses = new Map();
  /** @type {Record<string, string>} */
  const imports = {};
  /** @type {NodeListOf<HTMLElement>} */
  const scripts = document.querySelectorAll("[data-import]");
  for (const { dataset, textContent } of scripts) {
    const script = new Blob([await unpacked(textContent ?? "")], { type: "text/javascript" });
    const address = URL.createObjectURL(script);
    addresses.set(String(dataset.file), address);
    imports[String(dataset.import)] = address;
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
  element({ type: "importmap", textContent: JSON.stringify({ imports }) });
};
const start = "start"; // of the map
if (typeof DecompressionStream !== "function") show("old-browser");
else
  open().then(
    () => import(start),
    () => show("damaged"),
  );
