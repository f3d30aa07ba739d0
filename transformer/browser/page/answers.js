// The page's questions as the network in this browser answers them: for a page without a server, and beside one.

import { oneOf } from "../../web/declared.js";
import { pastRun } from "../../web/runs.js";
import { page } from "../../web/store.js";
import { QUESTIONS } from "../questions/names.js";

/**
 * @typedef {import("../../web/types").PlainValues} Data
 * @typedef {import("../../web/ask.js").AnswersByName} Answers
 * @typedef {import("./engine.js").Engine} Engine
 */

// The facts of the run or the batch that a question is about, from which the engine reads it; undefined: it is
// not of this visit.
/** @type {(data: Data) => import("../../web/types").Run | import("../../web/types").Batch | undefined} */
const factsOf = ({ run, batch }) => {
  const id = run ?? batch;
  if (id === undefined) return undefined;
  if (id === page.run?.run) return page.run;
  return id === page.batch?.batch ? page.batch : pastRun(id)?.facts;
};
// The facts of the run that a run is compared with; undefined: there is none.
/** @type {(data: Data) => ReturnType<typeof factsOf>} */
export const otherOf = ({ run, other }) => (run && other ? factsOf({ run: other }) : undefined);
// The model that a question or a request is about, if that is known.
/** @type {(data: Data) => string | undefined} */
export const modelOf = (data) => data.model ?? factsOf(data)?.model;

// What of the boxes is the visitor's own; offered: texts of examples.
/** @type {(typed: Record<string, string>, offered: string[]) => Record<string, string>} */
const ownOf = (typed, offered) =>
  Object.fromEntries(
    Object.entries(typed).filter(([, text]) => text.trim() && !offered.includes(text)),
  );

/**
 * first: the model of a question that names none. offered: texts of examples, and batches, a text a line.
 * @param {Engine} engine
 * @param {string} first
 * @param {string[]} offered
 * @returns {Answers}
 */
export const answersOf = (engine, first, offered) => {
  /** @type {(name: string) => (data: Data) => Promise<unknown>} */
  const asked = (name) => async (data) => {
    const others = otherOf(data);
    if (others) await engine.load(others.model);
    return engine.ask(modelOf(data) ?? first, name, { ...data, facts: factsOf(data), others });
  };
  /** @type {(name: string) => (data: Data, ends?: AbortSignal) => AsyncGenerator<unknown>} */
  const pressed = (name) => (data, ends) => engine.lines(data.model, name, data, ends);
  async function* examples(/** @type {Data} */ { model, typed }) {
    const names = Object.keys(engine.models);
    const problems = [];
    try {
      if (model !== null) oneOf("model", model, names);
    } catch (error) {
      problems.push(error.message);
    }
    const { page: example } = engine.models[names.includes(model) ? model : first];
    yield { example: { ...example, problems, own: ownOf(typed, offered) } };
  }
  return {
    ...Object.fromEntries([...QUESTIONS, "typed"].map((name) => [name, asked(name)])),
    ...{ examples, runs: pressed("runs"), batches: pressed("batches") },
    stop: () => engine.stop(),
  };
};
