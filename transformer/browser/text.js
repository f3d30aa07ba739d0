// A text as far as a network has read it, with all that the page shows: each head's queries, keys, values
// and output, and the residual stream before the first layer and after each.

import { Activations } from "./activations.js";
import { partsOf, rangeOf, weigh } from "./attention.js";
import { contributionsOf } from "./contributions.js";
import { firstChange } from "./interventions.js";
import { finished } from "./pauses.js";
import { Reading } from "./reading.js";

/** @import { Attention } from "./attention.js" */
/** @import { Intervention, StackName, Kind, SiteName } from "./types.d.ts" */

export class Text extends Reading {
  /**
   * Read more tokens: the logits (V,) after the last; an encoder reads the whole text again.
   * Raises Error, a sentence, for more tokens than the network reads at once.
   * @param {number[]} ids
   */
  read(ids) {
    const { name } = this.network.last;
    const grows = this.changes.areLocal && name === "decoder";
    const before = this.ids.length;
    this.logits = null;
    this._read(name, ids, grows ? before : 0);
    const nText = this.options.nText?.[name];
    this.logits = name === "encoder" ? null : this.logitsAt((nText ?? this.ids.length) - 1);
    return this.logits;
  }

  /** Forget all but the first `count` tokens of the last stack. @param {number} count */
  keep(count) {
    const ids = this.ids.slice(0, count);
    this.ids.length =
      this.changes.areLocal && this.network.last.name === "decoder" ? ids.length : 0;
    this.logits = null;
    if (!this.ids.length && ids.length) this.read(ids);
    else if (ids.length) this.logits = this.logitsAt(ids.length - 1);
  }

  /**
   * The same text with other interventions, of which only what changes is computed.
   * @param {Intervention[]} interventions
   * @param {{upTo?: number}} [options] upTo: read only so many tokens, in a decoder
   */
  changed(interventions, options = {}) {
    return finished(this.changing(interventions, options));
  }

  /**
   * `changed` as a generator that yields after each layer, and returns the text.
   * @param {Intervention[]} interventions
   * @param {{upTo?: number, into?: Text | null}} options into: a text that nobody reads any more, whose memory it takes
   * @returns {Generator<void, Text>}
   */
  *changing(interventions, { upTo = this.ids.length, into = null }) {
    const { network } = this;
    const nLayers = network.config.n_layers;
    const text = new Text(network, { ...this.options, interventions, source: undefined });
    text.options = { ...this.options, interventions };
    /** @type {(stack: StackName) => number} */
    const first = (stack) => firstChange(this.interventions, interventions, stack, nLayers);
    const grows = network.last.name === "decoder" && this.changes.areLocal && text.changes.areLocal;
    if (into && (grows || upTo === this.ids.length)) text.stacks[network.last.name] = into.last;
    let from = first(network.last.name);
    if (network.config.family === "encoder-decoder") {
      const before = first("encoder");
      const isSame =
        before === nLayers &&
        this.changes.has("no-final-norm") === text.changes.has("no-final-norm");
      if (isSame) {
        text.stacks.encoder = this.stacks.encoder;
        text.memory = this.memory;
      } else {
        from = 0;
        const source = text._of("encoder");
        source.copy(this._of("encoder"), this.source.length, before);
        yield* text._readFrom(source, before);
        text._remember();
      }
    }
    if (upTo < this.ids.length && !grows) {
      text.read(this.ids.slice(0, upTo));
      return text;
    }
    text.last.copy(this.last, upTo, from);
    yield* text._readFrom(text.last, from);
    text.logits = network.last.name === "encoder" || !upTo ? null : text.logitsAt(upTo - 1);
    return text;
  }

  // The same text, to be read on otherwise.
  copy() {
    const text = new Text(this.network, { ...this.options, source: undefined });
    Object.assign(text, { options: this.options, memory: this.memory, logits: this.logits });
    text.stacks.encoder = this.stacks.encoder;
    const { name } = this.network.last;
    text.stacks[name] = new Activations(this.network, this.network.last);
    text.last.copy(this.last, this.ids.length, this.network.config.n_layers);
    return text;
  }

  // ---- what is kept ----

  /** The residual stream (C,) of a token before a layer; n_layers: after the last. @param {number} layer @param {number} place @param {StackName} [stack] */
  streamAt(layer, place, stack = this.network.last.name) {
    const width = this.network.config.d_model;
    return this._of(stack).stream[layer].subarray(place * width, (place + 1) * width);
  }

  /** @param {SiteName} site @param {number} head */
  queries(site, head) {
    const { q, size, nHeads } = this.attention(site);
    return columns(q, nHeads * size, head * size, size, this._nQueries(site));
  }

