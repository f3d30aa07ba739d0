// What the page asks the server to do: write a text, read a batch, show a model's example. Of texts and examples one is
// under way at a time, and one of batches: a new press ends the one before, and an example both. The answer is lines of
// JSON, see server/page/presses.py.

import { answeredHere, hasServer, pause, post, refusal } from "../../web/ask.js";
import { resetFields } from "../../web/fields.js";
import { effect } from "../../web/preact.js";
import { declared } from "../../web/declared.js";
import { say, sayN } from "../../web/messages.js";
import { interventions } from "../../web/runs.js";
import {
  shell,
  controls,
  page,
  setBatch,
  setRun,
  showProblem,
  showWaiting,
  showStatus,
} from "../../web/store.js";
import { setControls, setStop, uncover } from "./gradio.js";

/** @import { BatchFacts, PlainValues, RunFacts, TextFacts } from "../../web/types" */
/** @import { PressLine as Line } from "./types" */

// ---- the connection ----

const LOST = say(
  "The connection to the server was lost. Your text stays; the page comes back with " +
    "the server.",
);
export const BACK = say("The server is back. Your text is kept: press the button again.");
const SILENT = say(
  "The server has not answered for a while. It may be busy: your text stays here.",
);
const SILENT_MS = 25_000; // it sends an empty line every 10 s
const POLL_MS = 500; // until the server is back

/** @type {<T>(coming: Promise<T>) => Promise<T>} */
const heard = (coming) => {
  const timer = setTimeout(() => {
    showWaiting(SILENT);
    uncover();
  }, SILENT_MS);
  return coming.finally(() => clearTimeout(timer));
};

// Until the server answers again; the page of another version of the server is loaded anew.
const waitForServer = async () => {
  page.isLost = true;
  for (;;) {
    await pause(POLL_MS);
    const answer = await fetch("ready").catch(() => null);
    const { status, version } = (await answer?.json().catch(() => null)) ?? {};
    if (status !== "ok") continue;
    if (!import.meta.url.includes(version)) return window.location.reload();
    page.isLost = false;
    if (page.status.text === LOST) showWaiting(BACK); // unless another press has been answered meanwhile
    return undefined;
  }
};

// ---- an answer ----

