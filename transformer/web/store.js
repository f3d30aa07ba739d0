// The page's state: a run, a batch of texts, the chosen head and the chosen token; and events about changes.

import { declared, textsOf } from "./declared.js";
import { batch as together, computed, signal, untracked } from "./preact.js";

/** @import { BatchFacts, HeadSign, Opening, PageEvents, RunFacts, TextFacts } from "./types" */
/**
 * @typedef {import("./types").Site} Site
 * @typedef {import("./types").Head} Head
 * @typedef {import("./types").Query} Query
 * @typedef {import("./types").Kind} Kind
 * @typedef {import("./types").Run} Run
 * @typedef {import("./types").Batch} Batch
 */

/**
 * An object whose properties are signals: a component that reads one while it is drawn is drawn again
 * when it changes.
 * @template {object} T
 * @param {T} start
 * @returns {T}
 */
export const reactive = (start) => {
  const state = /** @type {T} */ ({});
  for (const [name, first] of Object.entries(start)) {
    const value = signal(first);
    const get = () => value.value;
    const set = (/** @type {unknown} */ now) => {
      value.value = now;
    };
    Object.defineProperty(state, name, { get, set, enumerable: true, configurable: true });
  }
  return state;
};

// The page's state, by name; run, batch, query and head are null until there is one, so an earlier caller must check. The
// state of one subject is with it:
// - fields (fields.js): what a link holds, as Python declares it; controls (below): what Gradio's boxes and settings hold
// - cardState (card.js): the tour's or the lesson's card; progress (guide.js): the steps that are solved
// - compared (runs.js): the run next to the shown one; opened (part.js): the section that was opened last
// - source (text.js): whose weights shade the text; effects (effects.js): what its words do
// - shared (next_words.js), automatic (leading_head.js): the journey; hasTabs (questions.js): its questions
// - looked (large.js): that the large picture is to be in sight
// - isPlaced (first_look.js), isNarrow (main.js): the page's layout; loading (engine.js): the network that is coming
// - row, language (saved.js): of a saved page
export const page = reactive({
  // ---- what is shown ----
  run: /** @type {Run} */ (/** @type {unknown} */ (null)),
  before: /** @type {{ run: Run, query: Query | null } | null} */ (null), // the run before it, and its chosen token
  batch: /** @type {Batch} */ (/** @type {unknown} */ (null)),
  opening: /** @type {Opening | null} */ (null), // the state that is being opened, see server/static/link.js
  writing: /** @type {TextFacts | null} */ (null), // the text as far as it is written, while it is
  branchedAt: /** @type {number | null} */ (null), // how many tokens the branch that is asked for forces
  models: /** @type {string[]} */ ([]), // that the page opened with
  inBrowser: /** @type {string[]} */ ([]), // models whose network runs in this browser now
  status: { kind: "done", text: "", rev: 0 }, // one line; kind: "busy", "done" or "error"
  // What a class has said of a question, {place: sign} of the tokens of a stack and the signs of heads.
  votes: {
    stack: "",
    tokens: /** @type {Record<string, string>} */ ({}),
    heads: /** @type {HeadSign[]} */ ([]),
  },
  // ---- what is chosen or pointed at ----
  query: /** @type {Query} */ (/** @type {unknown} */ (null)),
  key: /** @type {Query | null} */ (null), // the key whose weight is asked about
  asksKey: false, // whether the next token that is pressed is that key
  pointed: /** @type {Query | null} */ (null), // the token of the text that the pointer is over
  lit: /** @type {{ query: Query, key: Query } | null} */ (null), // the tokens of the cell that the pointer is over
  head: /** @type {Head} */ (/** @type {unknown} */ (null)),
  // The feed-forward in place of a head; neuron: one of it that is asked about.
  forward: /** @type {{ stack: string, layer: number, neuron?: number } | null} */ (null),
  // ---- how ----
  typing: false, // whether the box for the visitor's text is open
  playing: false, // whether the text is being played
  dark: false, // whether it is shown in dark colours
  projector: false, // larger type, for a projector
  tabWanted: "", // the tab that was last asked for, by its name in links
  isLaidOut: false, // whether Gradio has laid out the tabs
  isLost: false, // whether the connection to the server is lost
  isMoving: false, // to another address, in the same visit
  isLeading: false, // down to the open tab, where the text fills the window
});

