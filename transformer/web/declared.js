// The fields of a link and the views' declarations, written into the page by server/fields.py, and the values
// that fields take. A declared field is {name, type, title, default, use, optional, options?, least?, most?}.

import { say, sayList } from "./messages.js";
import { siteName, sitesOf } from "./sites.js";

const source = globalThis.document?.getElementById("view-schema");
/** @import { Declared, DeclaredField, DeclaredPicture, DeclaredView, FieldValue, PlainValues } from "./types" */
/** @type {Declared} */
export const declared = {
  ...{ request: {}, page: {}, dark: {}, controls: {} },
  ...{ settings: [], views: [], cards: [], lessons: [], in_browser: [] },
  ...JSON.parse(source?.textContent ?? "{}"),
};
export const views = declared.views;

/** @type {(name: string) => DeclaredPicture | undefined} */
export const pictureNamed = (name) =>
  views.flatMap(({ pictures }) => pictures).find((picture) => picture.name === name);

/** @type {(name: string) => DeclaredView | undefined} */
export const viewNamed = (name) => views.find((view) => view.name === name);
/** @type {(view: string) => Record<string, DeclaredField>} */
export const fieldsOf = (view) => viewNamed(view)?.controls ?? {};
// Every field of the page and its views, by name.
/** @type {Record<string, DeclaredField>} */
export const everyField = Object.assign(
  {},
  declared.page,
  ...views.map(({ controls }) => controls),
);

// ---- values of a link as texts, and back; an Error with a sentence if invalid ----

// A list of objects, such as the changes to a network, is JSON.
/** @type {(value: unknown) => string} */
export const textOf = (value) =>
  Array.isArray(value) && typeof value[0] === "object"
    ? JSON.stringify(value)
    : String(value ?? "");
// A table of plain values, as of a lesson's step, as the texts of a link.
/** @type {(table: PlainValues) => Record<string, string>} */
export const textsOf = (table) =>
  Object.fromEntries(Object.entries(table).map(([name, value]) => [name, textOf(value)]));

/** @type {(text: string) => number} */
const numberIn = (text) => {
  const number = text.trim() === "" ? NaN : Number(text);
  if (!Number.isFinite(number)) throw new Error(text);
  return number;
};
/** @type {Record<string, (text: string) => FieldValue>} */
const READERS = {
  text: String,
  choice: String,
  number: numberIn,
  int: numberIn,
  intlist: (text) => text.split(",").filter(Boolean).map(numberIn),
  bool: (text) => text === "true",
  list: (text) => [...JSON.parse(text)],
};
// declared: its type, undefined for a name that no link has.
/** @type {(name: string, declared: { type: string | undefined, optional?: boolean }, text: string) => FieldValue} */
export const valueOf = (name, { type = "", optional }, text) => {
  if (text === "" && optional) return null;
  try {
    return READERS[type](text);
  } catch {
    const part = `'${shortened(name)}'`;
    throw new Error(say("The link's {part} is unknown or unreadable.", { part }));
  }
};

/** @type {(text: string) => string} */
const shortened = (text) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);
/** @type {(name: string, text: string, allowed: string[]) => string} */
export const oneOf = (name, text, allowed) => {
  if (allowed.includes(text)) return text;
  throw new Error(
    say("The link's {name} must be one of {allowed}; got {text}.", {
      name,
      allowed: sayList(allowed),
      text: shortened(text),
    }),
  );
};
/** @type {(name: string, got: string | number, first: number, last: number) => number} */
export const wholeNumber = (name, got, first, last) => {
  const text = String(got);
  const number = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (number >= first && number <= last) return number;
  throw new Error(
    say("The link's {name} must be a whole number from {first} to {last}; got {text}.", {
      name,
      first,
      last,
      text: shortened(text),
    }),
  );
};
// A site of a run or a batch by its name. Throws for an unknown site.
/** @type {(name: string, text: string, item: import("./sites.js").Item) => import("./store.js").Site} */
export const siteNamed = (name, text, item) => {
  const sites = sitesOf(item);
  const names = sites.map(siteName);
  return sites[names.indexOf(oneOf(name, text, names))];
};
