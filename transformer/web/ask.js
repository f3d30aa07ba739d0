// Requests to the server by plain HTTP, and the arrays of its answers; server/page/resources.py lists the endpoints.
// If the server no longer keeps the run, it also gets the run's request and generates it again.

import { signal } from "./preact.js";
import { on, requestsFor } from "./store.js";
import { say } from "./messages.js";
import { pictureNamed } from "./declared.js";

/** @import { Signal } from "@preact/signals" */
/** @import { Answers, PlainValues, Question } from "./types" */

// ---- the language of requests: the page's, whatever the browser's is ----

// As the server wrote it. Gradio, which starts later, sets the browser's language there.
export const LANGUAGE = globalThis.document?.documentElement?.lang || "en";
export const ASKED = "__lang"; // in a query string; names with this prefix are not part of a link

// The query string with a language, or without one for null.
/** @type {(search: string, language: string | null) => string} */
export const askedIn = (search, language) => {
  const query = new URLSearchParams(search);
  query.delete(ASKED);
  if (language) query.set(ASKED, language);
  return query.size ? `?${query}` : "";
};

// ---- arrays: bytes from the server, base64 in a saved page ----

/** @type {(base64: import("./types").Bytes) => Uint8Array<ArrayBuffer>} */
export const decodeBytes = (base64) => {
  if (typeof base64 !== "string") return base64;
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64); // a large head: 7 ms less
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
};

// The inverse of numpy.packbits: one 0 or 1 per bit, the highest bit first.
/** @type {(bits: Uint8Array, count: number) => Uint8Array} */
export const unpackBits = (bits, count) => {
  const flags = new Uint8Array(count);
  for (let at = 0; at < count; at += 1) flags[at] = (bits[at >> 3] >> (7 - (at & 7))) & 1;
  return flags;
};

// ---- questions ----

export const RUN_GONE = say(
  "The server no longer keeps this run: newer runs took its place, or nobody " +
    "looked at it for ten minutes. Press the button to make it again, or reload the " +
    "page, which brings back the same run and view.",
);
const NEEDS_SERVER = say(
  "This page has no server, and only a server can answer this: make run starts one.",
);

const MAX_ATTEMPTS = 30; // while a server regenerates many runs
const PAUSE_MS = 1000;
const GONE_STATUS = 410;
const BUSY_MS = 60_000; // how long to retry a busy server, at the interval that it names
const ARRAYS_TYPE = "application/x-arrays";
/** @type {Record<string, new (buffer: ArrayBuffer, at?: number, size?: number) => Uint8Array | Int32Array | Float32Array>} */
export const ARRAY_TYPES = { uint8: Uint8Array, int32: Int32Array, float32: Float32Array };
const MAX_CHARACTERS = 1500; // of a query

/** @type {(name: "sessionStorage" | "localStorage") => Storage | null} */
const storageOf = (name) => {
  try {
    return globalThis[name] ?? null;
  } catch {
    // a browser may deny storage to an embedded page
    return null;
  }
};
export const storage = storageOf("sessionStorage");
export const lasting = storageOf("localStorage");
// Whether the page was opened by being loaded again.
export const isReload = () => {
  const [opened] = /** @type {Partial<PerformanceNavigationTiming>[]} */ (
    globalThis.performance?.getEntriesByType("navigation") ?? []
  );
  return opened?.type === "reload";
};
// What this page stored before a reload; null if it was not reloaded.
/** @type {(name: string) => string | null} */
export const takeLeft = (name) => {
  const left = storage?.getItem(name) ?? null;
  storage?.removeItem(name);
  return isReload() ? left : null;
};

// The session's name, kept while the page is open and over a reload, also in another language.
export const VISIT = "viz-visit"; // in sessionStorage, from one page to the next
const before = takeLeft(VISIT);
export const isReloaded = before !== null;
// A name that nobody guesses.
/** @type {() => string} */
export const drawnName = () =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
/** @type {string} */
export const session = before ?? drawnName();
export const SESSION = "x-session"; // the header that carries the session's name

