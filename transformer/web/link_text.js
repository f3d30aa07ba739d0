// The fields of a link and the views' declarations, written into the page by ui/link.py, and the text of a
// link. A declared field is {name, type, title, default, use, optional, options?, least?, most?}.

import { say, wholeText } from "./messages.js";
import { siteName, sitesOf } from "./sites.js";

const source = globalThis.document?.getElementById("view-schema");
const lists = { settings: [], request: [], batch: [], views: [], cards: [], lessons: [] };
/**
 * @typedef {object} Declared
 * @property {string[]} settings
 * @property {string[]} request all that makes a run again
 * @property {string[]} batch
 * @property {Record<string, any>} page its own fields
 * @property {any[]} views
 * @property {Record<string, string>} dark the dark theme's colour for each colour of a figure
 * @property {any[]} cards of the tour
 * @property {string[]} lessons their names
 */
/** @type {Declared} */
export const declared = {
  ...lists,
  ...{ page: {}, dark: {} },
  ...JSON.parse(source?.textContent ?? "{}"),
};
export const views = declared.views;

// The page's default tab; see ui/link.py.
export const firstTab = Object.keys(declared.page.tab?.options ?? {})[0];

/** @type {(name: string) => any} */
export const pictureNamed = (name) =>
  views.flatMap(({ pictures }) => pictures).find((one) => one.name === name);

/** @type {(view: string) => Record<string, any>} */
export const fieldsOf = (view) => views.find((one) => one.name === view)?.controls ?? {};

// ---- a link's text: a query string of names and values ----

const MOST = 6000; // characters; beyond, the state is compressed, and beyond that there is no link
const LARGEST = 64000; // bytes that the server inflates

export const TOO_LONG = say(
  "A link to this would need more than {most} characters, even compressed, so " +
    "there is none. Shorten the text or alter less.",
  { most: wholeText(MOST) },
);

const EMBED = "embed"; // how the page is shown, whatever it shows
/** @type {(name: string) => boolean} */
const isOwn = (name) => !name.startsWith("__") && name !== "view" && name !== EMBED; // else the framework's
/** @type {(text: string) => [string, string][]} */
const named = (text) => [...new URLSearchParams(text)];
// Whether a query string holds any field of the page's state.
/** @type {(text: string) => boolean} */
export const holdsOwn = (text) => text.includes("=") && named(text).some(([name]) => isOwn(name));
// A query string without the page's own fields.
/** @type {(text: string) => string} */
export const foreignPart = (text) => queryText(named(text).filter(([name]) => !isOwn(name)));
/** @type {(pairs: [string, string][]) => string} */
const queryText = (pairs) => new URLSearchParams(pairs).toString().replace(/=(?=&|$)/g, "");

// Whether a query string asks for the page without its frame, and the query string without that.
/** @type {(search: string) => boolean} */
export const isEmbedded = (search) => new URLSearchParams(search).has(EMBED);
/** @type {(search: string) => string} */
export const withoutEmbed = (search) => {
  const rest = queryText(named(search).filter(([name]) => name !== EMBED));
  return rest && `?${rest}`;
};

// A flat object of texts, uncompressed.
/** @type {(all: Record<string, string>) => string} */
export const plainQuery = (all) =>
  new URLSearchParams(all).toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
/** @type {(all: Record<string, string>) => Promise<string | null>} */
const packedState = async (all) => {
  const written = new Blob([JSON.stringify(all)]);
  if (written.size > LARGEST) return null;
  const deflated = written.stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(deflated).arrayBuffer());
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
};
// The link text of {name: text}; null if it is too long.
/** @type {(all: Record<string, string>) => Promise<string | null>} */
export const queryOf = async (all) => {
  const query = plainQuery(all);
  if (query.length <= MOST) return query;
  const short = await packedState(all);
  return short !== null && short.length < MOST ? `z=${short}` : null;
};
// The shortest text, for a QR code; it may be too long for a link.
/** @type {(all: Record<string, string>) => Promise<string>} */
export const shortQueryOf = async (all) => {
  const query = plainQuery(all);
  const packed = await packedState(all);
  return packed !== null && packed.length + 2 < query.length ? `z=${packed}` : query;
};

// Parse a text into {name: text}; null if it is invalid.
/** @type {(text: string) => Promise<Record<string, string> | null>} */
export const stateOf = async (text) => {
  const { z, ...given } = Object.fromEntries(
    named(text)
      .filter(([name]) => isOwn(name))
      .reverse(), // the first of each name counts
  );
  if (z === undefined) return given;
  const packed = await unpackedState(z);
  return packed && { ...packed, ...given };
};
/** @type {(packed: string) => Promise<Record<string, string> | null>} */
const unpackedState = async (packed) => {
  try {
    const text = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const json = await new Response(stream).text();
    return json.length > LARGEST ? null : JSON.parse(json);
  } catch {
    return null;
  }
};

// ---- values of a link; an Error with a sentence if invalid ----

/** @type {(text: string) => string} */
const shortened = (text) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);
/** @type {(name: string, text: string, allowed: string[]) => string} */
export const oneOf = (name, text, allowed) => {
  if (allowed.includes(text)) return text;
  throw new Error(
    say("The link's {name} must be one of {allowed}; got {text}.", {
      name,
      allowed: allowed.join(", "),
      text: shortened(text),
    }),
  );
};
/** @type {(name: string, text: string, first: number, last: number) => number} */
export const wholeNumber = (name, text, first, last) => {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
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
