// Between the page and its server: the place in the queue, a refusal, a connection that was lost.

import { LANGUAGE, MOVED, SESSION, VISIT, askedIn, session, storage } from "../../web/ask.js";
import { foreign, isOpening, refused, reopen } from "./link.js";
import { unsent } from "./gradio.js";
import { say, sayN } from "../../web/messages.js";
import { effect } from "../../web/preact.js";
import { emit, page, showProblem } from "../../web/store.js";

const fetched = window.fetch.bind(window);
const KEPT = "viz-kept"; // in sessionStorage, from a lost connection or an unfinished text until the page is back
const LOST = say(
  "The connection to the server was lost. Your text stays; the page comes back with " +
    "the server.",
);
const BACK = say("The server is back. Your text is kept: press the button again.");
const SILENT = say(
  "The server has not answered for a while. It may be busy: your text stays here.",
);
const SILENT_MS = 25_000; // it says that it is there every 15 s
const moved = history.state?.[MOVED] ?? null;
let lost = false;
let moving = false;

const heard = (coming) => {
  const timer = setTimeout(() => emit("waiting", SILENT), SILENT_MS);
  return coming.finally(() => clearTimeout(timer));
};
// Gradio's own name of the session gives way to ours.
/** @type {(text: any) => any} */
const ofSession = (text) =>
  typeof text === "string"
    ? text.replace(/("session_hash":"|[?&]session_hash=)\w+/, `$1${session}`)
    : text;
const exchange = async (url, given, isStream) => {
  if (!isStream) emit("request");
  const headers = new Headers(given?.headers);
  headers.set(SESSION, session); // a load balancer knows by it which server has this visit's runs
  try {
    const ours = { ...given, headers, body: ofSession(given?.body) };
    const answer = await heard(fetched(url, ours));
    const copy = answer.clone();
    if (isStream && copy.body) follow(copy.body, given?.signal);
    else if (!answer.ok && !isStream) {
      copy
        .json()
        .then(({ detail }) => fail(sentence(detail)))
        .catch(() => fail(LOST));
    }
    return answer;
  } catch (error) {
    if (!given?.signal?.aborted) keep();
    throw error;
  }
};
// Gradio 6.31 asks its queue through window.fetch: join begins something, data is the stream of what is
// said of it. Both pass through here, because its page makes a client of its own
// - to which nobody can give the session (it is drawn by lot, so that a page that is loaded again would lose
//   the visit's runs), a header, a language, or an address without the query string, which in a link of
//   before holds a visitor's words;
// - and no event of Gradio's brings a script the place in the queue, the sentence of a refusal (`.failure()`
//   calls without it) or the loss of the connection.
window.fetch = (resource, given) => {
  const url = resource instanceof Request ? resource.url : String(resource);
  if (url.includes("/queue/data")) return exchange(ofSession(url), given, true);
  if (!url.includes("/queue/join")) return fetched(resource, given);
  return exchange(url.replace(/\?.*/, "") + askedIn(foreign(), LANGUAGE), given, false);
};
const fail = (said) => {
  refused();
  showProblem(said);
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
    fail(sentence(output?.error));
  }
  return msg === "close_stream" || msg === "unexpected_error";
};

// Gradio loads the page anew once the server answers. What is shown stands in the address; what was
// typed or set, and not yet run, is handed over to the new page.
const keep = () => {
  if (!lost) fail(LOST);
  lost = true;
};
const isUnfinished = () => page.run && unsent().text !== page.run.text;
window.onpagehide = () => {
  if (lost || (!moving && isUnfinished()))
    storage?.setItem(KEPT, JSON.stringify({ typed: unsent(), lost }));
  if (!moving) storage?.setItem(VISIT, session);
  if (!lost && !moving) {
    const headers = { [SESSION]: session };
    fetched("leave", { method: "POST", headers, keepalive: true }).catch(() => {});
  }
};

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
const [opened] = /** @type {any[]} */ (performance.getEntriesByType("navigation"));
if (kept && (kept.lost || opened?.type === "reload")) reopen(kept.typed);
if (kept?.lost) {
  const stop = effect(() => {
    if (isOpening() || !page.run) return;
    queueMicrotask(() => stop());
    setTimeout(() => emit("waiting", BACK)); // after what the run itself says
  });
}
