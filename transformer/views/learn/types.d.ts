// What the questions of this room answer; tests/static holds the server to it.
import type { ExportedFile } from "../export/types";
import type { DeclaredField, Figure, SentAtlas } from "../../web/types";

/** What was measured at a step, and the head that does most of the exercise's work; accuracy, score: from 0 to 1. */
export interface BestHead {
  step: number;
  accuracy: number;
  site: string;
  head: number;
  score: number;
}
/** What is to be trained: Plan of transformer/learning/training.py. */
export interface Plan {
  task: string;
  preset: string;
  n_layers: number;
  n_heads: number;
  width: number;
  n_steps: number;
  learning_rate: number;
  seed: number;
  feed_forward: boolean;
}
/** The state of a training, and what its network of the step `at` says. step: how far it is of total; before: how
 * many trainings end before it begins; kept: the steps whose network is kept; said: what was learned, in sentences;
 * pictures: by attention, "decoder.self". */
export interface Training {
  id: string;
  state: string;
  why: string;
  before: number;
  step: number;
  total: number;
  at: number;
  kept: number[];
  plan: Plan;
  task: string;
  said: string[];
  question: string;
  wanted: string;
  answer: string;
  best: BestHead | null;
  pictures: Record<string, SentAtlas>;
  curves: Figure;
}

/** The network of a step as a model of this visit; task: the exercise's name. */
export interface AdoptedModel {
  model: string;
  label: string;
  task: string;
  max_new_tokens: number;
  [field: string]: unknown;
}

/** Which training and which of its steps is looked at, null for the last one; question: null for the exercise's
 * example; given: whether a link set the fields, which otherwise follow a recorded training. */
export interface ShownTraining {
  id: string;
  at: number | null;
  question: string | null;
  given: boolean;
}
/** Steps as a film. */
export interface Playing {
  isPlaying: boolean;
  play: () => void;
  stop: () => void;
}
/** A head that is clicked; name: of its attention, "decoder.self". */
export interface PickedHead {
  name: string;
  layer: number;
  head: number;
}
/** A field of this view and its declaration. */
export type Field = [name: string, declared: DeclaredField];

// ---- by question ----

declare module "../../web/types" {
  interface Answers {
    learned: Training;
    train: { id: string };
    steer: object;
    adopt: AdoptedModel;
    checkpoint: ExportedFile;
  }
}
