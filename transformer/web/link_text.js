// A link's text, the state that it holds, and the request that its run is made from.

import { declared, everyField, textsOf, valueOf } from "./declared.js";
import { say, wholeText } from "./messages.js";

// ---- a query string of names and values ----

const MAX_CHARACTERS = 6000; // characters; beyond, the state is compressed, and beyond that there is no link
const MAX_BYTES = 64000; // bytes of a state, inflated

export const TOO_LONG = say(
  "A link to this would need more than {most} characters, even compressed, so " +
    "there is none. Shorten the text or make fewer changes.",
  { most: wholeText(MAX_CHARACTERS) },
);

const EMBED = "embed"; // how the page is shown, whatever it shows
const ENGINE = "engine"; // "server": nothing is computed in the browser
const OTHER_NAMES = ["view", EMBED, ENGINE]; // of the state
/** @type {(name: string) => boolean} */
const isOwn = (name) => !name.startsWith("__") && !OTHER_NAMES.includes(name); // else the framework's
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
/** @type {(search: string) => boolean} */
export const asksForServer = (search) => new URLSearchParams(search).get(ENGINE) === "server";
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
  if (written.size > MAX_BYTES) return null;
  const deflated = written.stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(deflated).arrayBuffer());
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
};
// The link text of {name: text}; null if it is too long.
/** @type {(all: Record<string, string>) => Promise<string | null>} */
export const queryOf = async (all) => {
  const query = plainQuery(all);
  if (query.length <= MAX_CHARACTERS) return query;
  const short = await packedState(all);
  return short !== null && short.length < MAX_CHARACTERS ? `z=${short}` : null;
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
    const state = json.length > MAX_BYTES ? null : JSON.parse(json);
    const isFlat = state?.constructor === Object;
    return isFlat && Object.values(state).every((one) => typeof one === "string") ? state : null;
  } catch {
    return null;
  }
};

// ---- a state and the request for its run ----

const REQUEST = Object.keys(declared.request); // all that makes a run again
/** @type {Record<string, string>} */
const TYPES = { ...declared.request, lines: "text", bare: "bool" };

/** @import { PlainValues, Run, State } from "./types" */
/** @type {(names: string[], a: State, b: State) => boolean} */
const sameFields = (names, a, b) => {
  const usual = { model: declared.controls.model }; // of a state that names none
  const [left, right] = [a, b].map((one) => /** @type {State} */ ({ ...usual, ...one }));
  return names.every((name) => left[name] === right[name]);
};
/** @type {(a: State, b: State) => boolean} */
export const sameRequest = (a, b) => sameFields(REQUEST, a, b);
/** @type {(a: State, b: State) => boolean} */
export const sameSettings = (a, b) => sameFields(["model", ...declared.settings], a, b);

// What a state asks the server for, as plain values: lines, of its batch, bare, whether that is without padding masks, and
// request, for its run, each only with what the state has; views: its other fields; problems: a sentence for each that
// cannot be read.
/** @type {(state: State) => { lines?: string, bare?: boolean, request: PlainValues, views: State, problems: string[] }} */
export const partsOf = (state) => {
  /** @type {PlainValues} */
  const values = {};
  /** @type {State} */
  const views = {};
  const problems = [];
  for (const [name, text] of Object.entries(state)) {
    try {
      if (Object.hasOwn(everyField, name)) views[name] = text;
      else values[name] = valueOf(name, { type: TYPES[name] }, text);
    } catch (error) {
      problems.push(error.message);
    }
  }
  const { lines, bare, ...request } = values;
  return { lines, bare, request, views, problems };
};

// The part of a link that leads to a run; a stored example is its model's.
/** @type {(run: Pick<Run, "example" | "model" | "request">) => State} */
export const linkOf = ({ example, model, request }) => textsOf(example ? { model } : request);
