// What the questions of this room answer; tests/static holds the server to it.
import type { Figure } from "../../web/types";
import type { Kind } from "../../web/store.js";
import type { Part } from "../../web/part.js";
import type { Edits, MaskPlan } from "./mask_edits.js";

/** A picture of a batch, or of one of its masks. */
export interface MaskPicture {
  figure: Figure;
}
/** A head without a mask. acting: the masks that hide something here; which: the one that is taken away, null where
 * none can be; share: of the weight that would go to what it hides. */
export interface Removal {
  figure?: Figure;
  acting: string[];
  which: string | null;
  share: number | null;
  sentence: string;
}
/** The mask of an attention of the shown run, a bit a cell. window: the tokens that a query reads back. */
export interface UsedMask {
  shape: number[];
  allowed: Uint8Array;
  query_labels: string[];
  key_labels: string[];
  window: number | null;
}

/** A cell of the board; -1: the label of its row or column. */
export interface BoardCell {
  query: number;
  key: number;
}
export interface BoardLabels {
  queries: string[];
  keys: string[];
}
/** An attention's edits by "stack.layer.kind", "*" for every layer. */
export interface BoardOf {
  kind: Kind;
  layer: string;
  edits: Map<string, Edits>;
}
/** A mask as a board of cells. applied: whether it is that of the shown run; total, count: of its cells, and of those
 * that are allowed; where: its name; lineEdit("query,*" or "*,key"): the edit of a line. */
export type BoardState = MaskPlan & {
  labels: BoardLabels;
  applied: boolean;
  total: number;
  count: number;
  hasEmptyRow: boolean;
  where: string;
  allowed: (query: number, key: number) => boolean;
  lineEdit: (line: string) => "allow" | "forbid" | null;
  words: (cell: BoardCell) => string;
};
/** change: edits a cell, null while editing is not possible. */
export interface BoardProps {
  part: Part;
  shown: BoardState;
  change: ((cell: BoardCell) => void) | null;
}
/** Labels of the rows or of the columns; edited: the edit of a line. */
export interface LabelsProps {
  name: string;
  side: "top" | "left";
  labels: string[];
  cell: number;
  edited: (place: number) => "allow" | "forbid" | null;
}

/** A question whose answer is a picture, and how it is drawn: see Figure. */
export interface AnswerFigureProps {
  part: Part;
  question: "mask" | "padded";
  data: object | null;
  name: string;
  wide?: string;
  height?: number;
  fit?: object;
  change?: (figure: Figure) => void;
}

// ---- by question ----

declare module "../../web/types" {
  interface Answers {
    mask: MaskPicture;
    padded: MaskPicture;
    removal: Removal;
    used_mask: UsedMask;
  }
}
