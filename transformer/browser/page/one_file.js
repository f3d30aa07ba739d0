// Opens the page that is one file: its parts are texts in it. Scripts get addresses of their own; weights stay texts, which
// the worker unpacks.

import { prepare, scriptAddress } from "./opened.js";
import { bytesOf, unzipped, unzippedText } from "./packed.js";

/** @type {(name: string) => HTMLTemplateElement | null} */
const elementOf = (name) => document.querySelector(`[data-file="${CSS.escape(name)}"]`);
/** @type {(name: string) => string} */
const textOf = (name) => elementOf(name)?.content.textContent ?? "";
/** @type {(text: string) => Promise<ArrayBuffer>} */
const unpacked = (text) => unzipped(bytesOf(text));
/** @type {(name: string) => Promise<string>} */
const decoded = async (name) => unzippedText(await unpacked(textOf(name)));
/** @type {Map<string, Blob>} texts that the page no longer holds, for a second try */
const blobs = new Map();
/** @type {(name: string) => Blob} */
const source = (name) => {
  const element = elementOf(name);
  const parts = Array.from(
    element?.content.childNodes ?? [],
    ({ textContent }) => textContent ?? "",
  );
  const blob = blobs.get(name) ?? new Blob(parts);
  blobs.set(name, blob);
  element?.remove();
  return blob;
};
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
    const address = scriptAddress(await unpacked(content.textContent ?? ""));
    addresses.set(String(dataset.file), address);
    imports[String(dataset.import)] = address;
  }
  const site = {
    address: (/** @type {string} */ name) => addresses.get(name) ?? name,
    source,
    keep: async (/** @type {string[]} */ names) => names.forEach((name) => blobs.delete(name)),
    text: await decoded("site.json.gz"),
  };
  const { spokenHere } = /** @type {typeof globalThis & import("../types.d.ts").WrittenPage} */ (
    globalThis
  );
  prepare(site, await decoded(`words/${spokenHere}.json.gz`), imports);
};
const start = "start"; // of the map
if (typeof DecompressionStream !== "function") show("old-browser");
else
  open().then(
    () => import(start),
    () => show("damaged"),
  );
