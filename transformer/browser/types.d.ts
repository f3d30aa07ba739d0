// What the engine takes and gives. Letters as in docs: T tokens, C = d_model, H heads, D = d_head,
// G heads of keys, L layers, V vocabulary. All arrays are row by row.

export type { PressLine } from "../server/static/types";
import type { ExamplePage, LessonEntry } from "../server/static/types";
import type { Answers, PlainValues, Question as Asked, Run, RunFacts, StoredArray } from "../web/types";

// What kernel.c exports; __heap_base: where its own memory ends.
export interface KernelExports extends WebAssembly.Exports {
  memory: WebAssembly.Memory; multiply: (...values: number[]) => void; widen: (...values: number[]) => void;
  __heap_base: WebAssembly.Global;
}

// A tensor in a kernel's memory. type: 0 float32, 1 float16, 2 bfloat16.
export interface Tensor { address: number; type: number; shape: number[] }

// bias: the address of (nOut,) float32, or 0.
export interface Linear { weight: Tensor; bias: number; nOut: number; nIn: number }

// shift: null in an RMS norm.
export interface Norm { gain: Float32Array; shift: Float32Array | null }

export type StackName = "encoder" | "decoder";
export type Kind = "self" | "cross";
export type SiteName = string; // "decoder.0.self", as in Python

// A checkpoint's config.json under "model": the fields of transformer/model/config.py.
export interface ModelConfig {
  family: "decoder" | "encoder" | "encoder-decoder"; vocab_size: number;
  target_vocab_size: number | null; d_model: number; n_heads: number; n_layers: number;
  target_n_layers: number | null; d_ff: number; max_len: number; target_max_len: number | null; norm: string; norm_kind: string;
  positions: string; activation: string; head_size: number | null; n_key_heads: number | null;
  window: number | null; layer_types: string[]; score_divisor: string; score_scale: number | null;
  score_cap: number | null; logit_scale: number; logit_cap: number | null; residual_scale: number;
  parallel: boolean; gated: boolean; norm_eps: number; norm_heads: boolean;
  norm_embeddings: boolean; tie_embeddings: boolean; share_embeddings: boolean;
  scale_embeddings: boolean; embedding_scale: number; padding_id: number | null;
  target_padding_id: number | null; rotary_size: number | null; rotary_base: number;
  rotary_scaling: string; rotary_factor: number; [field: string]: unknown;
}

export interface AttentionPart {
  query: Linear; key: Linear; value: Linear; output: Linear; queryNorm: Norm | null;
  keyNorm: Norm | null;
}

// Norms of a sub-layer f: of its input, of its output, of their sum with the stream.
export interface Placement { input: Norm | null; output: Norm | null; sum: Norm | null }

export interface Layer {
  self: AttentionPart; selfNorms: Placement; cross: AttentionPart | null;
  crossNorms: Placement | null; gate: Linear | null; expand: Linear; contract: Linear;
  forwardNorms: Placement;
  window: number; // tokens that a token reads back, itself included; Infinity: all
  rotates: boolean;
}

// tokens, positions: (V, C) and (max_len, C); positions null: none are added.
export interface Stack {
  name: StackName; tokens: Tensor; positions: ((position: number) => Float32Array) | null;
  embeddingNorm: Norm | null; layers: Layer[]; norm: Norm | null; maxLen: number;
}

// Interventions as the page and Python's API write them: transformer/interventions/descriptions.py.
export interface Ablate {
  type: "ablate"; stack: StackName; layer: number; heads?: number[] | null; kind?: Kind;
  by?: "zero" | "mean"; part?: "z" | "mlp_out" | "layer"; positions?: number[] | null;
}
export interface Add {
  type: "add"; stack: StackName; layer: number; vector: ArrayLike<number>;
  positions?: number[] | null; part?: "resid_post" | "mlp_out";
}
export interface EditMask {
  type: "mask"; stack: StackName; layer?: number | null; kind?: Kind; without?: string[];
  allow?: [number | null, number | null][]; forbid?: [number | null, number | null][];
}
export interface Break { type: "break"; what: string }
// values: a row for each position, (P, C), or for part "z" (P, H, D) or (P, D). text: another text
// in their place, which Model.resolved replaces by its values.
export interface Patch {
  type: "patch"; stack: StackName; layer: number; positions: number[]; text?: string;
  part?: "resid_post" | "z" | "mlp_out"; heads?: number[] | null; kind?: Kind;
  values?: ArrayLike<number>[] | ArrayLike<number>[][] | null;
}
export type Intervention = Ablate | Add | EditMask | Break | Patch;

