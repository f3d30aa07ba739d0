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
const HIDDEN = "[MASK]";
const TYPED_MASK = /[[［【] *mask *[\]］】]/giu; // HIDDEN as people type it
const CACHED_WORDS = 10_000;

/** @import { SpecialIds, TokenizerContent } from "./types.d.ts" */

/**
 * Why a tokenizer is not read, in a sentence; null for a byte-level BPE that splits words as GPT-2's does.
 * @param {TokenizerContent} content
 */
export const tokenizerRefusal = ({
  model,
  normalizer,
  pre_tokenizer: splits,
  post_processor: frame,
  added_tokens: added,
}) => {
  const strips = added.some(
    (token) => !token.special && (token.lstrip || token.rstrip || token.single_word),
  );
  // transformers writes one that adds nothing.
  const isEmpty =
    frame?.type === "TemplateProcessing" && !Object.keys(frame.special_tokens ?? {}).length;
  const odd = {
    [`model ${model.type}`]: model.type !== "BPE",
    "byte fallback": Boolean(model.byte_fallback || model.ignore_merges || model.dropout),
    [`normalizer ${normalizer?.type}`]: normalizer && normalizer.type !== "NFC",
    [`pre_tokenizer ${splits?.type}`]:
      splits?.type !== "ByteLevel" || splits.add_prefix_space || splits.use_regex === false,
    [`post_processor ${frame?.type}`]: frame && frame.type !== "ByteLevel" && !isEmpty,
    "added tokens": strips,
  };
  const [reason] = Object.entries(odd).find(([, isOdd]) => isOdd) ?? [];
  return reason
    ? say("The browser does not read this model's tokenizer: {reason}.", { reason })
    : null;
};

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
  /**
   * Raises Error, a sentence, for one that is not read. settings: of another project's tokenizer, from a
   * checkpoint's metadata. size: ids of the network, some of which may be unused.
   * @param {TokenizerContent} content of tokenizer.json
   * @param {SpecialIds | null} [settings]
   * @param {number} [size]
   */
  constructor(content, settings = null, size = 0) {
    const sentence = tokenizerRefusal(content);
    if (sentence) throw new Error(sentence);
    const { model, normalizer, added_tokens: added } = content;
    const { vocab, merges } = model;
    const ids = new Map(Object.entries(vocab));
    for (const { id, content: name } of added) ids.set(name, id);
    const idOf = (/** @type {string} */ name) => /** @type {number} */ (ids.get(name));
    const own = {
      start: idOf("<|start|>"),
      ends: [idOf("<|endoftext|>")],
      padding: idOf("<|padding|>"),
      mask: ids.get("<|mask|>") ?? null,
    };
    const { start, ends, padding, mask } = settings ?? own;
    this.isOwn = settings === null;
    this.composes = normalizer?.type === "NFC";
    this.start = start;
    /** @type {Set<number>} the ids that end a text */
    this.ends = new Set(ends);
    this.end = ends.length ? Math.min(...ends) : start;
    this.padding = padding ?? Math.min(...ends, this.end);
    this.mask = mask;
    const plain = added.filter(({ special, id }) => !special && id !== padding);
    this.added = new Map(
      settings ? plain.map(({ content: name, id }) => /** @type {const} */ ([name, id])) : [],
    );
    const names = [...this.added.keys()].sort((a, b) => b.length - a.length);
    this.addedWords = names.length ? new RegExp(`(${names.map(escaped).join("|")})`, "u") : null;
    const specials = new Set([
      ...(settings ? [start, ...ends, mask] : []),
      ...added.filter(({ id }) => !plain.some((token) => token.id === id)).map(({ id }) => id),
    ]);
    /** @type {Map<number, string>} names of special tokens, which decode to no text */
    this.special = new Map();
    const bytes = byteOfCharacter();
    /** @type {number[][]} of each id */
    this.bytes = Array.from({ length: size }, () => []);
    this.isUnused = new Set(this.bytes.keys());
    for (const [name, id] of ids) {
      this.isUnused.delete(id);
      if (specials.has(id)) this.special.set(id, name);
      const characters = [...name];
      const isByteLevel = characters.every((character) => bytes.has(character));
      const raw = isByteLevel
        ? characters.map((character) => bytes.get(character) ?? 0)
        : new TextEncoder().encode(name);
      this.bytes[id] = specials.has(id) ? [] : [...raw];
    }
    /** @type {number[]} */
    this.idOfByte = [];
    for (const [character, byte] of bytes) this.idOfByte[byte] = vocab[character];
    /** @type {Map<number, {rank: number, id: number}>} what a pair of ids becomes */
    this.merges = new Map();
    merges.forEach((pair, rank) => {
      const [a, b] = typeof pair === "string" ? pair.split(" ") : pair;
      this.merges.set(this._pair(vocab[a], vocab[b]), { rank, id: vocab[a + b] });
    });
    /** @type {Map<string, number[]>} ids of words met before */
    this.words = new Map();
  }

  // Ids that a target of an encoder-decoder begins with.
  get targetStart() {
    return [this.start];
  }

  /** A text's ids as a decoder continues it. @param {string} text */
  encodeText(text) {
    const ids = this.encode(text);
    if (this.isOwn) return [this.end, ...ids];
    return ids.length ? ids : [this.start];
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
    const parts = (this.composes ? text.normalize("NFC") : text).split(this.addedWords ?? /(?!)/u);
    return parts.flatMap((part, at) =>
      at % 2 ? [this.added.get(part) ?? 0] : this._encodePlain(part),
    );
  }

  /** @param {string} text @returns {number[]} */
  _encodePlain(text) {
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
    const pieces = text.replaceAll(this.label(mask), HIDDEN).split(TYPED_MASK);
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
    if (this.isUnused.has(id)) return say("‹no token {index}›", { index: id });
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

/** @param {string} text */
const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");

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
