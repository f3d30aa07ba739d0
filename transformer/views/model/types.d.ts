// What the questions of this room answer; tests/static holds the server to it.
import type { Attributes } from "../../web/types";

/** A part of a network. each: parameters of one such part, of which its stack has `times`. */
export interface Block {
  name: string;
  kind: string;
  stack: string;
  each: number;
  times: number;
  shared_with: string | null;
  title: string;
  short: string;
  does: string;
  shape: string;
}

/** branch: what is added to the stream; after: what reads the sum. */
export interface Sublayer {
  branch: Block[];
  after: Block[];
}

/** A column of the drawing, from below; reads, writes, shape, times: in words. */
export interface Stack {
  stack: string;
  reads: string;
  writes: string;
  shape: string;
  times: string;
  parallel: boolean;
  before: Block[];
  sublayers: Sublayer[];
  after: Block[];
}

/** Where a kind of block leads: to a tab, or to a topic of the formulas. */
export interface Lead {
  title: string;
  tab?: string;
  equation?: string;
}

/** The formula of kinds of blocks; equation: the topic that shows its code and numbers. */
export interface BlockFormula {
  equation: string;
  title: string;
  formula: string[];
  kinds: string[];
}

export interface Architecture {
  title: string;
  n_parameters: number;
  stacks: Stack[];
  leads: Record<string, Lead>;
  formulas: BlockFormula[];
}

/** A piece of a line of source, and the parts of the formula that it stands for. */
export type Piece = [text: string, parts: string[]];
export interface SourceLine {
  number: number;
  pieces: Piece[];
}
/** Lines of one of our functions. */
export interface Excerpt {
  file: string;
  symbol: string;
  lines: SourceLine[];
}
/** A number of a tensor, as a text where it is none. token: its label, where it is of one. */
export interface FormulaCell {
  label: string;
  token?: string | null;
  value: number | string;
}
/** A tensor of a formula; more: how many of its numbers are not shown. */
export interface FormulaTensor {
  part: string;
  name: string;
  shape: string;
  cells: FormulaCell[];
  more: number;
}
/** A topic's formula, code and numbers for one head and token; see equations.py. */
export interface Equation {
  topic: string;
  site: string;
  head: number;
  query: number;
  formula: string[];
  code: Excerpt[];
  tensors: FormulaTensor[];
  says: string[];
}
/** The attributes of what stands for parts of a formula. */
export type MarkPart = (...parts: string[]) => Attributes;

// ---- by question ----

declare module "../../web/types" {
  interface Answers {
    architecture: Architecture;
    equations: Equation;
  }
}
