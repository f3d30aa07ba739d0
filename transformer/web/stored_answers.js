// Answers that Python wrote into the page, about the run that it opens with; see server/page/first_answers.py.

import { ARRAY_TYPES, decodeBytes } from "./ask.js";

/** @import { Question } from "./types" */

// A value of their JSON: the array, where it is one's description; see `numbers` of server/page/resources.py.
/** @type {(value: unknown) => unknown} */
export const arrayOr = (value) => {
  const { base64, dtype } = /** @type {{ base64?: string, dtype?: string }} */ (value ?? {});
  return base64 && dtype ? new ARRAY_TYPES[dtype](decodeBytes(base64).buffer) : value;
};

// A question without what it leaves to its defaults, whatever their order.
/** @type {(name: string, data: Question) => string} */
const keyOf = (name, data) =>
  JSON.stringify([
    name,
    ...Object.entries(data)
      .filter(([, value]) => value !== null && value !== undefined)
      .sort(),
  ]);

// answer(name, data): undefined for what is not among them.
/** @type {(answers: [string, Question, unknown][]) => { names: string[], answer: (name: string, data: Question) => unknown }} */
export const storedAnswers = (answers) => {
  const stored = new Map(answers.map(([name, data, answer]) => [keyOf(name, data), answer]));
  const names = [...new Set(answers.map(([name]) => name))];
  return { names, answer: (name, data) => stored.get(keyOf(name, data)) };
};
