// The files of a page without a server, or beside one.

import { say } from "../../web/messages.js";
import { unpackedStream } from "./packed.js";

/** @typedef {string | Blob} FileSource of a file: its address, or its packed text */
/** @typedef {FileSource | ArrayBuffer} FileContent the same, or the bytes of the text */

const lost = () => new Error(say("A part of the page could not be loaded; reload the page."));

/** @type {(source: FileContent) => Promise<ReadableStream<Uint8Array<ArrayBuffer>>>} */
const streamOf = async (source) => {
  if (typeof source !== "string") return unpackedStream(source);
  const { ok, body } = await fetch(source, { priority: "low" });
  if (ok && body) return body;
  throw lost();
};
// A file in parts, as they come. Raises Error, a sentence.
/** @type {(source: FileContent) => AsyncGenerator<Uint8Array<ArrayBuffer>>} */
export async function* partsOf(source) {
  try {
    const reader = (await streamOf(source)).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch {
    throw lost();
  }
}
// A file, whole.
/** @type {(source: FileContent) => Promise<ArrayBuffer>} */
export const wholeOf = async (source) => {
  try {
    return await new Response(await streamOf(source)).arrayBuffer();
  } catch {
    throw lost();
  }
};