/** @type {(ms: number) => Promise<void>} */
export const pause = (ms) => new Promise((done) => setTimeout(done, ms));
// Work that can wait until the page is idle.
export const whenIdle = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 200));
// Post an object to the server; more: of fetch.
/** @type {(name: string, data: object, more?: { signal?: AbortSignal, headers?: Record<string, string> }) => Promise<Response>} */
export const post = (name, data, { signal: aborts, headers } = {}) =>
  fetch(`resources/${name}${askedIn("", LANGUAGE)}`, {
    method: "POST",
    headers: { "content-type": "application/json", [SESSION]: session, ...headers },
    body: JSON.stringify(data),
    signal: aborts,
  });
// What the server says in an answer that refuses.
/** @type {(answer: Response) => Promise<string>} */
export const refusal = async (answer) => {
  const { detail } = await answer.json().catch(() => ({}));
  return typeof detail === "string" ? detail : say("The server refused the request.");
};

// Arrays follow the JSON text of an answer, each at a multiple of 8 bytes; see server/page/resources.py.
/** @type {(buffer: ArrayBuffer) => PlainValues} */
export const unpacked = (buffer) => {
  const length = new DataView(buffer).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  /** @type {[PlainValues, [path: string[], type: string, size: number][]]} */
  const [answer, arrays] = JSON.parse(text);
  let at = 4 + length;
  for (const [path, type, size] of arrays) {
    const array = new ARRAY_TYPES[type](buffer, at, size);
    const holder = path.slice(0, -1).reduce((part, name) => part[name], answer);
    holder[path[path.length - 1]] = array;
    at += 8 * Math.ceil(array.byteLength / 8);
  }
  return answer;
};

// The query of a picture's parameters, as in a link; null if it would hold a visitor's text or be too long.
/** @type {(name: string, data: Question) => string | null} */
const pictureQuery = (name, data) => {
  const picture = pictureNamed(name);
  if (!picture || data.made || ("other" in data && picture.takes !== "runs")) return null;
  const values = Object.entries(data).filter(([, value]) => value !== undefined);
  const query = String(new URLSearchParams(values.map(([key, value]) => [key, `${value ?? ""}`])));
  return query.length > MAX_CHARACTERS ? null : query;
};

/** @type {(name: string, data: Question, aborts?: AbortSignal) => Promise<PlainValues>} */
const send = async (name, data, aborts) => {
  const query = pictureQuery(name, data);
  const headers = { accept: `${ARRAYS_TYPE}, application/json`, [SESSION]: session };
  const response =
    query === null
      ? post(name, data, { headers, signal: aborts })
      : fetch(`resources/${name}${askedIn(query, LANGUAGE)}`, { headers });
  const answer = await response.catch(() => {
    const says = say("The server did not answer; is it still running?");
    throw Object.assign(new Error(says), { isSilent: true });
  });
  if (!answer.ok) {
    const after = 1000 * Number(answer.headers.get("retry-after"));
    throw Object.assign(new Error(await refusal(answer)), { status: answer.status, after });
  }
  return answer.headers.get("content-type") === ARRAYS_TYPE
    ? unpacked(await answer.arrayBuffer())
    : answer.json();
};

/** @typedef {Record<string, (data: Question, signal?: AbortSignal) => unknown>} AnswersByName functions that answer, by endpoint */
/** @type {AnswersByName | null} */
let own = null;
/** @type {((name: string, data: Question) => boolean) | null} */
let isCovered = null;
// Answer requests in the page itself. covers: beside a server, whether one is answered here now; null: there is no server.
/** @type {(answers: AnswersByName, covers?: typeof isCovered) => void} */
export const answerFrom = (answers, covers = null) => void ([own, isCovered] = [answers, covers]);
export const hasServer = () => own === null || isCovered !== null;
// What answers a request in the page itself; null if a server does. Refuses what only a server can answer.
/** @type {(name: string, data?: Question) => AnswersByName[string] | null} */
export const answeredHere = (name, data = {}) => {
  const answer = own?.[name];
  if (!answer && !hasServer()) throw new Error(NEEDS_SERVER);
  return answer && (!isCovered || isCovered(name, data)) ? answer : null;
};