// What Gradio's boxes and settings hold, by their names in a link.
export const controls = reactive({ ...declared.controls });

// Whether the shown run's network has a head that predicts tokens.
export const predicts = () => page.run !== null && (page.run.head ?? "tokens") === "tokens";

/** @type {{ [Name in keyof PageEvents]: Set<(detail: PageEvents[Name]) => void> }} */
const listeners = { run: new Set(), query: new Set(), painted: new Set(), escape: new Set() };

// Events: "run" and "query", for what must happen before anything is drawn; "painted", of a part for the first
// time, with its element; and "escape". Gives what ends it.
/** @type {<Name extends keyof PageEvents>(name: Name, listener: (detail: PageEvents[Name]) => void) => () => void} */
export const on = (name, listener) => {
  listeners[name].add(listener);
  return () => void listeners[name].delete(listener);
};
/** @type {<Name extends keyof PageEvents>(name: Name, ...detail: PageEvents[Name] extends undefined ? [] : [PageEvents[Name]]) => void} */
export const emit = (name, ...[detail]) => {
  for (const listener of listeners[name]) listener(/** @type {PageEvents[typeof name]} */ (detail));
};

// The requests that reproduce the newest runs and batches, by id, for a server that no longer keeps them. See
// server/kept/page_runs.py.
/** @type {Map<string, object>} */
const requests = new Map();
const MAX_REQUESTS = 128;
/** @type {(id: string, request: object) => void} */
const remember = (id, request) => {
  if (!id) return;
  requests.set(id, request);
  if (requests.size > MAX_REQUESTS) requests.delete([...requests.keys()][0]);
};
// The requests of a question's runs, {id: request}; null if none is known.
/** @type {(question: { run?: string, other?: string, batch?: string }) => Record<string, object | undefined> | null} */
export const requestsFor = ({ run = "", other = "", batch = "" }) => {
  const ids = [run, other, batch].filter((id) => requests.has(id));
  return ids.length ? Object.fromEntries(ids.map((id) => [id, requests.get(id)])) : null;
};

// Show a finished run, or a batch, of which the server has told the facts.
/** @param {RunFacts} facts */
export const setRun = (facts) => {
  const { model, example, request, opening = {} } = facts;
  /** @type {Run} */
  const run = { ...facts, opening: textsOf(opening) };
  remember(run.run, example ? { model } : request);
  together(() => {
    page.before = page.run && { run: page.run, query: page.query };
    page.run = run;
    page.query = /** @type {Query} */ (/** @type {unknown} */ (null));
    page.key = null;
  });
  emit("run", run);
  emit("query", page.query);
};
/** @param {BatchFacts} facts */
export const setBatch = (facts) => {
  const { batch, model, texts, example, languages, padding_hidden: isHidden } = facts;
  const lines = texts.join("\n");
  const link = { lines, ...(!isHidden && { bare: "true" }) };
  page.batch = { ...facts, link: example ? {} : link };
  remember(batch, { model, lines, bare: !isHidden, ...languages });
};

// Whether a link is being opened, and not another model.
export const isOpeningLink = () => page.opening !== null && !("tab" in page.opening);

/** @type {(a: Query | null | undefined, b: Query | null | undefined) => boolean} */
export const sameToken = (a, b) => a?.stack === b?.stack && a?.index === b?.index;
// Choose a token, {stack, index}: its position in the whole text that a stack reads; null for none. One that the
// shown run does not have, pressed in a picture of the run before, is not chosen.
/** @param {Query | null} query */
export const setQuery = (query) => {
  if (sameToken(page.query, query)) return;
  if (query && query.index >= labelsOf(query.stack).length) return;
  page.query = /** @type {Query} */ (query);
  page.key = null;
  emit("query", query);
};
// Select a key for the chosen query; swap them if only the other can attend.
/** @param {Query} key */
export const setKey = (key) => {
  const { query, run } = page;
  if (!query || sameToken(query, key)) return;
  const isEarlier =
    query.stack === key.stack && query.stack === "decoder" && query.index < key.index;
  const isSource = query.stack !== run.stack && key.stack === run.stack;
  if (isEarlier || isSource) setQuery(key);
  page.key = isEarlier || isSource ? query : key;
  page.asksKey = false;
};

