// The texts that transformer/views/export/one_file.py makes of files, for a page that is one file: gzip, 13 bits in two of 91 characters.

const CODES = new Uint8Array(128);
Array.from({ length: 94 }, (_, at) => at + 33)
  .filter((code) => !`<&"`.includes(String.fromCharCode(code)))
  .forEach((code, at) => (CODES[code] = at));

/** @type {(text: string) => Uint8Array<ArrayBuffer>} */
const bytesOf = (text) => {
  const bytes = new Uint8Array(Math.floor((13 * (text.length - 1)) / 16));
  let bits = 0;
  let count = 0;
  let to = 0;
  for (let at = 1; at < text.length; at += 2) {
    bits = (bits << 13) | (91 * CODES[text.charCodeAt(at)] + CODES[text.charCodeAt(at + 1)]);
    for (count += 13; count >= 8; count -= 8) bytes[to++] = bits >> (count - 8);
    bits &= (1 << count) - 1;
  }
  return bytes.subarray(0, bytes.length - Number(text[0])); // first, how many are too many
};

/** @type {(bytes: BufferSource) => Promise<ArrayBuffer>} */
export const unzipped = (bytes) => {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
};
/** @type {(text: string) => Promise<ArrayBuffer>} */
export const unpacked = (text) => unzipped(bytesOf(text));

const PART = 2 ** 20; // characters
// A packed text in parts, which are packed texts too.
/** @type {(text: string) => Generator<string>} */
export function* partsOf(text) {
  for (let at = 1; at < text.length; at += PART) {
    const tooMany = at + PART < text.length ? "0" : text[0];
    yield tooMany + text.slice(at, at + PART);
  }
}
/** @type {(parts: AsyncIterable<string>) => AsyncGenerator<Uint8Array>} */
export async function* unpackedParts(parts) {
  const { readable, writable } = new DecompressionStream("gzip");
  const writer = writable.getWriter();
  const write = async () => {
    for await (const part of parts) await writer.write(bytesOf(part));
    await writer.close();
  };
  const written = write();
  written.catch((error) => writer.abort(error)); // then there is no more to read
  const reader = readable.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
