// What components and hooks of this room take; the page's own state is described in store.js.
import type { ComponentChild } from "preact";
import type { Effects } from "./effects.js";
import type { Atlas } from "./head_grid.js";
import type { HeadNumbers, SentNumbers } from "./head_numbers.js";
import type { Look } from "./heatmap.js";
import type { Reading } from "./text.js";

// ---- runs, batches and their parts ----

/** A place of attention. */
export interface Site {
  stack: string;
  kind: string;
  layer: number;
}
export interface Head extends Site {
  head: number;
}
/** A token's place in the whole text of a stack. */
export interface Query {
  stack: string;
  index: number;
}
/** A kind of attention. */
export interface Kind {
  stack: string;
  kind: string;
  n_layers: number;
}
/** An intervention as plain values, which leave out what is the default: interventions/descriptions.py. */
export interface Change {
  type: string;
  stack?: string;
  layer?: number | null;
  kind?: string;
  heads?: number[] | null;
  positions?: number[] | null;
  by?: string;
  part?: string;
  /** of a mask */
  without?: string[];
  allow?: [number | null, number | null][];
  forbid?: [number | null, number | null][];
  /** what a Break takes away */
  what?: string;
}
/** A finished beam. score: the sum of its tokens' log probabilities; normalised: by its length. */
export interface Hypothesis {
  text: string;
  score: number;
  normalised: number;
  ended: boolean;
}

/** A finished run, as transformer/server/kept/page_runs.py writes it. */
export interface Run {
  /** its id on the server */
  run: string;
  model: string;
  text: string;
  /** what its model learned in Learn; "" for any other model */
  task: string;
  /** its settings in words */
  how: string;
  /** null where nothing was drawn at random */
  seed: number | null;
  /** the stack that reads the text */
  stack: string;
  /** one of HEADS of transformer/model/heads.py */
  head?: string;
  stacks: string[];
  kinds: Kind[];
  n_heads: number;
  /** how many heads of queries share one of keys and values */
  heads_per_key: number;
  d_model: number;
  /** whether it rotates queries and keys */
  is_rotary: boolean;
  /** whether it adds a number for their distance to scores */
  biases_scores: boolean;
  /** whether it adds a vector to each token */
  adds_positions: boolean;
  /** of each layer's self-attention; null: it reads all */
  windows: (number | null)[];
  /** how many tokens were given */
  n_prompt: number;
  /** the first token that the recorded attention is of */
  trace_start: number;
  ids: number[];
  labels: string[];
  source_labels: string[];
  /** positions of special tokens in the text */
  special: number[];
  /** their positions in the source */
  source_special: number[];
  /** positions of mask tokens in an encoder's text */
  hidden: number[];
  /** the position that is selected by default */
  last_read: number;
  /** of the generated tokens */
  probabilities: number[];
  /** tokens that were forced */
  forced_tokens: number[];
  /** each with its words */
  interventions: { is: Change; says: string }[];
  hypotheses: Hypothesis[];
  /** why its text ended, see Run of transformer/runs/run.py */
  stopped: string;
  state: string;
  /** whether it is the stored one of its model */
  example?: boolean;
  /** what makes it again, see server/fields.py */
  request: PlainValues;
  /** initial values of fields */
  opening: Record<string, string>;
}
/** A run as the server writes it: initial values of fields are no texts yet. */
export type RunFacts = Omit<Run, "opening"> & { opening?: PlainValues };

/** Several texts, read together. */
export interface Batch {
  /** its id on the server */
  batch: string;
  /** whether the padding mask was in place */
  padding_hidden: boolean;
  texts: string[];
  model: string;
  outputs: string[];
  /** of a translator of several, by field of a request */
  languages: Record<string, string | null>;
  lengths: number[];
  stacks: string[];
  kinds: Kind[];
  /** of each layer's self-attention; null: it reads all */
  windows: (number | null)[];
  n_heads: number;
  example?: boolean;
  link: Record<string, string>;
}
export type BatchFacts = Omit<Batch, "link">;