// source: the ids that an encoder-decoder's encoder reads. isText: how many tokens of a stack are
// text and not padding behind it; default: all. positions: of each token; default: 0, 1, 2 ...
export interface TextOptions {
  source?: number[]; interventions?: Intervention[];
  nText?: { encoder?: number; decoder?: number };
  positions?: { encoder?: number[]; decoder?: number[] };
}

// What each part adds to one logit; they sum to it. others: "token", "position", "final norm",
// "output bias": those that there are.
export interface Contributions {
  logit: number;
  heads: { self: Float32Array; cross?: Float32Array }; // (L, H) each
  forward: Float32Array; // (L,)
  biases: Float32Array; // (L,)
  others: Record<string, number>;
}

// Every setting of a run, named and checked as Request of transformer/runs/request.py.
export interface Request {
  text: string; max_new_tokens?: number; temperature?: number | null; top_k?: number | null;
  top_p?: number | null; min_p?: number | null; seed?: number; beams?: number;
  length_penalty?: number; repetition_penalty?: number; stop?: string | string[];
  forced_tokens?: number[]; interventions?: Intervention[];
}

// One generated token. probability: the network's; drawn: after temperature and filters, 0 = cut.
// window: the tokens that the step read, [from, to).
export interface Step {
  index: number; token: number; probability: number; drawn: number; nKept: number;
  window: [number, number];
}

export interface BeamNode {
  token: number; parent: number; score: number; state: "alive" | "ended" | "cut";
}
export interface Hypothesis { ids: number[]; score: number; normalised: number; ended: boolean }
export interface Search {
  hypotheses: Hypothesis[]; // best first
  steps: BeamNode[][];
}

export interface Guess { id: number; text: string; label: string; probability: number }
export interface Filled { text: string; ids: number[]; positions: number[]; guesses: Guess[][] }

// text: reads ids from `start` on (0 unless the window slid); the last of a full translator is unread.
export interface Generation {
  text: import("./text.js").Text; ids: number[]; source: number[]; nPrompt: number;
  steps: Step[]; // none of a beam search
  search: Search | null; start: number; stopped: "end" | "stop" | "length" | "read" | "cancelled";
}

// onStep is awaited; signal ends the generation after a token, with what there is.
export interface Watch {
  onStep?: (step: Step, text: import("./text.js").Text) => void | Promise<void>;
  signal?: AbortSignal;
}

// A *.safetensors file of so many bytes, in parts. inPlanes: all first bytes of float16 come before all second ones.
export interface WeightsFile {
  size: number; parts: Iterable<Uint8Array> | AsyncIterable<Uint8Array>; inPlanes?: boolean;
}

// config, tokenizer: the JSON of config.json and tokenizer.json. files: read one by one. kernel: the bytes of kernel.wasm.
export interface Checkpoint {
  name: string; config: { model: object; metadata?: PlainValues };
  tokenizer: TokenizerContent; files: Iterable<WeightsFile>;
  kernel: BufferSource;
}

// What is known of a text that was read: of a run what the page has of it; of a row of a batch its last stack, the labels of
// its source, and n_text, how many tokens of each stack are text and not padding.
export type ItemFacts = Omit<RunFacts, "stack" | "stacks" | "kinds" | "interventions"> & {
  stack: StackName; stacks: StackName[]; kinds: { stack: StackName; kind: Kind; n_layers: number }[];
  n_text: Record<string, number>; interventions: { is: Intervention; says: string }[];
};

// ---- a run that Python has read, as views/export/html.py stores it; see recorded.js ----

