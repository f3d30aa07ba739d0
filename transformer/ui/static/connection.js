// Between the page and its server: the place in the queue, a refusal, a connection that was lost.
// Gradio asks for results through fetch; what passes is read along, and said in the page's status.

import { askedIn, LANGUAGE } from "./language.js";
import { foreign, isOpening, reopen } from "./link.js";
import { say, sayN } from "./messages.js";
import { emit, showProblem } from "../../web/store.js";

const storageOf = () => {
  try {
    return window.sessionStorage;
  } catch {
    // a browser may keep a page inside another one from it
    return null;
  }
};
const KEPT = "viz-kept"; // in sessionStorage, only from a lost connection until the page is back
const MOVED = "viz-moved"; // in the history's state, while the page is loaded in another language
const LOST = say(
  "The connection to the server was lost. Your text stays; the page comes back with " +
    "the server.",
);
const BACK = say("The server is back. Your text is kept: press the button again.");
const SILENT = say(
  "The server has not answered for a while. It may be busy: your text stays here.",
);
const SILENT_MS = 25_000; // it says that it is there every 15 s
const fetched = window.fetch.bind(window);
const storage = storageOf();
const moved = history.state?.[MOVED] ?? null;
/** @type {any} */
let session = moved?.session ?? null;
let lost = false;
let moving = false;

// A load balancer before several servers knows by `visitor` which of them has a visitor's runs.
const withVisitor = (url, visitor) =>
  visitor ? `${url}${url.includes("?") ? "&" : "?"}visitor=${encodeURIComponent(visitor)}` : url;
const sessionIn = (options) => {
  try {
    return JSON.parse(options.body).session_hash;
  } catch {
    return null; // not a request of this page's own kind: it goes on as it is
  }
};
// A page in another language goes on with the visit of the one before: Gradio gives it a new name.
/** @type {(text: any) => any} */
const ofVisit = (text) =>
  moved?.session && typeof text === "string"
    ? text.replace(/("session_hash":"|[?&]session_hash=)\w+/, `$1${moved.session}`)
    : text;
/** @type {(url: string) => string} */
const inLanguage = (url) => {
  const [path, query] = url.split("?");
  return path + askedIn(query ?? "", LANGUAGE);
};

window.fetch = async (resource, given) => {
  const options = given && { ...given, body: ofVisit(given.body) };
  const url = ofVisit(resource instanceof Request ? resource.url : String(resource));
  // The framework sends the query string along with every question; a visitor's words, of a link of
  // before, need not go there.
  if (url.includes("/queue/join"))
    return join(inLanguage(url.replace(/\?.*/, `?${foreign()}`)), options);
  if (url.includes("/component_server"))
    return question(withVisitor(inLanguage(url), sessionIn(options)), options);
  if (!url.includes("/queue/data")) return fetched(resource, options);
  const coming = fetched(withVisitor(url, session), options);
  const answer = await heard(coming).catch((error) => {
    if (!options?.signal?.aborted) keep();
    throw error;
  });
  if (answer.body) follow(answer.clone().body, options?.signal);
  return answer;
};

// Gradio reads nothing of a refusal: its sentence becomes an answer like that of a view.
const question = async (url, options) => {
  const answer = await fetched(url, options);
  if (answer.ok) return answer;
  const { detail } = await answer.json().catch(() => ({}));
  return Response.json({ error: sentence(detail) });
};

const heard = (coming) => {
  const timer = setTimeout(() => emit("waiting", SILENT), SILENT_MS);
  return coming.finally(() => clearTimeout(timer));
};

const join = async (resource, options) => {
  session = sessionIn(options) ?? session;
  try {
    const answer = await heard(fetched(withVisitor(resource, session), options));
    if (!answer.ok)
      answer
        .clone()
        .json()
        .then(
          ({ detail }) => showProblem(sentence(detail)),
          () => showProblem(LOST),
        );
    return answer;
  } catch (error) {
    keep();
    throw error;
  }
};
const sentence = (detail) =>
  typeof detail === "string" ? detail : say("The server refused the request.");

// Read the server's messages along; an end without "close_stream" is a loss.
const follow = async (body, signal) => {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let closed = false;
  try {
    for (;;) {
      const { value, done } = await heard(reader.read());
      if (done) break;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) closed = hear(JSON.parse(part.replace(/^data:/, ""))) || closed;
    }
  } catch {
    // told below
  }
  if (!closed && !signal?.aborted) keep();
};

const hear = ({ msg, rank, success, output }) => {
  if (msg === "estimation" && rank > 0) {
    emit("waiting", sayN("{n} request before yours …", "{n} requests before yours …", rank));
  } else if (msg === "process_completed" && success === false) {
    showProblem(sentence(output?.error));
  }
  return msg === "close_stream" || msg === "unexpected_error";
};

// Gradio loads the page anew once the server answers. What is shown stands in the address; what was
// typed or set, and not yet run, is handed over to the new page.
const keep = () => {
  if (!lost) showProblem(LOST);
  lost = true;
};
/** @returns {HTMLTextAreaElement[]} */
const texts = () =>
  [...document.querySelectorAll("#text textarea, #lines textarea")].map(
    (box) => /** @type {any} */ (box),
  );
/** @returns {any} */
const model = () => document.querySelector("#model input");
const id = (control) => control.closest("#text, #lines").id;
const typed = () => Object.fromEntries(texts().map((control) => [id(control), control.value]));
// The settings, by their names in a link; none of those that the page has not drawn yet.
const settings = () => {
  /** @type {HTMLInputElement | null} */
  const method = document.querySelector("#method input:checked");
  const numbers = [...document.querySelectorAll("#settings [class*=setting-]")].map((box) => [
    /setting-(\w+)/.exec(box.className)?.[1],
    box.querySelector("input")?.value,
  ]);
  return Object.fromEntries([["method", method?.value], ...numbers].filter(([, value]) => value));
};
const unsent = () => ({ model: model()?.value, ...settings(), ...typed() });
window.addEventListener("pagehide", () => {
  if (lost) {
    storage?.setItem(KEPT, JSON.stringify(unsent()));
  } else if (session && !moving) {
    navigator.sendBeacon(new URL(withVisitor("leave", session), document.baseURI), session);
  }
});

// The page of another address, with what stands in its boxes, in the same visit.
/** @type {(address: string) => void} */
export const moveTo = (address) => {
  moving = true;
  const state = { ...history.state, [MOVED]: { session, unsent: unsent() } };
  history.replaceState(state, "", window.location.pathname + address);
  window.location.reload();
};
if (moved) {
  history.replaceState({ ...history.state, [MOVED]: null }, "");
  reopen(moved.unsent);
}

const kept = JSON.parse(storage?.getItem(KEPT) ?? "null");
storage?.removeItem(KEPT);
if (kept) {
  reopen(kept);
  const isBack = () => !isOpening() && document.querySelector(".attention[data-rev]");
  const tell = () => (isBack() ? emit("waiting", BACK) : setTimeout(tell, 50));
  tell();
}
