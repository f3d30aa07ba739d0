// What the questions of this room answer; tests/static holds the server to it.
import type { Figure, Head, PastRun, Run } from "../../web/types";

/** A token of A and one of B by their places, null for none, and how they differ. */
export type TokenPair = [a: number | null, b: number | null, how: string];
/** The tokens of both runs: of their source, or of their text. */
export interface ComparedText {
  name: "source" | "text";
  a: string[];
  b: string[];
  pairs: TokenPair[];
  counts: Record<string, number>;
}
export interface Comparison {
  texts: ComparedText[];
}
/** A figure, or a sentence that says why there is none. */
export interface FigureOrNone {
  figure?: Figure | null;
  none?: string | null;
}

/** The candidates of a step; searched, sampled: how the one was taken. */
export interface Candidates {
  ids: number[];
  labels: string[];
  probabilities: number[];
  taken: number;
  searched: boolean;
  sampled: boolean;
}

/** The ids of A and B. */
export interface Pair {
  run: string;
  other: string;
}
/** Two runs to compare; a, b: their facts. */
export interface Compared {
  pair: Pair;
  a: Run;
  b: Run;
}
/** A head of a run that is compared; "mean": all heads. */
export type ComparedHead = Omit<Head, "head"> & { head: number | "mean" };

/** A run in the tree of its prompt; leaves: where its text leaves that of its parent. */
export interface Node {
  entry: PastRun;
  leaves: number;
  children: Node[];
  parent: Node | null;
}

// ---- by question ----

declare module "../../web/types" {
  interface Answers {
    compare: Comparison;
    outcomes: FigureOrNone;
    difference: FigureOrNone;
    choices: Candidates;
  }
}