/** @type {(body: ReadableStream<Uint8Array>) => AsyncGenerator<Line>} */
async function* linesOf(body) {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  for (;;) {
    const part = await heard(reader.read()).catch(() => null);
    if (!part || part.done) return;
    const lines = (rest + decoder.decode(part.value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line) yield JSON.parse(line);
  }
}

// ---- what an answer shows ----

const LONG_MS = 1500; // that a text is written before it is seen on a page that opens

// The text as far as it is written, which can be stopped; null for none.
/** @type {(facts: TextFacts | null) => void} */
const setWriting = (facts) => {
  const interactive = facts !== null;
  if (interactive !== (page.writing !== null)) setStop(interactive);
  page.writing = facts;
};

// Show a finished run, or a text as far as it is written.
/** @type {(facts: RunFacts | TextFacts) => void} */
export const showText = (facts) => {
  const isDone = facts.state === "done";
  if (!isDone && !page.writing && page.opening) setTimeout(uncover, LONG_MS);
  setWriting(isDone ? null : /** @type {TextFacts} */ (facts));
  if (isDone && facts.run !== page.run?.run) setRun(/** @type {RunFacts} */ (facts));
};

/** @type {(batch: BatchFacts) => void} */
export const showBatch = (batch) => {
  if (batch.batch === page.batch?.batch) return;
  resetFields("masks");
  setBatch(batch);
};

/** @type {(line: Line) => void} */
const show = ({ before, tokens, batch, status }) => {
  if (before) {
    showWaiting(sayN("{n} request before yours …", "{n} requests before yours …", before));
    uncover();
  }
  if (tokens) showText(tokens);
  if (batch) showBatch(batch);
  if (status) showStatus(status);
};

// ---- a press ----

/** @type {Record<string, AbortController | null>} */
const underway = { text: null, batch: null };

// Gives what was wrong, or an empty text.
/** @type {(lines: AsyncIterable<Line>, take: (line: Line) => void) => Promise<string>} */
const read = async (lines, take) => {
  /** @type {Line | null} */
  let last = null;
  for await (const line of lines) {
    if (line.detail) return line.detail;
    last = line;
    show(line);
    take(line);
  }
  return !last || last.running || last.before ? LOST : "";
};

/** @type {(name: string, data: PlainValues, signal: AbortSignal, take: (line: Line) => void) => Promise<string>} */
const problemOf = async (name, data, signal, take) => {
  const here = answeredHere(name, data);
  if (here) {
    const isFailed = (/** @type {{ isFault?: boolean }} */ error) => error.isFault && hasServer();
    const problem = await read(/** @type {AsyncIterable<Line>} */ (here(data, signal)), take).catch(
      (error) => (isFailed(error) ? null : error.message),
    );
    if (problem !== null) return problem;
  }
  const answer = await heard(post(name, data, { signal })).catch(() => null);
  if (!answer) return LOST;
  return answer.ok
    ? read(linesOf(/** @type {ReadableStream<Uint8Array>} */ (answer.body)), take)
    : refusal(answer);
};

// Ask the server; take(line) is given each line once it is shown. Returns whether the answer was complete.
/** @type {(name: string, data: object, take?: (line: Line) => void) => Promise<boolean>} */
export const press = async (name, data, take = () => {}) => {
  const kind = name === "batches" ? "batch" : "text";
  for (const ended of name === "examples" ? ["text", "batch"] : [kind]) {
    underway[ended]?.abort();
    underway[ended] = null;
  }
  const mine = new AbortController();
  underway[kind] = mine;
  const problem = await problemOf(name, data, mine.signal, take);
  if (underway[kind] !== mine) return false; // another press has ended it
  underway[kind] = null;
  if (kind === "text") setWriting(null);
  if (!problem) return true;
  showProblem(problem);
  if (problem === LOST) waitForServer();
  return false;
};

// ---- what Gradio's buttons call, see server/page/components.py ----

/** @type {() => PlainValues} */
export const settings = () =>
  Object.fromEntries(declared.settings.map((name) => [name, controls[name]]));

// What is altered in the network stays for the next text; the tokens of a branch belong to one run.
const altered = () => ({ interventions: interventions() });

// Whether the state that is being opened is shown, once it is; not if another is asked for meanwhile.
/** @type {() => Promise<boolean>} */
const isShown = () =>
  new Promise((done) => {
    const { opening } = page;
    const stop = effect(() => {
      if (opening !== null && page.opening === opening) return;
      done(page.opening === null);
      queueMicrotask(() => stop());
    });
  });

// Write on; changes: what is altered in the shown run. text: another than the box has.
/** @type {(changes?: PlainValues, text?: string) => Promise<void>} */
export const generate = async (changes, text) => {
  if (changes) page.opening = null;
  else if (!(await isShown())) return;
  if (text !== undefined && text !== controls.text) setControls({ text });
  const request = { model: controls.model, text: controls.text, ...settings() };
  press("runs", { ...request, ...(changes ?? altered()) });
};
shell.generate = generate;

// A translator's languages, of those that are set.
/** @type {(values: PlainValues) => { source_language: string | null, target_language: string | null }} */
export const languagesIn = ({ source_language, target_language }) => ({
  source_language: source_language ?? null,
  target_language: target_language ?? null,
});
// hidden: whether the padding mask is in place.
/** @type {(hidden?: boolean) => void} */
export const readBatch = (hidden = true) =>
  void press("batches", {
    model: controls.model,
    lines: controls.lines,
    bare: !hidden,
    ...languagesIn(controls),
  });
// Pressed again, the button brings the mask back.
export const toggleMask = () => readBatch(!page.batch.padding_hidden);

// What is written by now becomes the run.
export const stop = () =>
  void (answeredHere("stop") ?? (() => post("stop", {}).catch(() => {})))({});
