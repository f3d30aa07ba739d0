// What the questions of this room answer; tests/static holds the server to it.
import type { HeadNumbers } from "../../web/head_numbers.js";
import type { Part } from "../../web/part.js";
import type { Attributes, Head, Kind } from "../../web/types";
import type { CellState, ShownNumbers } from "../attention/types";

/** A token that may follow; joins: whether it goes on with the word before it. */
export interface NextToken {
  id: number;
  label: string;
  joins: boolean;
  probability: number;
}
/** What the network would write without something: its logits, and the likeliest tokens; labels: the text. */
export interface Without {
  logits: Float32Array;
  likeliest: NextToken[];
  labels?: string[];
}
/** The prediction of what follows a token. */
interface Predicted {
  position: number;
  stack: string;
  logits: Float32Array;
  likeliest: NextToken[];
  never: number | null;
  next: NextToken | null;
}
/** Of the text that is typed, with the labels and special tokens of that text. */
export interface TypedAnswer extends Predicted {
  labels: string[];
  special: number[];
}
export type Prediction = JourneyAnswer | TypedAnswer;
/** A token's way through the network: what it would say after each layer, the stream's norms, and what each part adds
 * to the logit of the target, null where a logit is no such sum. encoder: a translator's, whose stream adds nothing;
 * named: the head that adds most. */
export interface JourneyAnswer extends Predicted {
  labels?: undefined;
  target: number;
  target_label: string;
  lens: NextToken[];
  norms: Float32Array;
  heads: Record<string, Float32Array> | null;
  feed_forward: Float32Array | null;
  biases: Float32Array | null;
  embedding: Record<string, number> | null;
  encoder: { norms: Float32Array; lens: NextToken[] } | null;
  named: Head | null;
}
/** What is asked of the journey; position: null for the server's default. */
export interface JourneyAsked {
  run: string;
  position?: number;
}
/** What is asked of a feed-forward, about a word; `of` the page's chosen one. */
export type ForwardAsked = { run: string; position: number; target: number } & Partial<Forward>;
/** The tokens that the network would write. */
export interface Continuation {
  labels: string[];
}
/** The place of a written text where one head leads, and that head; leads: whether it does. */
export interface Telling {
  position?: number | null;
  head?: Head;
  leads?: boolean;
}
/** The heads without which the next token is another; n: how many, null where trying them takes too long. */
export interface Deciding {
  n: number | null;
  heads: Head[];
}
/** A neuron of a feed-forward. adds: to the logit of the word; writes: the tokens that it makes likelier. */
export interface Neuron {
  index: number;
  activation: number;
  activations: number[] | Float32Array;
  adds: number | null;
  writes: string[];
}
export interface FeedForward extends Without {
  labels: string[];
  n_neurons: number;
  neurons: Neuron[];
}
/** A word that is left out, and the target's probability then. */
export interface WordEffect {
  word: string;
  places: number[];
  probability: number;
  likeliest: NextToken;
}
/** words: each left out alone; mentions: all mentions of a word together; masked: whether a mask token stands there. */
export interface WordEffects {
  position: number;
  target: NextToken;
  stack: string;
  masked: boolean;
  words: WordEffect[];
  mentions: WordEffect[];
}
/** Where else a head does what it is named for. */
export interface PassagesAnswer {
  passages: { text: string; number: number }[];
  label: string | null;
  title: string;
  n_texts: number;
}
/** A sentence around the token at which a neuron fires most; text: what is read there, before a translation. */
export interface NeuronPassage {
  text: string;
  before: string;
  token: string;
  after: string;
  activation: number;
}
/** Where neurons fire, by index: null for one that never does; n_sentences: 0 where they are not recorded. */
export interface NeuronPassages {
  passages: Record<string, NeuronPassage | null>;
  n_sentences: number;
}

/** A feed-forward by its place; neuron: one of it that is asked about. */
export interface Forward {
  stack: string;
  layer: number;
  neuron?: number;
}
/** What a part adds to the logit of the word; of a feed-forward without kind and head. */
export interface Amount {
  amount: number;
  layer: number;
  kind?: string;
  head?: number;
}