/** Values of fields or of a request, by name, as JSON has them. */
export type PlainValues = Record<string, any>;
/** A value of a field, as its type in DeclaredField says. */
export type FieldValue = string | number | boolean | number[] | object[] | null;
/** The page as one plain object of texts. */
export type State = Record<string, string>;
/** A state that is being opened; see server/static/link.js. */
export interface Opening {
  /** by default the address's; null if unreadable */
  state?: State | null;
  /** what is to be in boxes and settings in the end */
  kept?: PlainValues;
  /** of its run, where this visit has shown it */
  facts?: Run | null;
  /** another model was chosen: the visitor's own texts and settings stay */
  isChosen?: boolean;
  /** the one that stays open */
  tab?: string;
  /** whether the history gets a step for it */
  isStep?: boolean;
}
/** What listeners of an event of the page are given; see `on` of store.js. */
export interface PageEvents {
  run: Run;
  query: Query | null;
  painted: HTMLElement;
  escape: undefined;
}
declare global {
  interface DocumentEventMap {
    /** a part of the page is there; in place of Gradio's own event */
    mounted: CustomEvent;
  }
}
/** An event of the document, whose target is an element. */
export type DocumentEvent<Name extends keyof DocumentEventMap> = DocumentEventMap[Name] & {
  target: HTMLElement;
};

/** The state of a component's element; see usePart of part.js. */
export interface Part {
  /** whether it is in sight or near it */
  seen: boolean;
  /** whether its tab was left */
  isHidden: boolean;
  /** px, 0 until it is seen */
  width: number;
  element: { current: HTMLElement };
  /** whether something is still to be shown */
  setPending: (what: object, due: boolean) => void;
  /** time until the next paint, as data-click-ms */
  startTimer: () => void;
  /** the attributes of its element; facts: of what is shown, as data-NAME once it is painted */
  attributes: (facts: object | null | undefined) => Attributes;
}
/** What a component's script is given, by Gradio 6.31 or by browser/page/layout.js. */
export interface Mounted {
  /** whose parts only its template knows */
  element: Element;
  props: PlainValues;
  trigger: (event: string, data?: unknown) => void;
}

// ---- answers of the server ----

/** What a question is asked with, by parameter. */
export type Question = Record<string, unknown>;
/** What is drawn and said of a picture. */
export interface PictureAnswer {
  figure?: Figure;
  sentence?: string;
}
/** What each question of the page is answered with: each room's types.d.ts adds its own. */
export interface Answers {
  /** of a view without a script; the question has the picture's name */
  picture: PictureAnswer;
  atlas: SentAtlas;
  heatmap: SentNumbers;
  flow: SentNumbers;
  kept: { kept: boolean[] };
}
/** What was asked, of data that may say that nothing is. */
export type AskedOf<Data> = Exclude<Data, null | undefined | false | 0 | "">;
/** See useAnswer of part.js. */
export interface AnswerState<Answer, Data> {
  answer: Answer | null;
  asked: AskedOf<Data> | null;
  current: Answer | null;
}
export interface UseAnswer {
  <Name extends keyof Answers, Data>(
    part: Part,
    question: Name,
    data: Data,
    take?: (answer: Answers[Name] | null, data: AskedOf<Data>) => void,
  ): AnswerState<Answers[Name], Data>;
  <Answer, Data>(
    part: Part,
    question: (data: AskedOf<Data>) => Promise<Answer>,
    data: Data,
    take?: (answer: Answer | null, data: AskedOf<Data>) => void,
  ): AnswerState<Answer, Data>;
}

// ---- pictures ----

/** A place in a heatmap; one that is lit may be a row or a column alone. */
export interface Cell {
  row: number;
  column: number;
}
export interface LitCell {
  row: number | null;
  column: number | null;
}

