// What the questions of this room answer; tests/static holds the server to it.
import type { HeadNumbers } from "../../web/head_numbers.js";
import type { Part } from "../../web/part.js";
import type { Figure, Head, LitCell, Query } from "../../web/types";

/** A kind of attention of a run. */
export interface KindAsked {
  run: string;
  stack: string;
  kind: string;
}
/** What is shown of a head, with the number of layers of its kind. */
export type ShownHead = Head & { n_layers: number };

/** A number of every head. unit: "" for none; shuffled, shuffled_most: of heads whose keys are shuffled. */
export interface Metric {
  name: string;
  title: string;
  unit: string;
  definition: string;
  shuffled: number | null;
  shuffled_most: number | null;
}
/** values: by metric; label: in words what it does, with its sign, null if nothing stands out; key: what it reads
 * most. */
export interface MeasuredHead {
  layer: number;
  head: number;
  values: Record<string, number | null>;
  label: string | null;
  sign: string | null;
  key: number;
  key_label: string;
}
/** The head that stands out most, and the token where it does; clear: whether it has a label. */
export interface HeadFinding {
  layer: number;
  head: number;
  clear: boolean;
  value: number;
  even: number;
  n_rows: number;
  query: number;
  key: number;
  weight: number;
  does: string | null;
  title: string;
  number: string;
  query_label: string;
  key_label: string;
}
/** even: a uniform head's numbers in each layer; rule: when a head gets a label. */
export interface Metrics {
  metrics: Metric[];
  heads: MeasuredHead[];
  even: Record<string, number | null>[];
  finding: HeadFinding | null;
  rule: string;
  n_rows: number;
  n_repeats: number;
  n_left_out: number;
  n_shuffles: number;
}
/** One metric of every head as a picture; null: of a text of one token. */
export interface MetricMap {
  figure: Figure | null;
}

/** A head with its weight on the second token. */
export type Reader = Head & { weight: number };
/** heads: every head's weight by kind, layer after layer; ranked: those that read most. */
export interface Readers {
  heads: Record<string, Float32Array>;
  ranked: Reader[];
}

/** The two columns of tokens that lines are drawn between, by picture. */
export type Columns = Partial<Record<string, Figure>>;

/** One row of attention: what the network multiplied, and what came of it. bias: what positions add to the scores;
 * cap: of scores. A saved page has no scores, weights and figure. */
export interface RecordedRow {
  figure?: Figure;
  query: number;
  query_label: string;
  key_labels: string[];
  score_size: number;
  historical: boolean;
  bias: Float32Array | null;
  cap: number | null;
  q: Float32Array;
  keys: Float32Array;
  values: Float32Array;
  allowed: Uint8Array;
  scores?: Float32Array;
  weights?: Float32Array;
  tolerance?: number;
}
/** Every step of a row for each key, and the output. */
export interface RowSteps {
  dots: number[];
  scores: number[];
  largest: number;
  exps: number[];
  total: number;
  weights: number[];
  output: number[];
}
/** How far the steps are from what the network recorded; agrees: within rounding. */
export interface RowAgreement {
  byScore: number;
  byWeight: number;
  tolerance: number;
  agrees: boolean;
}
/** A row, its steps, and its keys from the heaviest on. */
export interface WorkedRow {
  row: RecordedRow;
  sums: RowSteps;
  order: number[];
  agreement?: RowAgreement;
}

/** A request for numbers; stacks: of the rows' and columns' tokens. */
export interface NumbersAsked {
  name: "heatmap" | "flow";
  data: { run: string };
  stacks: { queries: string; keys: string };
}
/** What a picture shows: numbers, and the stacks of its rows' and columns' tokens. refusals: how often numbers were
 * refused: the picture of those before is taken away. */
export interface ShownNumbers {
  numbers: HeadNumbers | null;
  queries: string;
  keys: string;
  refusals: number;
}
/** The hovered, pinned or selected cell of a picture. said: in words, for those who cannot see it. */
export interface CellState {
  over: LitCell | null;
  pin: LitCell | null;
  said: string;
  tokenOf: (stack: string, place: number) => Query;
  rowOf: (token: Query | null) => number;
  chosen: () => LitCell | null;
  lit: () => LitCell;
  moves: {
    over: (at: LitCell | null, byKeys?: boolean) => void;
    pin: (at: LitCell, byKeys?: boolean) => void;
    start: () => LitCell | null;
  };
  letGo: () => void;
  isPinned: (token: Query) => boolean;
  lights: () => { query: Query; key: Query } | null;
}
/** Where a pinned cell is kept. */
export interface PinSignal {
  value: LitCell | null;
}

/** What the parts of the tab Attention share. */
export interface AttentionView {
  part: Part;
  shown: ShownNumbers;
  cell: CellState;
}
/** A picture of lines; at: the chosen head. */
export interface LinesProps {
  part: Part;
  cell: CellState;
  at: ShownHead;
}
/** A switch for a field of this view. words: {value: other words}; offers: whether a value can be chosen. */
export interface FieldSwitchProps {
  field: string;
  class: string;
  words?: Record<string, string>;
  offers?: (value: string) => boolean;
  hidden?: boolean;
  disabled?: boolean;
}

// ---- by question ----

declare module "../../web/types" {
  interface Answers {
    metrics: Metrics;
    metric_map: MetricMap;
    readers: Readers;
    columns: Columns;
    attention_math: RecordedRow;
  }
}
