// What this room reads and writes: pictures of the page, and the content of saved pages (views/export/html.py, recorded.py,
// notebook.py; packing.py and pack.js for its arrays).
import type { Item } from "../../browser/item.js";
import type { NumbersOfRun } from "../../browser/types";
import type { Atlas } from "../../web/head_grid.js";
import type { Batch, Question, StoredArray } from "../../web/types";

export type { FlatArray, NestedArray, StoredArray } from "../../web/types";

/** A picture that the visitor can see. draw: the picture as a file, of "png" or "svg". */
export interface VisiblePicture {
  name: string;
  box: Element;
  draw: (format: string) => Promise<Blob>;
}
/** A file that the server made: its text, or base64 of its bytes. */
export interface ExportedFile {
  name: string;
  type: string;
  text?: string;
  base64?: string;
}
/** A file to be saved. */
export interface NamedFile {
  blob: Blob;
  name: string;
}
/** A box in which Plotly has drawn. */
export type PlotBox = HTMLElement & { data: object[]; layout: PlotLayout };
export interface PlotLayout {
  width: number;
  height: number;
  margin?: { l?: number; r?: number; t?: number; b?: number };
}

export interface StoredAtlas {
  pixels: StoredArray;
  masked: StoredArray;
}

/** name of the question, what it is asked with, and the answer with arrays as StoredArray. */
export type StoredAnswer = [name: string, question: Question, answer: unknown];
/** A token that a step could have chosen; sampling_probability: after temperature and filters. */
export interface StepCandidate {
  id: number;
  label: string;
  probability: number;
  sampling_probability: number;
}
/** A step of generation. window: the tokens that it read, [from, to). */
export interface SavedStep {
  token: number;
  window: [number, number];
  n_kept: number;
  candidates: StepCandidate[];
}
/** A text of a saved page. item, answersByKey: made of it once they are needed. */
export interface SavedText extends NumbersOfRun {
  summary: string;
  steps: SavedStep[];
  answers: StoredAnswer[];
  item?: Item;
  answersByKey?: Map<string, unknown>;
}
export interface SavedBatch extends Batch {
  answers: StoredAnswer[];
  answersByKey?: Map<string, unknown>;
}
/** The content of a saved page. frames: figures without numbers, by name. */
export interface SavedNumbers {
  texts: SavedText[];
  batch: SavedBatch;
  frames: Record<string, object>;
}

/** One kind of attention in a notebook; off: the heads that are switched off, by layer. */
export interface NotebookKind {
  stack: string;
  kind: string;
  off: number[][];
  query_labels: string[];
  key_labels: string[];
  queries_before: number;
  keys_before: number;
  atlas: Atlas;
}

// ---- by question ----

declare module "../../web/types" {
  interface Answers {
    export: ExportedFile;
    offline_page: ExportedFile;
  }
}
