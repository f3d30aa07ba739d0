// What the questions of this room answer, and what its components take.
import type { Figure } from "../../web/types";

/** Each token's probability in the three states of the bars; count: of tokens that can be drawn. */
export interface States {
  states: ArrayLike<number>[];
  count: number;
  whyCut: (id: number) => string | null;
}

/** The guesses for a masked token; no more than a null where the tokenizer has no token that hides. */
export interface MaskedToken {
  figure: Figure | null;
  position?: number;
  labels?: string[];
  probabilities?: number[];
}
/** The surprisal of each token; none: why there is none. */
export interface Surprisal {
  figure?: Figure;
  says?: string;
  none?: string;
}
/** A classifier's labels; no more than a null of a network without any. */
export interface LabelScores {
  figure: Figure | null;
  labels?: string[];
  scores?: number[];
  probabilities?: number[] | null;
}
/** A page of the logit lens; columns: of a page. */
export interface LensPage {
  figure: Figure;
  columns: number;
  tied: boolean;
  predicts: boolean;
}
/** Drawn columns, a token each; follows: each says what was expected of its token. */
export interface Columns {
  first: number;
  follows?: boolean;
}

// ---- by question ----

declare module "../../web/types" {
  interface Answers {
    masked: MaskedToken;
    surprisal: Surprisal;
    lens: LensPage;
    beams: { figure: Figure };
    labels: LabelScores;
  }
}
