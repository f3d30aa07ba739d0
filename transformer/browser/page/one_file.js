// Opens the page that is one file: its parts are texts in it. Scripts get addresses of their own; weights stay texts, which
// the worker unpacks.

import { partsOf, unpacked, unzipped } from "./packed.js";

/** @type {(name: string) => HTMLTemplateElement | null} */
const elementOf = (name) => document.querySelector(`[data-file="${CSS.escape(name)}"]`);
/** @type {(name: string) => string} */
const textOf = (name) => elementOf(name)?.content.textContent ?? "";
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
  /** @type {NodeListOf<HTMLTemplateElement>} */
  const scripts = document.querySelectorAll("[data-import]");
  for (const { dataset, content } of scripts) {
    const script = new Blob([await unpacked(content.textContent ?? "")], {
      type: "text/javascript",
    });
    const address = URL.createObjectURL(script);
    addresses.set(String(dataset.file), address);
    imports[String(dataset.import)] = address;
  }
  const page = /** @type {any} */ (globalThis);
  page.site = {
    isPacked: true,
    address: (/** @type {string} */ name) => addresses.get(name),
    read: async (/** @type {string} */ name) => unpacked(textOf(name)),
    readParts: async (
      /** @type {string} */ name,
      /** @type {(part: string) => Promise<void>} */ take,
    ) => {
      for (const part of partsOf(textOf(name))) await take(part);
    },
    keep: async (/** @type {string[]} */ names) =>
      names.forEach((name) => elementOf(name)?.remove()),
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
