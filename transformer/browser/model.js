// A loaded checkpoint: what is read of a text, and the generation of another. In Python: inference/.

import { say } from "../web/messages.js";
import { beamSearch } from "./beam.js";
import { Kernel } from "./kernel.js";
import { Network } from "./network.js";
import {
  draw,
  filtered,
  largest,
  likeliest,
  penalised,
  randomOf,
  samples,
  softmax,
} from "./sampling.js";
import { pauses } from "./pauses.js";
import { PLAIN_ENGLISH, plain } from "./plain_text.js";
import { Text } from "./text.js";
import { Tokenizer } from "./tokenizer.js";
import { Weights } from "./weights.js";

/** @import { PlainValues } from "../web/types" */
/** @import { Request, Step, Search, Filled } from "./types.d.ts" */
/** @import { Intervention, Generation, Checkpoint, Watch } from "./types.d.ts" */

export class Model {
  /**
   * Read a checkpoint's files. Raises Error, a sentence, for a network that the engine does not compute.
   * @param {Checkpoint} checkpoint
   */
  static async load({ name, config, tokenizer, files, kernel: bytes }) {
    const kernel = await Kernel.from(bytes);
    const weights = new Weights(kernel);
    for (const file of files) await weights.add(file);
    const network = Network.from(config.model, weights, kernel);
    const metadata = config.metadata ?? {};
    const nIds = metadata.tokenizer ? network.vocabularyOf("encoder") : 0;
    return new Model(name, network, new Tokenizer(tokenizer, metadata.tokenizer, nIds), metadata);
  }

  /** @param {string} name @param {Network} network @param {Tokenizer} tokenizer @param {PlainValues} metadata */
  constructor(name, network, tokenizer, metadata = {}) {
    this.name = name;
    this.network = network;
    this.tokenizer = tokenizer;
    this.metadata = metadata;
  }

  get config() {
    return this.network.config;
  }

  /** The text as the network reads it. @param {string} text */
  readAs(text) {
    const read = this.metadata.source_text === PLAIN_ENGLISH ? plain(text) : text;
    if (!read.trim()) throw new Error(say("the text is empty: write something in it first"));
    return read;
  }

  /**
   * A text's ids: the encoder's (none without one) and those the last stack starts with. Raises Error,
   * a sentence, for more than an encoder reads.
   * @param {string} text
   */
  prepare(text) {
    const { tokenizer } = this;
    const read = this.readAs(text);
    if (this.config.family === "decoder") return { source: [], ids: tokenizer.encodeText(read) };
    const isTranslator = this.config.family === "encoder-decoder";
    const ids = isTranslator ? tokenizer.encodeSource(read) : tokenizer.encodeHidden(read);
    const n = ids.length;
    const most = this.config.max_len;
    if (n > most) {
      const values = { n_tokens: n, name: this.name, max_len: most };
      throw new Error(
        say("the text is {n_tokens} tokens long; {name} reads at most {max_len}", values),
      );
    }
    return isTranslator ? { source: ids, ids: [...tokenizer.targetStart] } : { source: [], ids };
  }

  /**
   * Interventions whose patches have values in place of the text that they are from.
   * @param {Intervention[]} interventions
   * @param {number[]} decoded ids that a translator's other decoder reads
   * @returns {Intervention[]}
   */
  resolved(interventions, decoded = []) {
    /** @type {Map<string, Text>} */
    const others = new Map();
    const other = (/** @type {string} */ text) => {
      const read = others.get(text);
      if (read) return read;
      const { source, ids } = this.prepare(text);
      const whole = new Text(this.network, { source });
      whole.read(source.length ? decoded : ids);
      others.set(text, whole);
      return whole;
    };
    return interventions.map((change) => {
      if (change.type !== "patch" || change.values) return change;
      const { text = "", ...patch } = change;
      return { ...patch, values: patch.positions.map((at) => other(text).partAt(patch, at)) };
    });
  }