/** @type {(name: string, data: Question, signal?: AbortSignal) => Promise<PlainValues>} */
const reply = async (name, data, aborts) => {
  const here = answeredHere(name, data);
  if (!here) return fromServer(name, data, aborts);
  try {
    return /** @type {PlainValues} */ (await here(data));
  } catch (error) {
    if (!hasServer()) throw error;
    return fromServer(name, data).catch((refused) => {
      throw refused.isSilent ? error : refused;
    });
  }
};
// Whether a run or a batch was made in this page, so that a server does not have it; see browser/runs.js.
/** @type {(data: Question) => boolean} */
const isOfPage = ({ run, other, batch }) =>
  [run, other, batch].some((id) => String(id ?? "").startsWith("browser-"));

// The server's answer to a question; isSilent is set in the Error of a server that does not answer.
/** @type {(name: string, data: Question, signal?: AbortSignal) => Promise<PlainValues>} */
export const fromServer = async (name, data, aborts) => {
  const made = requestsFor(data);
  const giveUp = Date.now() + BUSY_MS;
  for (let times = isOfPage(data) ? 1 : 0; ;) {
    try {
      return await send(name, times && made ? { ...data, made } : data, aborts);
    } catch (error) {
      const { status, after } = error;
      const gone = status === GONE_STATUS;
      if (!gone && !(after && Date.now() + after < giveUp)) throw error;
      if (gone && (!made || times === MAX_ATTEMPTS)) throw new Error(RUN_GONE, { cause: error });
      const rest = gone && times ? PAUSE_MS : after; // others are first
      if (rest) await pause(rest);
      if (gone) times += 1;
    }
  }
};

/** @type {Map<string, Promise<PlainValues>>} */
const pending = new Map();
// Request an endpoint by name; a refusal becomes an Error with the server's sentence. Identical requests in
// flight are shared, but not one that its signal may abort.
/** @type {(name: string, data: object, signal?: AbortSignal) => Promise<PlainValues>} */
const requested = (name, data, aborts) => {
  const question = /** @type {Question} */ (data);
  if (aborts) return reply(name, question, aborts);
  const key = `${name} ${JSON.stringify(data)}`;
  const underway = pending.get(key);
  if (underway) return underway;
  const answer = reply(name, question).finally(() => pending.delete(key));
  pending.set(key, answer);
  return answer;
};
export const ask =
  /** @type {<Name extends keyof Answers>(name: Name, data: object, signal?: AbortSignal) => Promise<Answers[Name]>} */ (
    requested
  );

// ---- the answers about the shown run, each requested once ----

/** @type {Map<string, Signal<unknown>>} */
const kept = new Map();
on("run", ({ run }) => {
  for (const key of kept.keys()) if (!key.startsWith(`${run} `)) kept.delete(key);
});

/** @type {(name: string, data: { run: string }) => Signal<unknown>} */
const keptSignal = (name, data) => {
  const key = `${data.run} ${name} ${JSON.stringify(data)}`;
  const answer = kept.get(key) ?? signal(undefined);
  kept.set(key, answer);
  return answer;
};
// The answer of an endpoint as far as it is known, {value}: a component that reads the value is drawn again
// when it arrives. data: with its run.
export const keptAnswer =
  /** @type {<Name extends keyof Answers, Data extends { run: string }>(name: Name, data: Data) => Signal<Answers[Name] | undefined>} */ (
    keptSignal
  );
const CELLS_KEPT = 8_000_000; // of all heads' numbers: 9 bytes each
/** @type {(latest: Signal<unknown>) => void} */
const forgetHeads = (latest) => {
  let cells = 0;
  for (const [key, answer] of [...kept].reverse()) {
    const { weights } = /** @type {{ weights?: ArrayLike<number> }} */ (answer.peek() ?? {});
    const { length = 0 } = weights ?? {};
    cells += length;
    if (length && answer !== latest && cells > CELLS_KEPT) kept.delete(key);
  }
};
// `ask`, once for a run; read: converts the answer.
/** @type {(name: string, data: { run: string }, read?: (answer: PlainValues) => unknown) => Promise<unknown>} */
const requestedOnce = async (name, data, read = (answer) => answer) => {
  const answer = keptSignal(name, data);
  if (answer.peek() === undefined) {
    const sent = await requested(name, data);
    answer.value ??= read(sent);
    forgetHeads(answer);
  }
  return answer.peek();
};
export const askOnce =
  /** @type {<Name extends keyof Answers, Data extends { run: string }, Value = Answers[Name]>(name: Name, data: Data, read?: (answer: Answers[Name]) => Value) => Promise<Value>} */ (
    requestedOnce
  );
