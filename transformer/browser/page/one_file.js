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
const isWhole = new Promise((done) => document.addEventListener("DOMContentLoaded", done));
/** @type {Map<string, Blob>} texts that the page no longer holds, for a second try */
const blobs = new Map();
/** @type {(name: string) => Promise<Blob>} */
const source = async (name) => {
  await isWhole;
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
  const { spokenHere } = /** @type {typeof globalThis & import("../types.d.ts").WrittenPage} */ (
    globalThis
  );
  /** @type {HTMLTemplateElement[]} */
  const scripts = Array.from(document.querySelectorAll("[data-import]"));
  const [text, words, ...contents] = await Promise.all([
    ...["site.json.gz", `words/${spokenHere}.json.gz`].map(decoded),
    ...scripts.map(({ content }) => unpacked(content.textContent ?? "")),
  ]);
  /** @type {Map<string, string>} */
  const addresses = new Map();
  /** @type {Record<string, string>} */
  const imports = {};
  for (const [at, { dataset }] of scripts.entries()) {
    const address = scriptAddress(contents[at]);
    addresses.set(String(dataset.file), address);
    imports[String(dataset.import)] = address;
  }
  const site = {
    ...{ source, text },
    address: (/** @type {string} */ name) => addresses.get(name) ?? name,
    keep: async (/** @type {string[]} */ names) => names.forEach((name) => blobs.delete(name)),
  };
  prepare(site, String(words), imports);
};
const start = "start"; // of the map
if (typeof DecompressionStream !== "function") show("old-browser");
else
  open().then(
    () => import(start),
    () => show("damaged"),
  );
