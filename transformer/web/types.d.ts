// What components and hooks of this room take; the page's own state is described in store.js.
import type { ComponentChild } from "preact";
import type { Effects } from "./effects.js";
import type { Atlas } from "./head_grid.js";
import type { HeadNumbers } from "./head_numbers.js";
import type { Look } from "./heatmap.js";
import type { Part } from "./part.js";
import type { Reading } from "./text.js";
import type { Batch, Head, Query, Run } from "./store.js";

/** A place in a heatmap; one that is lit may be a row or a column alone. */
export interface Cell {
  row: number;
  column: number;
}
export interface LitCell {
  row: number | null;
  column: number | null;
}

/** An element in which Plotly has drawn; its private fields are read by cells.js and plots.js alone. */
export type Drawn = HTMLElement & Record<string, any>;
/** What Plotly tells of a click or of the pointer. */
export interface Pointed {
  points: { x: number; y: number; [name: string]: any }[];
}
/** A figure of Plotly as JSON. */
export interface Figure {
  data: any[];
  layout: any;
}

/** Bytes of an answer; base64 in a saved page. */
export type Bytes = Uint8Array<ArrayBuffer> | string;
/** All heads of one attention, small, before atlasOf of head_grid.js. */
export interface SentAtlas {
  shape: number[];
  pixels: Bytes;
  masked: Bytes;
}

export type KeyIn<Element = any> = KeyboardEvent & { currentTarget: Element; target: any };
export type ChangeOf<Element = HTMLInputElement> = Event & { target: Element };
export type Attributes = Record<string, any>;

/** A choice: its value, its words, and where it needs one a hint. */
export type Choice<Value = any> = [value: Value, words: ComponentChild, hint?: string];

/** What Python declares of a field: transformer/views/parameters.py. */
export interface DeclaredField {
  name: string;
  type: string;
  title: string;
  use: string;
  default: any;
  optional?: boolean;
  options: Record<string, string>;
  least?: number | null;
  most?: number | null;
}
/** What Python declares of a picture and of a view: transformer/views/declaration.py. */
export interface DeclaredPicture {
  name: string;
  title: string;
  help: string;
  takes: string;
  network: boolean;
  idle: boolean;
  parameters: { name: string; use: string }[];
}

/** A card of a deck. says, explains: paragraphs. */
export interface CardOf {
  title: string;
  says: string[];
  /** what to look at */
  look?: string;
  /** whether the text and the settings stay in sight */
  types?: boolean;
  /** whether the button that generates does, with the bars of what comes next */
  presses?: boolean;
  /** fields of a link; none: the page stays as it is */
  state: Record<string, string>;
  /** of a lesson: a question before the picture opens */
  guess?: string;
  guesses?: string[];
  /** the place of the right one, -1 where none is */
  guessed?: number;
  /** what there is to do */
  task?: string;
  /** how that is answered: click (head, token, cell), number, choose, run */
  check?: string;
  options?: string[];
  /** which of these keep their order: they are ranges */
  ordered?: { guesses: boolean; options: boolean };
  hints?: string[];
  /** shown once it is answered */
  explains?: string[];
}
/** The tour's name is "". */
export interface Deck {
  name: string;
  title: string;
  cards: CardOf[];
}

/** A text that is shown: of a finished run, or of one that is being written. */
export type TextFacts = Run;
/** A finished run by its number in the order of this page. */
export interface PastRun {
  number: number;
  facts: Run;
}
/** A place of a head, and what a class has said of it. */
export interface HeadSign {
  layer: number;
  head: number;
  sign: string;
  label: string;
}

/** What a visitor has said of a card; guess: the place of the chosen one; hints: how many are shown. */
export interface Answered {
  guess: number | null;
  text: string;
  option: number | null;
  hints: number;
  right: boolean | null;
  says: string;
  solved: boolean;
}
/** See useAnswers in card.js. */
export interface Answering {
  set: (change: Partial<Answered>) => void;
  tell: (right: boolean | null, says: string) => void;
  give: (said: { number?: number; option?: number }) => void;
}

/** Called with a head of the grid. */
export type HeadChoice = (layer: number, head: number) => void;

/** See Heatmap in heatmap.js. */
export type HeatmapProps = {
  part: Part;
  numbers: HeadNumbers | null;
  meanwhile: any;
  look: Look;
  title: string;
  keys: string;
  room: (box: Drawn) => any;
  lit: LitCell;
  start: () => LitCell | null;
  over: (cell: LitCell | null, byKeys?: boolean) => void;
  pin: (cell: LitCell, byKeys?: boolean) => void;
};

/** See HeadGrid in head_grid.js. */
export type HeadGridProps = {
  atlas: Atlas;
  chosen?: { layer: number; head: number } | null;
  choose: HeadChoice;
  press?: HeadChoice;
  isAblated?: (layer: number, head: number) => boolean;
  signs?: HeadSign[];
  share?: number;
  isZoomed?: boolean;
} & Attributes;

/** One head of a grid. */
export type HeadProps = {
  atlas: Atlas;
  layer: number;
  head: number;
  isChosen: boolean;
  isStop: boolean;
  isAblated: boolean;
  sign?: HeadSign;
  choose: HeadChoice;
  press?: HeadChoice;
  apart: string;
  keys: Attributes;
};

/** A token and the weights with which it reads. */
export interface Read {
  token: Query;
  reading: Reading;
}
/** See Tokens in tokens.js. */
export type TokensProps = {
  facts: TextFacts;
  stack: string;
  class: string;
  title: string;
  read: Read | null;
  lit: { query: Query; key: Query } | null;
  written: number;
  ghost?: string;
  guesses?: Record<number, string>;
  isStory?: boolean;
  mattering?: Effects | null;
};

export type { Batch, Head, Query, Run };