/** An element in which Plotly has drawn; its private fields are read by cells.js and plots.js alone. */
export type Drawn = HTMLElement & PlotlyObject;
/** An object of Plotly's, or Plotly itself: its many properties have no types of their own here. */
export type PlotlyObject = Record<string, any>;
/** What Plotly tells of a click or of the pointer; nothing that is read of another event. */
export interface Pointed {
  points: ({ x: number; y: number } & PlotlyObject)[];
}
/** A figure of Plotly as JSON. */
export interface Figure {
  data: PlotlyObject[];
  layout: PlotlyObject;
}
/** The text of a cell; values: its number in each trace. */
export type CellText = (row: number, column: number, values?: number[]) => string;
/** A table of numbers. corner: above the rows' names. */
export interface NumbersTable {
  rows: string[];
  columns: string[];
  value: CellText;
  corner: string;
}
/** Square cells and the room for them; see squareCells of labels.js. */
export interface SquareFit {
  side?: { width?: number; height: number };
  top?: number;
  bar?: boolean;
  least?: number;
  pan?: boolean;
  isShort?: boolean;
  chosen?: LitCell;
}
/** How a figure is drawn; see drawPicture of plots.js. */
export interface DrawOptions {
  height?: number;
  fit?: SquareFit | ((box: Drawn) => SquareFit | null) | null | false;
  change?: (figure: Figure) => void;
  config?: (plotly: PlotlyObject) => object;
}
/** Plotly's events, each with the drawn box. */
export type PlotlyListeners = Record<string, (event: Pointed, box: Drawn) => void>;
/** See Figure of figure.js. */
export interface FigureProps extends DrawOptions {
  part: Part;
  figure: Figure | null | undefined | false;
  name?: string;
  wide?: string;
  label?: string;
  meanwhile?: ComponentChild;
  hidden?: boolean;
  class?: string;
  on?: PlotlyListeners;
  numbers?: CellText | null;
  table?: false | ((figure: Figure) => NumbersTable | null);
  over?: (box: Drawn) => ComponentChild;
  box?: Attributes;
  done?: ((figure: Figure) => void) | null;
}

export type FlatArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | Uint8Array
  | Uint16Array
  | Uint32Array;
/** An array of the file: all its numbers, and its shape. */
export interface StoredArray {
  array: FlatArray;
  shape: number[];
}
/** An array as lists of rows, the last dimension flat. */
export type NestedArray = FlatArray | NestedArray[];

/** Bytes of an answer; base64 in a saved page. */
export type Bytes = Uint8Array<ArrayBuffer> | string;
/** All heads of one attention, small, before atlasOf of head_grid.js. */
export interface SentAtlas {
  shape: number[];
  pixels: Bytes;
  masked: Bytes;
}

export type KeyIn<Element = HTMLElement> = KeyboardEvent & {
  currentTarget: Element;
  target: HTMLElement;
};
export type ChangeOf<Element = HTMLInputElement> = Event & { target: Element };
export type Attributes = Record<string, unknown>;

/** A choice: its value, its words, and where it needs one a hint. */
export type Choice<Value = string | number> = [value: Value, words: ComponentChild, hint?: string];

/** What Python declares of a field: transformer/views/parameters.py. */
export interface DeclaredField {
  name: string;
  type: string;
  title: string;
  use: string;
  default: string | number | boolean | number[] | null;
  optional?: boolean;
  options: Record<string, string>;
  least?: number | null;
  most?: number | null;
}
/** What Python declares of a picture and of a view: transformer/views/declaration.py. */
export interface DeclaredPicture {
  name: string;
  title: string;
  help: string;
  takes: string;
  network: boolean;
  idle: boolean;
  parameters: { name: string; use: string }[];
}
export interface DeclaredView {
  name: string;
  tab: string;
  title: string;
  help: string;
  script: boolean;
  controls: Record<string, DeclaredField>;
  pictures: DeclaredPicture[];
}
/** What Python writes into the page. */
export interface Declared {
  /** what makes a run: the type of each value */
  request: Record<string, string>;
  /** those of the request that Gradio's settings hold */
  settings: string[];
  /** its own fields */
  page: Record<string, DeclaredField>;
  views: DeclaredView[];
  /** the dark theme's colour for each colour of a figure */
  dark: Record<string, string>;
  /** of the tour */
  cards: (Omit<CardOf, "says" | "state"> & { says: string; state: PlainValues })[];
  /** the lessons' names */
  lessons: string[];
  /** models that may be computed in this browser, where there is a server */
  in_browser: string[];
  /** what Gradio's boxes and settings hold at first */
  controls: PlainValues;
}

