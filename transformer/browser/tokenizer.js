// Byte-level BPE, as transformer/tokenizer: ids for every string, which decode to exactly that string.

import { say } from "../web/messages.js";

// GPT-2's pattern. \s of JavaScript is not Unicode's white space, which the tokenizers library uses.
const SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const WORDS = new RegExp(
  `'(?:[stmd]|re|ve|ll)| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE}\\p{L}\\p{N}]+|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]+`,
  "gu",
);
/** @type {Record<string, string>} */
const VISIBLE = { " ": "␣", "\n": "⏎", "\t": "⇥" };
// Controls, separators, and letters, marks and symbols that draw nothing.
const UNSEEN = /\p{C}|\p{Z}|\u034f|\u115f|\u1160|\u17b4|\u17b5|\u2800|\u3164|\uffa0|\ufffd/u;
const HIDDEN = "[MASK]"; // as people type it
const CACHED_WORDS = 10_000;

/** @typedef {{id: number, content: string}} AddedToken */
/** @typedef {{model: {vocab: Record<string, number>, merges: (string[] | string)[]}, added_tokens: AddedToken[]}} Content */

// The characters that tokenizer.json writes bytes as: printable ones as themselves, the rest from U+0100 on.
const byteOfCharacter = () => {
  const isPlain = (/** @type {number} */ byte) =>
    (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  const all = Array.from({ length: 256 }, (_, byte) => byte);
  const others = all.filter((byte) => !isPlain(byte));
  return new Map([
    ...all.filter(isPlain).map((byte) => /** @type {const} */ ([String.fromCharCode(byte), byte])),
    ...others.map((byte, at) => /** @type {const} */ ([String.fromCharCode(0x100 + at), byte])),
  ]);
};

export class Tokenizer {
  /** @param {Content} content of tokenizer.json */
  constructor({ model: { vocab, merges }, added_tokens: added }) {
    const bytes = byteOfCharacter();
    /** @type {Map<number, string>} names of special tokens, which decode to no text */
    this.special = new Map(added.map(({ id, content }) => [id, content]));
    const ids = new Map([
      ...Object.entries(vocab),
      ...added.map(({ id, content }) => /** @type {const} */ ([content, id])),
    ]);
    const idOf = (/** @type {string} */ name) => /** @type {number} */ (ids.get(name));
    this.padding = idOf("<|padding|>");
    this.start = idOf("<|start|>");
    this.end = idOf("<|endoftext|>");
    /** @type {number | null} */
    this.mask = ids.get("<|mask|>") ?? null;
    /** @type {number[][]} of each id */
    this.bytes = [];
    for (const [name, id] of ids)
      this.bytes[id] = this.special.has(id)
        ? []
        : [...name].map((character) => bytes.get(character) ?? 0);
    /** @type {number[]} */
    this.idOfByte = [];
    this.bytes.forEach((some, id) => some.length === 1 && (this.idOfByte[some[0]] = id));
    /** @type {Map<number, {rank: number, id: number}>} what a pair of ids becomes */
    this.merges = new Map();
    merges.forEach((pair, rank) => {
      const [a, b] = typeof pair === "string" ? pair.split(" ") : pair;
      this.merges.set(this._pair(vocab[a], vocab[b]), { rank, id: vocab[a + b] });
    });
    /** @type {Map<string, number[]>} ids of words met before */
    this.words = new Map();
  }

  // The ids that end a text.
  get ends() {
    return new Set([this.end]);
  }

  // Ids that a target of an encoder-decoder begins with.
  get targetStart() {
    return [this.start];
  }

  /** A text's ids as a decoder continues it. @param {string} text */
  encodeText(text) {
    return [this.end, ...this.encode(text)];
  }

  /** A text's ids as the encoder of an encoder-decoder reads them. @param {string} text */
  encodeSource(text) {
    return [...this.encode(text), this.end];
  }

  get size() {
    return this.bytes.length;
  }

  /** @param {number} a @param {number} b */
  _pair(a, b) {
    return a * this.bytes.length + b;
  }

  /** Raises Error, a sentence, for half of a surrogate pair. @param {string} text @returns {number[]} */
  encode(text) {
    if (!text.isWellFormed())
      throw new Error(say("the text holds half of a surrogate pair, which is not valid Unicode"));
    return (text.match(WORDS) ?? []).flatMap((word) => {
      const cached = this.words.get(word);
      if (cached) return cached;
      if (this.words.size > CACHED_WORDS) this.words.clear();
      const ids = this._merged(word);
      this.words.set(word, ids);
      return ids;
    });
  }

  /** A text's ids for an encoder, with the mask token for each [MASK]; a space before it belongs to it. @param {string} text */
  encodeHidden(text) {
    const { mask } = this;
    if (mask === null) return [this.end, ...this.encode(text)];
    const pieces = text.replaceAll(this.label(mask), HIDDEN).split(HIDDEN);
    const last = pieces.pop() ?? "";
    const before = pieces.flatMap((piece) => [...this.encode(piece.replace(/ $/, "")), mask]);
    return [this.end, ...before, ...this.encode(last)];
  }

  /** @param {string} word */
  _merged(word) {
    const ids = Array.from(new TextEncoder().encode(word), (byte) => this.idOfByte[byte]);
    for (;;) {
      /** @type {{rank: number, id: number} | null} */
      let best = null;
      let place = -1;
      for (let at = 0; at + 1 < ids.length; at += 1) {
        const merge = this.merges.get(this._pair(ids[at], ids[at + 1]));
        if (merge && (!best || merge.rank < best.rank)) [best, place] = [merge, at];
      }
      if (!best) return ids;
      ids.splice(place, 2, best.id);
    }
  }

  /** The UTF-8 bytes of ids; none for special tokens. @param {Iterable<number>} ids */
  toBytes(ids) {
    return Uint8Array.from([...ids].flatMap((id) => this.bytes[id]));
  }

  /** Bytes that end in the middle of a character become U+FFFD. @param {Iterable<number>} ids */
  decode(ids) {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.toBytes(ids));
  }

  /** `decode` without the bytes of an incomplete character at the end. @param {Iterable<number>} ids */
  decodeWhole(ids) {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.toBytes(ids), {
      stream: true,
    });
  }

  /**
   * A token for display, as tokenizer/labels.py: spaces and controls visible, parts of characters as bytes.
   * @param {number} id
   */
  label(id) {
    const name = this.special.get(id);
    if (name !== undefined) return name;
    /** @type {string[]} */
    const parts = [];
    /** @type {string[]} */
    const broken = [];
    const flush = () => {
      if (broken.length) parts.push(`‹${broken.join(" ")}›`);
      broken.length = 0;
    };
    for (let bytes = this.bytes[id]; bytes.length;) {
      const [character, size] = firstCharacter(bytes);
      if (character === null) broken.push(bytes[0].toString(16).toUpperCase().padStart(2, "0"));
      else {
        flush();
        parts.push(visible(character, !parts.length));
      }
      bytes = bytes.slice(size);
    }
    flush();
    return parts.join("");
  }
}

/** The character that bytes begin with, and how many are its; null for no character. @type {(bytes: number[]) => [string | null, number]} */
const firstCharacter = (bytes) => {
  const size = bytes[0] < 0x80 ? 1 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
  try {
    const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return [strict.decode(Uint8Array.from(bytes.slice(0, size))), size];
  } catch {
    return [null, 1];
  }
};

/** @type {(character: string, isFirst: boolean) => string} */
const visible = (character, isFirst) => {
  const isHidden = UNSEEN.test(character) || (isFirst && /\p{M}/u.test(character));
  const code = String(character.codePointAt(0)?.toString(16)).toUpperCase().padStart(4, "0");
  return VISIBLE[character] ?? (isHidden ? `‹U+${code}›` : character);
};
