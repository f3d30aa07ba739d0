// What the questions of the page ask of a text that was read here, and the figures that Python wrote for their answers.
// What they answer is said where it is shown, in views/*/types.d.ts.
import type { Answers, Figure } from "../../web/types";
import type { Excerpt } from "../../views/model/types";
import type { Item } from "../item.js";
import type { Kind, SiteName, StackName } from "../types";

// ---- what is asked ----

/** A token's place in the whole text; null or none: the one that is shown first. */
export interface AtPosition {
  position?: number | null;
}
export interface AtHead {
  site: SiteName;
  head: number;
}
export interface AtLayer {
  stack: StackName;
  layer: number;
}
/** A kind of attention. */
export interface AtKind {
  stack: StackName;
  kind: Kind;
}
/** A stack; by default the last. */
export interface AtStack {
  stack?: StackName;
}
/** A question about the whole text. */
export type Nothing = Record<never, never>;

/** What each question asks, by its name, in the words of the Python function that answers it on a server. */
export interface Asks {
  journey: AtPosition & { target?: number };
  without_head: AtPosition & AtHead;
  continuation: AtPosition & Partial<AtHead>;
  deciding: AtPosition;
  telling: Nothing;
  readers: AtKind & { query: number; key: number };
  word_effects: AtPosition & { target?: number };
  without_words: AtPosition & { places: number[] };
  feed_forward: AtPosition & AtLayer & { target?: number; neuron?: number | null };
  neuron_passages: { stack: string; layer?: number; neurons?: number[] };
  heatmap: AtHead & { numbers?: boolean; stage?: string; scale?: string };
  atlas: AtKind;
  columns: AtKind;
  flow: AtKind & { which: string; layer?: number | null };
  attention_math: AtHead & { query: number | null };
  metrics: AtKind;
  metric_map: AtKind & { metric: string };
  passages: AtHead;
  mask: Partial<AtKind> & { which?: MaskName; layer?: number };
  padded: AtStack;
  removal: AtHead & { which?: MaskName | null };
  used_mask: { site: SiteName };
  positions: AtStack & { which?: "matrix" | "curves" | "similarity"; dimensions?: number[] };
  inputs: AtStack & AtPosition;
  nearest_tokens: AtPosition;
  shift: AtStack & { k?: number; shown?: number | null };
  rotary: Partial<AtHead> & { query?: number | null; pair?: number };
  surprisal: Nothing;
  lens: { first?: number };
  masked: AtPosition;
  labels: Nothing;
  choices: { step: number };
  beams: Nothing;
  broken: Nothing;
  broken_text: AtPosition & { what?: string | null; site?: SiteName | null; head?: number };
  intact_text: { forced?: boolean };
  importance: AtKind & { position?: number; by?: "zero" | "mean" };
  contribution: AtPosition & { target?: number };
  other_text: AtPosition;
  patching: AtPosition & {
    other: string;
    stack?: StackName;
    part?: "resid_post" | "z" | "mlp_out";
    kind?: Kind;
    target?: string;
  };
  architecture: Nothing;
  equations: AtPosition & AtHead & { topic?: string; query?: number | null };
  compare: Nothing;
  outcomes: Nothing;
  difference: {
    site: SiteName;
    head: number | "mean";
    other_site?: SiteName | null;
    other_head?: number | "mean" | null;
  };
}
export type MaskName = "padding" | "causal" | "combined";
type AnswerTo<Name extends keyof Asks> = Answers[Name] | Promise<Answers[Name]>;
/** Answers a question about a run or a row of a batch; */
export type Answerer<Name extends keyof Asks> = (item: Item, data: Asks[Name]) => AnswerTo<Name>;
/** about a batch: with all its rows; */
export type AnswererOfBatch<Name extends keyof Asks> = (
  item: Item,
  data: Asks[Name],
  rows: Item[],
) => AnswerTo<Name>;
/** about two runs: with the other. */
export type AnswererOfTwo<Name extends keyof Asks> = (
  item: Item,
  data: Asks[Name],
  rows: Item[],
  other: Item,
) => AnswerTo<Name>;
export type QuestionsByName = { [Name in keyof Asks]: AnswererOfTwo<Name> };

declare module "../../web/types" {
  interface Answers {
    nearest_tokens: { figure: Figure; position: number; labels: string[]; cosines: number[] };
    contribution: { figure: Figure | null; sentence: string; logit?: number };
  }
}

// ---- what Python wrote for the answers: server/page/static_page.py ----

/** Figures without numbers, by name. */
export type FigureName =
  | "alignment" | "beams" | "combined" | "contribution" | "curves" | "difference" | "head" | "importance" | "lens"
  | "lines" | "mask" | "masked" | "matrix" | "nearest" | "outcomes" | "padded" | "patching" | "removed" | "shift"
  | "similarity" | "strips" | "surprisal" | "token";
/** A number of heads. position: whether it is the weight of one place; repeats: of a token that was read before; against:
 * what it is compared with. */
export interface MetricOutline {
  title: string;
  unit: string;
  definition: string;
  label: string | null;
  sign: string | null;
  position: boolean;
  repeats: boolean;
  against: string;
}
/** The numbers of heads, by metric; of: those of a kind of attention; limits: when a head is named after one. */
export interface Measures {
  metrics: Record<string, MetricOutline>;
  of: Record<string, string[]>;
  limits: Record<string, number>;
  rule: string;
}
/** A part of a formula, and its axes: "T × C". */
export interface TensorOutline {
  part: string;
  name: string;
  axes: string;
}
/** A topic without numbers. */
export interface TopicOutline {
  formula: string[];
  code: Excerpt[];
  tensors: TensorOutline[];
  says?: string[];
  is_placed?: boolean;
}
/** topics: by what `at` says of a site. */
export interface EquationOutlines {
  topics: Record<string, Record<string, TopicOutline>>;
  at: Record<SiteName, string>;
  sampling: Record<string, TopicOutline>;
}
/** Where neurons of a feed-forward are most active, by neuron: the sentence's number, -1 for none, and its token there. */
export interface RecordedNeurons {
  sentence: Record<number, number>;
  start: Record<number, number>;
  length: Record<number, number>;
  activation: Record<number, number>;
}
export interface RecordedSentences {
  /** each as it is read, and as it is shown */
  sentences: string[][];
  n_sentences: number;
  neurons: Record<string, RecordedNeurons>;
}
export type Frames = Record<FigureName, Figure> & {
  architecture: Answers["architecture"];
  broken: Answers["broken"];
  equations: EquationOutlines;
  measures: Measures;
  metric_map: Record<string, Record<string, Figure | null>>;
  neurons: RecordedSentences | null;
  passages: {
    heads: Record<string, Record<string, [number: number, text: string][]>>;
    texts: Record<string, string>;
    n_texts: number;
  };
  rotary: Record<"angles" | "pair" | "distance", Figure>;
  teaching: string;
  words: { english: string[]; others: string[] };
};
