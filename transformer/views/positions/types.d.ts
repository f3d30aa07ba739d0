// What the questions of this room answer; tests/static holds the server to it.
import type { Figure } from "../../web/types";

/** What every question about a stack's positions holds; null while there is no run for it. */
export interface StackAsked {
  run: string;
  stack: string;
}
/** A picture of the positional matrix. */
export interface MatrixPicture {
  figure: Figure;
}

/** lengths: mean lengths of the vectors; position, label: of the token whose parts are drawn as lines;
 * difference: the largest one of the sums and the recorded input of the first layer. */
export interface Inputs {
  strips: Figure;
  token: Figure;
  position: number;
  label: string;
  lengths: { token: number; position: number; sum: number };
  normalised: boolean;
  difference: number;
}

/** Without a figure a fit would fit any matrix, and nothing is said but the largest k.
 * fitted: by least squares; chance: relative_miss of a fit to random numbers. */
export interface FittedShift {
  figure: Figure;
  stack: string;
  k: number;
  fitted: boolean;
  n_pairs: number;
  largest_miss: number;
  relative_miss: number;
  chance: number;
}
export type Shift = Partial<Omit<FittedShift, "figure">> & { figure: Figure | null; largest: number };

/** A head, and the pair of its features that is drawn, where the network rotates them. */
export interface RotaryAsked {
  run: string;
  site: string;
  head: number;
  query: number | null;
  pair: number;
}
export type RotaryPicture = "angles" | "pair" | "distance";
/** says: a sentence for each picture; none of a network that rotates nothing. */
export type Rotary = {
  is_rotary: boolean;
  n_pairs?: number;
  says?: Record<RotaryPicture, string>;
} & Partial<Record<RotaryPicture, Figure>>;

export type BiasPicture = "before" | "bias" | "after";
/** product: what a score is before the bias, "q·k / √16". */
export type Bias = { says: string; product?: string } & Partial<Record<BiasPicture, Figure>>;

// ---- by question ----

declare module "../../web/types" {
  interface Answers {
    positions: MatrixPicture;
    inputs: Inputs;
    shift: Shift;
    bias: Bias;
    rotary: Rotary;
  }
}
