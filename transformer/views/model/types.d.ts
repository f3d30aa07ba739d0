// What the questions of this room answer; tests/static holds the server to it.

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

export interface Architecture {
  title: string;
  n_parameters: number;
  stacks: Stack[];
  leads: Record<string, Lead>;
}