/** A place in px. */
export type Box = { left: number; top: number; width: number; height: number };
/** The layout of the picture, of all layers or of one; see geometry.js. layer: of one alone. */
export interface FlowGeometry {
  width: number;
  height: number;
  nHeads: number;
  stream: number;
  bridges: string;
  gutter: number;
  layer?: number;
  box: (kind: string, layer: number, head: number) => Box;
  lane: (of: { layer: number; left: number }) => number;
  feedForward: (layer: number) => Box;
  thickness: (norms: ArrayLike<number>) => number[][];
}
/** named: whether the kinds of attention have names above their columns. */
export interface PictureGeometry extends FlowGeometry {
  named: boolean;
  type: number;
  left: number;
  top: number;
  pitch: number;
  cell: { width: number; height: number };
  row: number;
  inner: number;
  lens: number;
  start: Box;
  source: Box;
  x: (layer: number, at?: number) => number;
  y: (head: number) => number;
  after: (layer: number) => number;
}
export interface Band {
  path: string;
  width: number;
  amount: number;
  strength: number;
  lane: number;
}
/** A word of the lens, of the layers first to last. */
export interface LensSegment {
  label: string;
  probability: number;
  first: number;
  last: number;
  isFinal: boolean;
  isSmall: boolean;
}

/** What the picture's parts share. many: whether heads are too many to be heatmaps here; lit: weights by kind, or null;
 * most: the largest amount. */
export interface PictureView {
  /** or for a translator's encoder its own stream */
  answer: JourneyAnswer;
  kinds: Kind[];
  many: boolean;
  choose: (head: Head) => void;
  press: (head: Head) => void;
  point: (head: Head | null) => void;
  open: (forward: Forward) => void;
  lit: Record<string, Float32Array> | null;
  most: number;
  height: number;
}
/** source: the encoder, if it is elsewhere. */
export interface PictureProps {
  view: PictureView;
  width: number;
  height: number;
  source: Kind | null;
}
export interface HeadButtonProps {
  head: Head;
  view: PictureView;
  small: boolean;
  box: Box | null;
  keys: Attributes;
}
/** columns: lists of heads, top to bottom; small: whether each is a heatmap. */
export interface HeadsProps {
  columns: Head[][];
  view: PictureView;
  small: boolean;
  boxOf?: (head: Head) => Box | null;
}

/** The prediction without something: a head, a feed-forward, or a word; or why there is none. */
export interface Preview extends Partial<Without> {
  of: Head | Forward | { places: number[]; word: string };
  key: string;
  refusal?: string;
}
/** Probabilities by token, of the network and with the settings. */
export interface TokenShares {
  own: number;
  drawn: number;
}
export type ShownToken = NextToken & { isNext: boolean };

/** What a card says of a head. numbers, answer: of this head and place; row: of the chosen token in its stack. */
export interface HeadSentences {
  numbers: HeadNumbers;
  answer: JourneyAnswer;
  at: Head;
  row: number | null;
  texts: string[][] | null;
  isOff: boolean;
  whose: string;
}
/** texts: null where nothing is written. */
export interface HeadTexts {
  texts: string[][] | null;
}
/** answer: of the journey, null while that of the chosen token is on its way; numbers: of the chosen head `at`, null
 * as well; row: of the chosen token in its stack, null for none; label: what the head does. */
export interface HeadCardProps {
  part: Part;
  answer: JourneyAnswer | null;
  numbers: HeadNumbers | null;
  at: Head;
  row: number | null;
  label: string | null | undefined;
}
/** numbers: of the head, null while `shown` holds those of another. */
export interface LargeHeadProps {
  part: Part;
  height: number;
  shown: ShownNumbers;
  numbers: HeadNumbers | null;
  cell: CellState;
  at: Head;
  row: number | null;
}
export interface BodyProps {
  part: Part;
  answer: JourneyAnswer;
  asked: JourneyAsked | null;
  current: JourneyAnswer | null;
  shown: ShownNumbers;
  cell: CellState;
}

// ---- by question ----

declare module "../../web/types" {
  interface Answers {
    journey: JourneyAnswer;
    continuation: Continuation;
    deciding: Deciding;
    telling: Telling;
    without_head: Without;
    without_words: Without;
    feed_forward: FeedForward;
    word_effects: WordEffects;
    passages: PassagesAnswer;
    neuron_passages: NeuronPassages;
    typed: TypedAnswer;
  }
}
