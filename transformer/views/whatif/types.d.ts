// What the questions of this room answer; tests/static holds the server to it.
import type { Figure, Head, Question } from "../../web/types";

/** A head, and a token's probability with it and without it. */
export type HeadEffect = Head & { before: number; after: number };

/** change: of ln p by layer and head, for the asked kind of attention; limit: the colours' end. */
export interface Importance {
  figure: Figure;
  label: string;
  log_probability: number;
  most: HeadEffect;
  limit: number;
  change: number[][];
}

/** ln p of the target here and in the other run; lengths: of both texts in tokens. */
export interface PatchMap {
  figure: Figure;
  position: number;
  token: string;
  target: string;
  before: number;
  other: number;
  limit: number;
  lengths: [number, number];
  altered: boolean;
}

/** Texts to patch from: the shown one with a word replaced, and one that teaches. */
export interface OtherText {
  variant: string | null;
  teaching: string;
}

/** An idea that can be left out; loss: nats a token without it, null until it is measured. */
export interface BreakRow {
  what: string;
  says: string;
  why: string;
  loss?: number | null;
}
export interface Costs {
  rows: BreakRow[];
  intact: number | null;
  even: number;
  n_texts: number;
  about: string | null;
}

/** The labels of what is written without something; probability: of an encoder's guess. */
export interface BrokenText {
  labels: string[];
  probability?: number;
}
/** What the intact network writes; same: the place from which on the texts differ. */
export interface IntactText {
  labels: string[];
  n_prompt: number;
  same: number;
  equal: boolean;
}

/** What is left out on a card; asks: of the server; press: switches it off or on again. */
export interface Case {
  key: string;
  asks: Question;
  says: string;
  why: string;
  loss?: number | null;
  ofHead?: boolean;
  isOff?: boolean;
  press?: false | (() => void);
}
/** What a text becomes on a card: the text, or why there is none. */
export type Outcome = string | { problem: string };

/** What is chosen for a map of patches. */
export interface PatchChoice {
  stack: string;
  part: string;
  kind: string;
  target: string;
}
/** Heads that are to be switched off, as plain values of `Ablate`. */
export interface Ablation {
  type: string;
  stack: string;
  layer: number;
  kind?: string;
  heads: number[];
  by?: string;
}
/** What is asked of the importance of heads. */
export interface ImportanceAsked {
  run: string;
  position: number;
  stack: string;
  kind: string;
  by: string;
}
/** The choices of *Switch off heads*; kind: its index among the run's; position: of the map's token. */
export interface AblationChoices {
  of: string | undefined;
  kind: number;
  by: string;
  chosen: Ablation[];
  position: number | null;
}

// ---- by question ----

declare module "../../web/types" {
  interface Answers {
    importance: Importance;
    patching: PatchMap;
    other_text: OtherText;
    broken: Costs;
    broken_text: BrokenText;
    intact_text: IntactText;
  }
}
