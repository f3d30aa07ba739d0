// The texts that transformer/views/export/one_file.py makes of files, for a page that is one file: gzip, 13 bits in two of 91 characters.

const CODES = new Uint8Array(128);
Array.from({ length: 94 }, (_, at) => at + 33)
  .filter((code) => !`<&"`.includes(String.fromCharCode(code)))
  .forEach((code, at) => (CODES[code] = at));

// The bytes of a text of so many characters, which comes in parts.
/** @type {(size: number) => (characters: Uint8Array) => Uint8Array<ArrayBuffer>} */
export const decoderOf = (size) => {
  let left = Math.floor((13 * (size - 1)) / 16); // bytes that are still to come
  let [bits, count, first, isBegun] = [0, 0, -1, false];
  return (characters) => {
    const bytes = new Uint8Array(Math.min(left, Math.ceil((13 * characters.length) / 16) + 1));
    let to = 0;
    let at = 0;
    if (!isBegun) {
      left -= Number(String.fromCharCode(characters[at++])); // first, how many are too many
      isBegun = true;
    }
    for (; at < characters.length; at += 1) {
      const code = CODES[characters[at]];
      if (first < 0) first = 91 * code;
      else {
        bits = (bits << 13) | (first + code);
        first = -1;
        for (count += 13; count >= 8; count -= 8) bytes[to++] = bits >> (count - 8);
        bits &= (1 << count) - 1;
      }
    }
    to = Math.min(to, left);
    left -= to;
    return bytes.subarray(0, to);
  };
};

/** @type {(stream: ReadableStream<Uint8Array<ArrayBuffer>>) => ReadableStream<Uint8Array<ArrayBuffer>>} */
const inflated = (stream) => stream.pipeThrough(new DecompressionStream("gzip"));
/** @type {(of: BodyInit) => Response} */
const inflatedAnswer = (of) =>
  new Response(inflated(/** @type {ReadableStream} */ (new Response(of).body)));
/** @type {(bytes: BodyInit) => Promise<ArrayBuffer>} */
export const unzipped = (bytes) => inflatedAnswer(bytes).arrayBuffer();
/** @type {(bytes: BodyInit) => Promise<string>} */
export const unzippedText = (bytes) => inflatedAnswer(bytes).text();
/** @type {(text: string) => Uint8Array<ArrayBuffer>} */
export const bytesOf = (text) => decoderOf(text.length)(new TextEncoder().encode(text));

// The same of a text that is a blob or bytes, part by part.
/** @type {(text: Blob | ArrayBuffer) => ReadableStream<Uint8Array<ArrayBuffer>>} */
export const unpackedStream = (text) => {
  const decode = decoderOf(text instanceof Blob ? text.size : text.byteLength);
  /** @type {TransformStream<Uint8Array, Uint8Array<ArrayBuffer>>} */
  const decoding = new TransformStream({
    transform: (part, control) => control.enqueue(decode(part)),
  });
  return inflated(/** @type {ReadableStream} */ (new Response(text).body).pipeThrough(decoding));
};