  /** (Tk, D), of the keys that the head reads. @param {SiteName} site @param {number} head */
  keys(site, head) {
    const { k, size, nHeads, share, nKeys, oneKey } = this.attention(site);
    const at = oneKey ? 0 : Math.floor(head / share);
    return columns(k, (nHeads / share) * size, at * size, size, nKeys);
  }

  /** @param {SiteName} site @param {number} head */
  values(site, head) {
    const { v, size, nHeads, share, nKeys } = this.attention(site);
    return columns(v, (nHeads / share) * size, Math.floor(head / share) * size, size, nKeys);
  }

  /** A head's output (D,) at a query, after interventions. @param {SiteName} site @param {number} head @param {number} query */
  headOutput(site, head, query) {
    const { stack, layer, kind } = partsOf(site);
    const size = this.network.headSize;
    const rows = this._of(stack).layers[layer][kind === "self" ? "z" : "crossZ"];
    const start = (query * this.network.config.n_heads + head) * size;
    return rows.subarray(start, start + size);
  }

  /** What a feed-forward adds at a token, (C,). @param {number} layer @param {number} place @param {StackName} [stack] */
  forwardOutput(layer, place, stack = this.network.last.name) {
    const width = this.network.config.d_model;
    return this._of(stack).layers[layer].mlp.subarray(place * width, (place + 1) * width);
  }

  /**
   * What a patch takes from this text at a place: (C,), or (H D,) of all heads for part "z".
   * @param {{stack: StackName, layer: number, part?: string, kind?: Kind}} part
   * @param {number} place
   */
  partAt({ stack, layer, part = "resid_post", kind = "self" }, place) {
    const { layers, widths } = this._of(stack);
    if (part === "resid_post") return this.streamAt(layer + 1, place, stack);
    const name = part === "mlp_out" ? "mlp" : kind === "self" ? "z" : "crossZ";
    return layers[layer][name].subarray(place * widths[name], (place + 1) * widths[name]);
  }

  // ---- what is worked out ----

  /** @type {(attention: Attention, head: number, query: number, into: Float32Array) => Float32Array} */
  _weigh(attention, head, query, into) {
    const [from, to] = rangeOf(attention, query);
    weigh(attention, head, query, from, to, into);
    return into;
  }

  /** All of a head's weights, (Tq, Tk). @param {SiteName} site @param {number} head */
  weights(site, head) {
    const attention = this.attention(site);
    const nQueries = this._nQueries(site);
    const weights = new Float32Array(nQueries * attention.nKeys);
    for (let query = 0; query < nQueries; query += 1)
      this._weigh(attention, head, query, weights.subarray(query * attention.nKeys));
    return weights;
  }

  /** A head's weights at one query, (Tk,). @param {SiteName} site @param {number} head @param {number} query */
  weightsAt(site, head, query) {
    const attention = this.attention(site);
    return this._weigh(attention, head, query, new Float32Array(attention.nKeys));
  }

  /** Which keys a query may read, (Tq, Tk) of 0 and 1. @param {SiteName} site */
  allowed(site) {
    const { allowed, nKeys, ...attention } = this.attention(site);
    const cells = new Uint8Array(this._nQueries(site) * nKeys);
    if (allowed) cells.set(allowed);
    else
      for (let query = 0; query * nKeys < cells.length; query += 1) {
        const [from, to] = rangeOf({ ...attention, allowed, nKeys }, query);
        cells.fill(1, query * nKeys + from, query * nKeys + to);
      }
    return cells;
  }

  /** The logits (V,) at a place: a decoder's of the next token, an encoder's of this one. @param {number} place */
  logitsAt(place) {
    const isLast = this.logits && !this.options.nText && place === this.ids.length - 1;
    return isLast
      ? /** @type {Float32Array} */ (this.logits)
      : this.lens(this.network.config.n_layers, place);
  }

  /**
   * The head's logits of a layer's stream, (n, V): the logit lens; n_layers: after the last.
   * @param {number} layer
   * @param {number} place the first of n
   */
  lens(layer, place, n = 1) {
    const width = this.network.config.d_model;
    const rows = this.last.stream[layer].subarray(place * width, (place + n) * width);
    return this.network.predict(rows, n, this._finalNorm(this.network.last));
  }

  /**
   * What each part adds to the logit of `target` at a place, with the norms' scales held: direct logit
   * attribution. Null where a logit is no such sum.
   * @param {number} place
   * @param {number} target
   */
  contributions(place, target) {
    return contributionsOf(this, place, target);
  }
}

// Some columns of rows (n, width), (n, count).
/** @type {(rows: Float32Array, width: number, from: number, count: number, n: number) => Float32Array} */
const columns = (rows, width, from, count, n) => {
  const part = new Float32Array(n * count);
  for (let t = 0; t < n; t += 1)
    part.set(rows.subarray(t * width + from, t * width + from + count), t * count);
  return part;
};