/** @type {(keyof Head)[]} */
const HEAD = ["stack", "kind", "layer", "head"];
/** @type {(a: Head | null, b: Head | null) => boolean} */
export const sameHead = (a, b) => HEAD.every((part) => a?.[part] === b?.[part]);
// Choose a head, {stack, kind, layer, head}.
/** @param {Head} head */
export const setHead = (head) => {
  page.forward = null;
  if (!sameHead(page.head, head)) page.head = head;
};

// The chosen head, or the first of the run, with the number of layers of its kind of attention; null without
// a run.
/** @type {() => (Head & {n_layers: number}) | null} */
export const headShown = () => {
  const { run, head } = page;
  if (!run) return null;
  const kind = run.kinds.find((each) => each.stack === head?.stack && each.kind === head.kind);
  if (kind && head.layer < kind.n_layers && head.head < run.n_heads) return { ...kind, ...head };
  return { ...run.kinds[0], layer: 0, head: 0 };
};
const kindOfHead = computed(() => {
  const at = headShown();
  return page.run?.kinds.find(({ stack, kind }) => stack === at?.stack && kind === at.kind) ?? null;
});
// Its kind of attention: what reads no more of it is not drawn again for another head of that kind.
export const kindShown = () => kindOfHead.value;

// Whether a model was trained in this visit, by its name; see server/kept/trainings.py.
/** @type {(model: string) => boolean} */
export const isOwn = (model) => model.includes("~");

// ---- the page's status ----

/** @type {(status: { kind: string, text: string }) => void} */
export const showStatus = ({ kind, text }) =>
  untracked(() => (page.status = { kind, text, rev: page.status.rev + 1 }));
/** @type {(text: string) => void} */
export const showWaiting = (text) => showStatus({ kind: "busy", text });
// Returns what takes it back, unless something else has been said since.
/** @type {(text: string) => () => void} */
export const showProblem = (text) => {
  showStatus({ kind: "error", text });
  const { rev } = untracked(() => page.status);
  return () => {
    if (untracked(() => page.status).rev === rev) showStatus({ kind: "done", text: "" });
  };
};
// Append a problem to one that is shown already.
/** @type {(text: string) => void} */
export const addProblem = (text) => {
  const { kind, text: before } = untracked(() => page.status);
  showProblem(kind === "error" ? `${before} ${text}` : text);
};

// The labels of the tokens that a stack reads.
/** @param {string} stack */
export const labelsOf = (stack) =>
  stack === page.run.stack ? page.run.labels : page.run.source_labels;
// The first token of a stack's attention, by its place in the whole text.
/** @param {string} stack */
export const tracedFrom = (stack) => (stack === page.run.stack ? page.run.trace_start : 0);
// The chosen token as a row of a stack's trace; null without one there.
/** @param {string} stack */
export const chosenRow = (stack) => {
  const place = page.query?.stack === stack ? page.query.index - tracedFrom(stack) : -1;
  return place < 0 ? null : place;
};

// Resolves when the current changes are painted.
export const nextPaint = () =>
  new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));

// ---- what the page around the views does for them; its scripts (server/static) put that here as they start, a
// saved page has none of it ----

export const shell = {
  // Show a state, texts by field; facts: of its run, where this visit has shown it.
  /** @type {(state: Record<string, string>, facts?: Run) => void} */
  apply: () => {},
  // Continue the text in the box, or `text`. altered: the changes to the network.
  /** @type {(altered: { interventions?: import("./types").Change[], forced_tokens?: number[], max_new_tokens?: number }, text?: string) => void} */
  generate: () => {},
  // Open a tab by its name in links; gives its button.
  /** @type {(name: string) => HTMLElement | undefined} */
  openTab: () => undefined,
  // Set Gradio's controls, by their names in a link.
  /** @type {(changes: Record<string, unknown>) => void} */
  setControls: () => {},
};
