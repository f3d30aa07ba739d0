// What the requests of lessons and of classes answer: transformer/server/learn/lessons.py and class_routes.py.
import type {
  Answered,
  Answering,
  BatchFacts,
  CardOf,
  PlainValues,
  RunFacts,
  TextFacts,
} from "../../web/types";

/** A lesson in the list of all. checks: how many of its steps are graded. */
export interface LessonEntry {
  name: string;
  title: string;
  about: string;
  minutes: number;
  checks: number;
}

/** The answer to a step: the state that shows it, a number or an option; trains: Train is pressed then. */
export interface Solution {
  state?: PlainValues;
  trains?: boolean;
  number?: number;
  option?: number;
}
/** How many held-out questions a network answers right, of how many. */
export interface Examined {
  task: string;
  asked: number;
  intact: number;
  altered: number;
}

/** A line of the answer to a press; see server/page/presses.py. before: how many requests are served first. */
export interface PressLine {
  before?: number;
  tokens?: RunFacts | TextFacts;
  batch?: BatchFacts;
  status?: { kind: string; text: string };
  running?: boolean;
  example?: ExamplePage;
  detail?: string;
}
/** What a Gradio update sets of a control; choices: [words, value]. */
export interface ControlUpdate {
  choices?: [words: string, value: string][];
  value?: unknown;
  [property: string]: unknown;
}
/** A model's stored run and batch. controls: what the page's controls say of the model; first: their values;
 * temperature: of a method that samples; lengths: how many tokens each model writes at first; own: the visitor's own
 * texts of those in the boxes. */
export interface ExamplePage {
  run: RunFacts;
  batch: BatchFacts;
  first: PlainValues;
  temperature: number;
  lengths: number[];
  own: { text?: string; lines?: string };
  controls: Record<string, ControlUpdate>;
  problems: string[];
}
/** What a phone shows while nothing is asked. */
export interface NothingAsked {
  rev?: number;
  name: "";
  says?: string;
}

/** A code's picture and address, or why there is none; says: in words. */
export interface CodePicture {
  picture?: string;
  address?: string;
  says?: string;
}

/** An option that phones tap; at: its place in the lesson, or of its token or head. */
export interface PollOption {
  at: number;
  text: string;
}
/** What phones are asked. kind: "options" to tap, a "number" to enter, a "text" for the network, "" for nothing;
 * look: of the options, a "list", "tokens" or "heads"; stack: whose tokens they are; over: whether the answer is
 * shown; best: the right one then; rev: counts what is shown. name: "" while nothing is asked. */
export interface Poll {
  rev: number;
  name: string;
  title: string;
  question: string;
  kind: string;
  look: string;
  stack: string;
  over: boolean;
  best: number | null;
  options: PollOption[];
}
/** A phone's text, and what the network went on with. */
export interface ClassText {
  text: string;
  said: string;
  right: boolean;
}
/** What the teacher's page is told. counts: [answer, how often]; right: the right answers once it is over;
 * answered: how many phones have; guessed: how many guessed right before. */
export interface Tally extends Poll {
  phones: number;
  answered: number;
  counts: [answer: number, count: number][];
  right: number[] | null;
  texts?: ClassText[];
  guessed?: { right: number; all: number; text: string };
}
/** What a phone is told. answer: its own; says: the verdict on its text, or what there is to wait for. */
export interface PhonePoll extends Poll {
  answer: number | null;
  right: boolean | null;
  explains: string[];
  text: string;
  says?: string;
  guessed?: { right: boolean | null; text: string };
}
/** What a phone answers. */
export type SendAnswer = (answer: number) => void;
/** Says what is wrong; "" for nothing. */
export type SayProblem = (text: string) => void;

/** A class that this page teaches. */
export interface HeldClass {
  code: string;
  key: string;
}
/** What phones are to show; {} for no step. phase: "guess", "task" or "shown"; order: of the options. */
export interface ShownStep {
  name?: string;
  step?: number;
  phase?: string;
  order?: number[] | null;
}
/** An error of a request, with its status where the server answered. */
export interface RequestError {
  message: string;
  status?: number;
}
/** left: {code, key} of a class before the page was loaded again, as JSON, null for a new one; lesson, step: the
 * shown card's, step from 1; words, state: of it, words null without a card; solve: shows its answer; bringPicture:
 * scrolls to a section's picture, and gives what stops that; end: the class is over. */
export interface ClassProps {
  left: string | null;
  lesson: string;
  step: number;
  words: CardOf | null;
  state: Answered & Answering;
  solve: () => void;
  bringPicture: (section: string) => () => void;
  end: () => void;
}

// ---- by question ----

declare module "../../web/types" {
  interface Answers {
    lessons: { lessons: LessonEntry[] };
    lesson: { name: string; title: string; steps: (Omit<CardOf, "state"> & { state: PlainValues })[] };
    grade: { right: boolean | null; says: string };
    solve: Solution;
    examined: Examined;
    code: { address: string; picture: string };
    "class/open": HeldClass;
    "class/tally": Tally;
    "class/end": object;
    "class/asked": PhonePoll;
    "class/answer": PhonePoll;
    class_text: PhonePoll;
    show_step: object;
  }
}
