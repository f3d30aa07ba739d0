// The engine in a Web Worker, so that the page never waits.

import { known, speak } from "../web/messages.js";

/** @import { PlainValues } from "../web/types" */
/** @import { Handlers, Caller, CallMessage, ReplyMessage, WorkerPort } from "./types.d.ts" */

const MUCH = 2 ** 26; // bytes

/**
 * Have the browser collect what is no longer used: it does once so much was asked for, which takes no memory until something
 * is written there.
 */
export const collect = () => {
  try {
    new ArrayBuffer(MUCH);
  } catch {
    // there is no room for so much
  }
};

/**
 * A value whose arrays are not views of larger memory, which would all be sent.
 * @param {unknown} value
 * @returns {unknown}
 */
const compact = (value) => {
  if (ArrayBuffer.isView(value)) {
    const array = /** @type {Float32Array} */ (value); // or another typed array
    return array.byteLength < array.buffer.byteLength ? array.slice() : array;
  }
  if (Array.isArray(value)) return value.map(compact);
  if (value === null || typeof value !== "object" || value.constructor !== Object) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, compact(part)]));
};

/**
 * Answer calls that arrive in a worker.
 * @param {Handlers} handlers by name
 * @param {WorkerPort} [scope] the worker's own
 */
export const serve = (
  handlers,
  scope = /** @type {WorkerPort} */ (/** @type {unknown} */ (globalThis)),
) => {
  /** @type {Map<number, AbortController>} */
  const running = new Map();
  const reply = (/** @type {ReplyMessage} */ message) =>
    scope.postMessage(/** @type {ReplyMessage} */ (compact(message)));
  scope.onmessage = async ({ data: message }) => {
    if (message.type === "speak") return speak(message.known);
    if (message.type === "cancel") return running.get(message.id)?.abort();
    const { id, name, data } = message;
    const stop = new AbortController();
    running.set(id, stop);
    try {
      const progress = (/** @type {unknown} */ value) => reply({ type: "progress", id, value });
      const value = await handlers[name](/** @type {PlainValues} */ (data), {
        progress,
        signal: stop.signal,
      });
      reply({ type: "result", id, value });
    } catch (error) {
      const isFault = error.constructor !== Error; // a plain Error is a sentence
      reply({ type: "error", id, message: error.message, isFault });
    }
    running.delete(id);
  };
  reply({ type: "ready" });
};

/**
 * Calls that a worker answers once it is ready. Rejects if it cannot start. Errors have isFault: whether the
 * worker has failed; else they are a sentence.
 * @param {Worker} worker
 * @returns {Promise<Caller>}
 */
export const toWorker = (worker) =>
  new Promise((resolve, reject) => {
    /** @type {Map<number, {resolve: (value: unknown) => void, reject: (error: Error) => void, progress: (value: unknown) => void}>} */
    const waiting = new Map();
    let count = 0;
    const post = (/** @type {CallMessage} */ message) => worker.postMessage(message);
    const fail = (/** @type {string} */ message) => {
      const error = Object.assign(new Error(message), { isFault: true });
      reject(error);
      for (const call of waiting.values()) call.reject(error);
      waiting.clear();
    };
    /** @type {Caller} */
    const caller = {
      call: (name, data, { progress = () => {}, signal } = {}) =>
        new Promise((done, failed) => {
          count += 1;
          const id = count;
          waiting.set(id, { resolve: done, reject: failed, progress });
          post({ type: "call", id, name, data });
          signal?.addEventListener("abort", () => post({ type: "cancel", id }), { once: true });
          if (signal?.aborted) post({ type: "cancel", id });
        }),
      end: () => {
        worker.terminate();
        fail("ended");
      },
    };
    worker.onerror = ({ message }) => fail(message ?? "");
    worker.onmessage = ({ data: message }) => {
      const reply = /** @type {ReplyMessage} */ (message);
      if (reply.type === "ready") {
        post({ type: "speak", known });
        return resolve(caller);
      }
      const call = waiting.get(reply.id);
      if (reply.type === "progress") return call?.progress(reply.value);
      waiting.delete(reply.id);
      if (reply.type === "result") call?.resolve(reply.value);
      else call?.reject(Object.assign(new Error(reply.message), { isFault: reply.isFault }));
    };
  });