/** A card of a deck. says, explains: paragraphs. */
export interface CardOf {
  title: string;
  says: string[];
  /** what to look at */
  look?: string;
  /** whether the text and the settings stay in sight */
  types?: boolean;
  /** whether the button that generates does, with the bars of what comes next */
  presses?: boolean;
  /** fields of a link; none: the page stays as it is */
  state: Record<string, string>;
  /** of a lesson: a question before the picture opens */
  guess?: string;
  guesses?: string[];
  /** the place of the right one, -1 where none is */
  guessed?: number;
  /** what there is to do */
  task?: string;
  /** how that is answered: click (head, token, cell), number, choose, run */
  check?: string;
  options?: string[];
  /** which of these keep their order: they are ranges */
  ordered?: { guesses: boolean; options: boolean };
  hints?: string[];
  /** shown once it is answered */
  explains?: string[];
}
/** The tour's name is "". */
export interface Deck {
  name: string;
  title: string;
  cards: CardOf[];
}

/** A text that is shown: of a finished run, or of one that is being written, whose run is null. */
export type TextFacts = Partial<Omit<Run, "run">> & {
  run: string | null;
} & Pick<
    Run,
    "state" | "labels" | "source_labels" | "special" | "source_special" | "n_prompt" | "probabilities"
  >;
/** A finished run by its number in the order of this page. */
export interface PastRun {
  number: number;
  facts: Run;
}
/** A place of a head, and what a class has said of it. */
export interface HeadSign {
  layer: number;
  head: number;
  sign: string;
  label: string;
}

/** What a visitor has said of a card; guess: the place of the chosen one; hints: how many are shown. */
export interface Answered {
  guess: number | null;
  text: string;
  option: number | null;
  hints: number;
  right: boolean | null;
  says: string;
  solved: boolean;
}
/** See useAnswers in card.js. */
export interface Answering {
  set: (change: Partial<Answered>) => void;
  tell: (right: boolean | null, says: string) => void;
  give: (said: { number?: number; option?: number }) => void;
}

/** See Card in card.js. */
export interface CardProps {
  words: CardOf;
  deck: string;
  over: string;
  place: number;
  count: number;
  leaf: (by: number) => void;
  end: () => void;
  onward?: { words: string; go: () => void };
  focus: boolean;
  teach?: false | (() => void);
  teacher: { current: HTMLElement | null };
  kind: string;
  state: Answered & Answering;
  answer: Answering["give"];
  solve: () => void;
  write?: false | (() => void);
}

/** Called with a head of the grid. */
export type HeadChoice = (layer: number, head: number) => void;

/** See Heatmap in heatmap.js. */
export type HeatmapProps = {
  part: Part;
  numbers: HeadNumbers | null;
  meanwhile: ComponentChild;
  look: Look;
  title: string;
  keys: string;
  room: (box: Drawn) => SquareFit;
  lit: LitCell;
  start: () => LitCell | null;
  over: (cell: LitCell | null, byKeys?: boolean) => void;
  pin: (cell: LitCell, byKeys?: boolean) => void;
};

/** See HeadGrid in head_grid.js. */
export type HeadGridProps = {
  atlas: Atlas;
  chosen?: { layer: number; head: number } | null;
  choose: HeadChoice;
  press?: HeadChoice;
  isAblated?: (layer: number, head: number) => boolean;
  signs?: HeadSign[];
  share?: number;
  isZoomed?: boolean;
} & Attributes;

/** One head of a grid. */
export type HeadProps = {
  atlas: Atlas;
  layer: number;
  head: number;
  isChosen: boolean;
  isStop: boolean;
  isAblated: boolean;
  sign?: HeadSign;
  choose: HeadChoice;
  press?: HeadChoice;
  apart: string;
  keys: Attributes;
};

/** A token and the weights with which it reads. */
export interface Read {
  token: Query;
  reading: Reading;
}
/** See Tokens in tokens.js. */
export type TokensProps = {
  facts: TextFacts;
  stack: string;
  class: string;
  title: string;
  read: Read | null;
  lit: { query: Query; key: Query } | null;
  written: number;
  ghost?: string;
  guesses?: Record<number, string>;
  isStory?: boolean;
  mattering?: Effects | null;
};
