// The network in this browser beside a server: it answers what it can about a model once that is loaded, and the server
// the rest. Where it fails the server answers everything again.

import { answerFrom, ask, whenIdle } from "../../web/ask.js";
import { declared } from "../../web/declared.js";
import { speak } from "../../web/messages.js";
import { effect, untracked } from "../../web/preact.js";
import { loadPlotly } from "../../web/plots.js";
import { page } from "../../web/store.js";
import { answersOf, modelOf, otherOf } from "./answers.js";
import { Engine } from "./engine.js";

/** @import { PlainValues } from "../../web/types" */
/** @import { Change, Run } from "../../web/types" */

const TRIES = 2; // to load a model
const laterScripts = "later"; // of the import map

/** @type {Record<string, string>} addresses, by what the engine calls the files */
const addresses = {};
/** @type {(name: string) => string} */
const address = (name) => new URL(addresses[name] ?? name, document.baseURI).href;
export const engine = new Engine({ address, source: address }, {});
/** @type {string[]} texts of examples */
const offered = [];
/** @type {Map<string, number>} by model */
const tries = new Map();

// Load a model, unless its weights cannot be had: then the server goes on answering.
/** @type {(model: string) => Promise<void>} */
const load = async (model) => {
  tries.set(model, (tries.get(model) ?? 0) + 1);
  const {
    kernel,
    worker,
    words,
    offered: texts,
    batches,
    ...rest
  } = await ask("engine", { model });
  Object.assign(addresses, { "kernel.wasm": kernel, [engine.worker]: worker });
  delete rest.page.controls.model; // a visitor may have trained others meanwhile
  speak(words); // and so does the worker
  offered.push(...texts, ...batches);
  engine.models[model] = rest;
  await engine.load(model);
  // What else the page may ask a server for that may be gone by then.
  await import(laterScripts);
  whenIdle(() => void loadPlotly().catch(() => {}));
};

/** @type {(model: string) => boolean} */
const isReady = (model) => untracked(() => page.inBrowser.includes(model));
// Whether a change to a network is one that the page makes: links may ask the server for others.
/** @type {(change: Change, run: Pick<Run, "kinds" | "n_heads">, breaks: string[]) => boolean} */
const isUsual = (change, { kinds, n_heads: nHeads }, breaks) => {
  const { type, stack, kind = "self", layer, heads, part } = change;
  if (type === "break") return breaks.includes(change.what ?? "");
  const isIndex = (/** @type {number} */ at, /** @type {number} */ end) =>
    Number.isInteger(at) && at >= 0 && at < end;
  const isThere = kinds.some(
    (each) => each.stack === stack && each.kind === kind && isIndex(layer ?? 0, each.n_layers),
  );
  const isKnown =
    ["mask", "patch"].includes(type) || (type === "ablate" && !part && Boolean(heads?.length));
  const each = heads ?? [];
  return isThere && isKnown && each.every((head) => isIndex(head, nHeads));
};
/** @type {(name: string, data: PlainValues) => boolean} */
const isCovered = (name, data) => {
  if (name === "stop") return engine.isWriting;
  if (name === "examples") return isReady(data.model ?? declared.controls.model);
  if (name === "broken" && data.measure) return false;
  const model = modelOf(data) ?? "";
  const other = otherOf(data);
  if (!isReady(model) || (other && !isReady(other.model))) return false;
  const { page: example, breaks = [] } = engine.models[model];
  return (data.interventions ?? []).every((/** @type {Change} */ change) =>
    isUsual(change, example.run, breaks),
  );
};

// Begin, once the page has opened.
export const start = () => {
  const answers = answersOf(engine, declared.controls.model, offered);
  answerFrom(answers, isCovered);
  effect(() => {
    const { model } = page.run;
    const isWanted = declared.in_browser.includes(model) && (tries.get(model) ?? 0) < TRIES;
    if (isWanted && !page.inBrowser.includes(model) && !engine.isOver)
      whenIdle(() => void load(model).catch(() => {}));
  });
};