// inputs: of each stack to which positions are added.
export interface NumbersOfRun {
  run: Run; lengths: Record<string, number>; inputs: Record<string, RecordedInputs>; normalised: boolean;
  kinds: RecordedKind[];
}
// One kind of attention: its masks and what is stored of its heads, by layer. shape: of a mask.
export interface RecordedKind {
  stack: string; kind: string; n_layers: number; shape: number[]; masks: StoredArray[];
  layers: Record<string, StoredArray>[];
}
// Vectors of positions and of the read tokens. difference: the largest of their sums and what the network read.
export interface RecordedInputs { matrix: StoredArray; token: StoredArray; difference: number }

// ---- calls of the engine in a worker ----

// progress sends the caller something before the result; signal: the caller does not need more.
export interface CallContext { progress: (value: unknown) => void; signal: AbortSignal }
export type Handlers = Record<string, (data: PlainValues, context: CallContext) => unknown>;
export interface Caller {
  call(name: string, data: unknown, options?: Partial<CallContext>): Promise<unknown>;
  end(): void;
}
export type CallMessage =
  | { type: "call"; id: number; name: string; data: unknown }
  | { type: "cancel"; id: number }
  | { type: "speak"; known: import("../web/messages.js").Known };
export type ReplyMessage =
  | { type: "ready" }
  | { type: "progress"; id: number; value: unknown }
  | { type: "result"; id: number; value: unknown }
  | { type: "error"; id: number; message: string; isFault: boolean };
export interface WorkerPort {
  postMessage(message: ReplyMessage): void;
  onmessage: ((event: { data: CallMessage }) => unknown) | null;
}

// ---- a service worker, as far as page/offline.js is one ----

export interface WorkerEvent { waitUntil(work: Promise<void>): void }
export interface RequestEvent extends WorkerEvent {
  request: globalThis.Request; respondWith(answer: Promise<Response>): void;
}
export interface ServiceWorkerScope {
  registration: { scope: string }; clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(name: "install" | "activate", listener: (event: WorkerEvent) => void): void;
  addEventListener(name: "fetch", listener: (event: RequestEvent) => void): void;
}

// ---- a tokenizer ----

// Of another project's tokenizer: "tokenizer" in a checkpoint's metadata.
export interface SpecialIds { start: number; ends: number[]; padding: number | null; mask: number | null }
// tokenizer.json of the tokenizers library, as far as it is read.
export interface TokenizerContent {
  model: { type: string; vocab: Record<string, number>; merges: (string[] | string)[]; [option: string]: unknown };
  added_tokens: { id: number; content: string; [option: string]: unknown }[];
  normalizer: { type: string } | null;
  pre_tokenizer: { type: string; [option: string]: unknown } | null;
  post_processor: { type: string; special_tokens?: PlainValues } | null;
}

// ---- a page without a server: what server/page/static_page.py writes ----

// source: of a file that is no script; keep: the page opens again without a network.
export interface PageFiles {
  address(name: string): string; text: string;
  source(name: string): Promise<import("./page/fetched.js").FileSource> | import("./page/fetched.js").FileSource;
  keep(names: string[]): Promise<void>;
}
// spoken: what is said in the page's language, spokenHere. Of a folder, texts: its first files, on their way; later: a script's address.
export interface WrittenPage {
  site: PageFiles; spokenHere: string; texts: Promise<Response>[]; later: string;
  spoken: {
    words: import("../web/messages.js").Known; cards: Record<string, string>; lessons: LessonEntry[];
    decks: Record<string, Answers["lesson"]>; glossary: unknown;
  };
}
// The JSON of PageFiles.text. answers: about the run that the page opens with.
export interface SiteContent {
  models: Record<string, { files: Record<string, number>; page: ExamplePage; breaks?: string[] }>;
  offered: string[]; batches: string[]; answers: [string, Asked, unknown][];
  layout: import("./page/layout.js").Described[];
}

// ---- beside a server ----

// A model for the browser: sizes of its files by address, addresses of the kernel and of the worker; page: what an
// example answers; breaks: ideas that can be switched off; offered, batches: texts that are no visitor's own.
export interface ServedModel {
  files: Record<string, number>; kernel: string; worker: string;
  page: import("../web/types").PlainValues; breaks: string[]; offered: string[]; batches: string[];
  words: import("../web/messages.js").Known;
}
declare module "../web/types" {
  interface Answers { engine: ServedModel }
}
