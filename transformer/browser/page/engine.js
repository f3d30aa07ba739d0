// The network of this browser: a worker that loads models and answers questions about their runs.

import { signal } from "../../web/preact.js";
import { say } from "../../web/messages.js";
import { page as state, showWaiting } from "../../web/store.js";
import { collect, toWorker } from "../worker.js";

/** @typedef {import("../../web/types").PlainValues} Data */
/** @typedef {import("./fetched.js").FileSource} FileSource */
/**
 * @typedef {object} Door
 * @property {(name: string) => string} address of a script
 * @property {(name: string) => FileSource | Promise<FileSource>} source of another file
 */
// Bytes of weights that are loading, and all of them; null: nothing is loading.
export const loading = signal(/** @type {{ got: number, all: number } | null} */ (null));

const WORKER = "browser/page_worker.js";
const GIGABYTE = 2 ** 30;
const SHARE = 8; // of a device's memory that a network's weights may take

export class Engine {
  /**
   * models: by name, the sizes of their files. facts: of the stored run and batch of each.
   * @param {Door} door
   * @param {Record<string, { files: Record<string, number>, page: Data, breaks?: string[] }>} models
   */
  constructor(door, models) {
    this.door = door;
    this.models = models;
    /** @type {Map<string, Promise<void>>} */
    this.loaded = new Map();
    /** @type {Promise<import("../types.d.ts").Caller> | null} */
    this.caller = null;
    this.ends = new AbortController();
    this.worker = WORKER;
    this.isWriting = false;
    this.isOver = false; // a fault has ended it
  }

  // Raises Error: a sentence, or with isFault where the engine has failed, which ends it.
  /** @param {string} name @param {Data} data @param {Partial<import("../types.d.ts").CallContext>} [more] */
  async _call(name, data, more = {}) {
    try {
      this.caller ??= toWorker(new Worker(this.door.address(WORKER)));
      return await (await this.caller).call(name, data, more);
    } catch (error) {
      if (error.isFault) this._end();
      throw error;
    }
  }

  async _end() {
    this.isOver = true;
    state.inBrowser = [];
    const caller = await this.caller?.catch(() => null);
    caller?.end();
  }

  // Load a model's weights, once. Raises Error, a sentence, where memory lacks.
  /** @param {string} model */
  load(model) {
    const coming = this.loaded.get(model) ?? this._load(model);
    this.loaded.set(model, coming);
    coming.catch(() => this.loaded.delete(model));
    return coming;
  }

  /** @param {string} model */
  async _load(model) {
    const { files, page } = this.models[model];
    const all = Object.values(files).reduce((sum, size) => sum + size, 0);
    const { deviceMemory: memory = 0 } = /** @type {{ deviceMemory?: number }} */ (navigator); // GB, at most 8; not in every browser
    if (memory && all > (memory * GIGABYTE) / SHARE)
      throw new Error(
        say(
          "This network has {size} MB of weights, too many for a device with {memory} GB of memory.",
          {
            size: Math.round(all / 1e6),
            memory,
          },
        ),
      );
    const progress = (/** @type {unknown} */ got) => (loading.value = { got: Number(got), all });
    progress(0);
    const names = [...Object.keys(files), "kernel.wasm"];
    const sources = await Promise.all(names.map((name) => this.door.source(name)));
    const load = (/** @type {import("./fetched.js").FileContent[]} */ contents) => {
      const sized = Object.entries(files).map(([name, size], at) => ({
        ...{ name, size, source: contents[at] },
      }));
      const { run: facts, batch } = page;
      const data = { model, facts, batch, files: sized, kernel: contents[contents.length - 1] };
      return this._call("load", data, { progress });
    };
    try {
      await load(sources).catch(async (error) => {
        if (error.isFault || sources.some((source) => typeof source === "string")) throw error;
        // WebKit lets no worker read a blob of a page that was opened from a file.
        return load(await Promise.all(sources.map((source) => new Response(source).arrayBuffer())));
      });
      state.inBrowser = [...state.inBrowser, model];
    } finally {
      loading.value = null;
      collect(); // the texts of a page that is one file
    }
  }

  // The answer to a question about a model's run. Raises Error, a sentence.
  /** @param {string} model @param {string} name @param {Data} data */
  async ask(model, name, data) {
    await this.load(model);
    return this._call(name, data);
  }

  // The lines of a press, as they come; none after `ends`, when another press has its place. What the engine refuses is a line, as the server's.
  /** @param {string} model @param {string} name @param {Data} data @param {AbortSignal} [ends] */
  async *lines(model, name, data, ends) {
    if (!this.loaded.has(model))
      showWaiting(say("The network is being loaded into this browser …"));
    await this.load(model);
    /** @type {unknown[]} */
    const lines = [];
    let wake = () => {};
    let isOver = false;
    const line = (/** @type {unknown} */ next) => (lines.push(next), wake());
    this.ends = new AbortController();
    this.isWriting = true;
    const signalOfBoth = AbortSignal.any([this.ends.signal, ...(ends ? [ends] : [])]);
    const over = this._call(name, data, { progress: line, signal: signalOfBoth })
      .catch((error) => {
        if (error.isFault) throw error;
        line({ status: { kind: "error", text: error.message }, running: false });
      })
      .finally(() => {
        isOver = true;
        this.isWriting = false;
        wake();
      });
    over.catch(() => {}); // it is awaited below, if the lines are read to their end
    for (;;) {
      while (lines.length && !ends?.aborted) yield lines.shift();
      if (isOver) break;
      await new Promise((done) => (wake = () => done(undefined)));
    }
    await over;
  }

  // End what is being written; what there is becomes the run.
  stop() {
    this.ends.abort();
  }
}
