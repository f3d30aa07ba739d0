// The page's own scripts without a browser: an address with a history, and a server that answers presses.
import { dataElements, place } from "../kit/dom.js";
import "./schema.js";

// A clock that is quicker: what the page waits for is told by what it shows, not by how long it takes.
const HURRY = 20;
const { setTimeout: later } = globalThis;
globalThis.setTimeout = /** @type {any} */ (
  (/** @type {any} */ work, /** @type {number} */ ms = 0, /** @type {any[]} */ ...values) =>
    later(work, ms / HURRY, ...values)
);

// ---- what Python writes into the page beside the fields ----

const SETTINGS = {
  ...{ method: "greedy", temperature: 0, top_k: 0, top_p: 1, beams: 4, length_penalty: 1 },
  ...{ max_new_tokens: 20, seed: 0, source_language: null, target_language: null, read_as: null },
};
const schema = JSON.parse(dataElements["view-schema"].textContent);
const written = {
  ...{ cards: [], lessons: [], controls: { model: "tiny", text: "the fox", lines: "a\nb c" } },
};
// Before the page's modules are imported, which read it as they start.
/** @type {(more?: object) => void} */
export const write = (more = {}) => {
  const controls = { ...written.controls, ...SETTINGS };
  const whole = { ...schema, ...written, controls, ...more };
  dataElements["view-schema"].textContent = JSON.stringify(whole);
};
write();

// ---- the address ----

/** @type {{ address: string, state: any }[]} */
let entries = [{ address: "/", state: null }];
let at = 0;
/** @type {any} */
const location = globalThis.location;
const follow = () => {
  const { pathname, search, hash } = new URL(entries[at].address, "http://127.0.0.1/");
  Object.assign(location, { pathname, search, hash, origin: "http://127.0.0.1" });
};
/** @type {(address: string) => string} */
const whole = (address) =>
  new URL(address, `http://127.0.0.1${entries[at].address}`).href.slice(16);
Object.assign(globalThis, {
  history: {
    state: null,
    pushState: (
      /** @type {any} */ state,
      /** @type {string} */ _,
      /** @type {string} */ address,
    ) => {
      entries = [...entries.slice(0, at + 1), { address: whole(address), state }];
      at += 1;
      follow();
    },
    replaceState: (
      /** @type {any} */ state,
      /** @type {string} */ _,
      /** @type {string} */ address,
    ) => {
      entries[at] = { address: whole(address), state };
      follow();
    },
  },
  parent: globalThis,
});
follow();
export const entry = () => at;
// As the visitor does: Back and Forward, or another link typed in.
/** @type {(by: number) => void} */
export const go = (by) => {
  at = Math.min(entries.length - 1, Math.max(0, at + by));
  follow();
  /** @type {any} */ (globalThis).onhashchange?.();
};
/** @type {(hash: string) => void} */
export const type = (hash) => {
  entries = [
    ...entries.slice(0, at + 1),
    { address: `${location.pathname}${location.search}#${hash}`, state: null },
  ];
  go(1);
};
/** @type {(address: string) => void} */
export const openAt = (address) => {
  [entries, at] = [[{ address, state: null }], 0];
  follow();
};

// ---- the server: models by name, each with its example ----

const KINDS = ["encoder", "decoder"].map((stack) => ({ stack, kind: "self", n_layers: 2 }));
let count = 0;
/** @type {(request: Record<string, any>, more?: object) => any} the facts of a run of three tokens and three more */
export const runOf = (request, more = {}) => {
  count += 1;
  const { model, text, interventions = [], forced_tokens = [] } = request;
  return {
    ...{
      run: `r${count}`,
      model,
      text,
      request,
      stack: "decoder",
      head: "tokens",
      how: "",
      seed: null,
    },
    ...{ labels: ["␣the", "␣fox", "␣sat", "␣on", "␣the", "␣mat"], ids: [1, 2, 3, 4, 1, 5] },
    ...{ source_labels: ["un", "deux", "trois"], special: [], source_special: [], hidden: [] },
    ...{ n_prompt: 3, trace_start: 0, last_read: 4, n_heads: 3, windows: [null], kinds: KINDS },
    ...{
      stacks: ["encoder", "decoder"],
      probabilities: [0.5, 0.25, 0.125],
      hypotheses: [],
      d_model: 8,
    },
    ...{ interventions: interventions.map((/** @type {any} */ is) => ({ is, says: is.type })) },
    ...{
      forced_tokens,
      opening: {},
      stopped: "",
      state: "done",
      example: false,
      task: "",
      ...more,
    },
  };
};
/** @type {(request: Record<string, any>, more?: object) => any} */
export const batchOf = ({ model, lines, bare, ...languages }, more = {}) => {
  count += 1;
  const texts = lines.split("\n");
  return {
    batch: `b${count}`,
    model,
    texts,
    padding_hidden: !bare,
    languages,
    example: false,
    ...more,
  };
};
/** @type {Record<string, any>} what is special of a model's example page */
export const models = { tiny: {}, other: {} };
/** @type {(name: string) => any} */
const exampleOf = (name) => {
  const {
    text = `example of ${name}`,
    lines = `${name}\ntwo`,
    first: usual,
    ...more
  } = models[name];
  const first = { model: name, text, lines, ...SETTINGS, ...usual };
  return {
    ...{ first, temperature: 0.75, lengths: [20, 30], own: {}, problems: [] },
    ...{
      controls: {
        method: {
          __type__: "update",
          choices: [
            ["Greedy", "greedy"],
            ["Sample", "sample"],
          ],
        },
      },
    },
    run: runOf({ model: name, text, ...SETTINGS, ...usual }, { example: true }),
    batch: batchOf({ model: name, lines, bare: false }, { example: true }),
    ...more,
  };
};
/** @type {{ name: string, data: any }[]} what was asked for */
export const presses = [];
// What holds the server's answers back, by the names of presses, and what it refuses: a sentence, or none.
/** @type {Record<string, Promise<void> | undefined>} */
export const holds = {};
/** @type {Record<string, (data: any) => string | undefined>} */
export const refusals = {};
/** @type {(name: string, line: (data: any) => any) => (data: any) => AsyncGenerator<any>} */
const answering = (name, line) =>
  async function* answer(data) {
    presses.push({ name, data });
    await holds[name];
    const text = refusals[name]?.(data);
    if (text) yield { status: { kind: "error", text } };
    else yield line(data);
  };
export const answers = {
  examples: answering("examples", ({ model, typed }) => {
    const page = exampleOf(model in models ? model : "tiny");
    const offered = Object.keys(models).flatMap((name) => [
      exampleOf(name).first.text,
      exampleOf(name).first.lines,
    ]);
    const own = Object.fromEntries(
      Object.entries(typed).filter(([, text]) => !offered.includes(text)),
    );
    return {
      example: { ...page, own, problems: model === null || model in models ? [] : [`no ${model}`] },
    };
  }),
  runs: answering("runs", (data) => ({
    tokens: runOf(data),
    status: { kind: "done", text: "It is written." },
  })),
  batches: answering("batches", (data) => ({
    batch: batchOf(data),
    status: { kind: "done", text: "It is read." },
  })),
};

// An element of the page that its scripts look for.
/** @type {(id: string, look?: string, tag?: string) => any} */
export const element = (id, look = "", tag = "div") => {
  const made = globalThis.document.createElement(tag);
  if (id) made.setAttribute("id", id);
  if (look) made.setAttribute("class", look);
  place().append(made);
  return made;
};