  /**
   * Generate as Request says, token by token; an encoder only reads. watch.onStep is awaited with each step
   * and the text that it was predicted from, before its token is read.
   * @param {Request} request
   * @param {Watch} [watch]
   * @returns {Promise<Generation>}
   */
  async generate(request, watch = {}) {
    const { network, tokenizer } = this;
    const { max_new_tokens: most = 64, forced_tokens: forced = [], beams = 1 } = request;
    const { source, ids: prompt } = this.prepare(request.text);
    const interventions = this.resolved(request.interventions ?? [], [...prompt, ...forced]);
    const isCancelled = () => Boolean(watch.signal?.aborted);
    const pause = pauses();
    const maxLen = network.last.maxLen;
    const slides = network.config.family !== "encoder-decoder";
    const begin = () => new Text(network, { source, interventions });
    let text = begin();
    let start = 0;
    let ids = [...prompt];
    const readOn = (/** @type {number[]} */ fresh) => {
      if (start || ids.length > maxLen) {
        start = ids.length - maxLen;
        text = begin();
        text.read(ids.slice(start));
      } else text.read(fresh);
    };
    if (slides && network.last.name === "encoder") text.read(ids);
    else readOn(ids);
    /** @type {Step[]} */
    const steps = [];
    /** @type {Search | null} */
    let search = null;
    let ended = false;
    if (beams > 1 && most > 0) {
      const nSteps = Math.min(most, maxLen - prompt.length + 1);
      search = await beamSearch(text.copy(), {
        ...{ beams, nSteps, end: tokenizer.end, lengthPenalty: request.length_penalty ?? 1 },
        ...{ never: network.never, pause, isCancelled },
      });
      const [best] = search.hypotheses;
      ids = [...prompt, ...best.ids];
      const read = ids.slice(0, maxLen);
      text.keep(0);
      text.read(read);
      ended = true;
    } else if (network.last.name === "decoder") {
      const random = randomOf(request.seed ?? 0);
      const stops = [request.stop ?? []].flat();
      for (let index = 0; index < most && !ended && !isCancelled(); index += 1) {
        if (!slides && ids.length > maxLen) {
          ended = true;
          break;
        }
        const step = this._step(
          request,
          /** @type {Float32Array} */ (text.logits),
          ids,
          random,
          index,
        );
        step.window = [start, ids.length];
        steps.push(step);
        await watch.onStep?.(step, text);
        ids.push(step.token);
        if (slides || ids.length <= maxLen) readOn([step.token]);
        ended =
          tokenizer.ends.has(step.token) || hasStopped(tokenizer, stops, ids.slice(prompt.length));
        await pause();
      }
    }
    const stopped = this._whyStopped(request, ids.slice(prompt.length), ended || !isCancelled());
    return { text, ids, source, nPrompt: prompt.length, steps, search, start, stopped };
  }

  /** @type {(request: Request, logits: Float32Array, ids: number[], random: () => number, index: number) => Step} */
  _step(request, logits, ids, random, index) {
    const { repetition_penalty: penalty = 1, forced_tokens: forced = [] } = request;
    const left = penalty === 1 ? logits : penalised(logits, ids, penalty);
    const { never } = this.network;
    const drawn = samples(request) ? filtered(left, request, never) : null;
    const chosen = drawn ? draw(drawn, random) : likeliest(left, never);
    const token = forced[index] ?? chosen;
    const nKept = drawn ? drawn.reduce((count, p) => count + Number(p > 0), 0) : 1;
    return {
      ...{ index, token, probability: softmax(logits)[token], nKept, window: [0, 0] },
      drawn: drawn ? drawn[token] : Number(token === chosen),
    };
  }

  /** @type {(request: Request, tokens: number[], isWhole: boolean) => Generation["stopped"]} */
  _whyStopped({ max_new_tokens: most = 64, stop = [] }, tokens, isWhole) {
    if (tokens.length && this.tokenizer.ends.has(tokens[tokens.length - 1])) return "end";
    if (hasStopped(this.tokenizer, [stop].flat(), tokens)) return "stop";
    if (most === 0 || this.network.last.name === "encoder") return "read";
    return isWhole ? "length" : "cancelled";
  }

  /**
   * Prompt and generated tokens as text, or a translation; without an incomplete character at the end.
   * @param {Request} request
   * @param {number[]} tokens the new ones
   */
  textOf({ text }, tokens) {
    const written = this.tokenizer.decodeWhole(tokens);
    return this.config.family === "encoder-decoder" ? written : text + written;
  }

  /**
   * Predict each [MASK] of a text, as inference/fill.py. Raises Error, a sentence, for a text without.
   * @param {string} text
   * @param {number} [nBest] candidates for each
   * @param {Intervention[]} [interventions]
   * @returns {Filled}
   */
  fill(text, nBest = 5, interventions = []) {
    const { tokenizer, network } = this;
    const { ids } = this.prepare(text);
    const positions = ids.flatMap((id, at) => (id === tokenizer.mask ? [at] : []));
    if (!positions.length) throw new Error(say("a text to fill in must hold [MASK]"));
    const whole = new Text(network, { interventions: this.resolved(interventions) });
    whole.read(ids);
    const guesses = positions.map((at) => {
      const probabilities = softmax(whole.logitsAt(at));
      return largest(probabilities, nBest).map((id) => ({
        ...{
          id,
          text: tokenizer.decode([id]),
          label: tokenizer.label(id),
          probability: probabilities[id],
        },
      }));
    });
    const filled = [...ids];
    positions.forEach((at, number) => (filled[at] = guesses[number][0].id));
    return { text: tokenizer.decode(filled), ids, positions, guesses };
  }
}

// Whether the last of these new tokens completes one of the stop texts.
/** @type {(tokenizer: Tokenizer, stops: string[], tokens: number[]) => boolean} */
const hasStopped = (tokenizer, stops, tokens) => {
  if (!stops.length) return false;
  const bytesOf = (/** @type {Uint8Array} */ bytes) => String.fromCharCode(...bytes);
  const texts = stops.map((stop) => bytesOf(new TextEncoder().encode(stop)));
  const last = tokens.slice(-Math.max(...texts.map((stop) => stop.length)));
  const written = bytesOf(tokenizer.toBytes(last));
  return texts.some((stop) => written.includes(stop));
};
