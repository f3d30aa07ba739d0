// Questions to the server. One that does not keep the run is told how it was made, and makes it again.

import { requestsFor } from "../../web/store.js";

import { say } from "./messages.js";

export const RUN_GONE = say(
  "The server no longer keeps this run: newer runs took its place, or nobody " +
    "looked at it for ten minutes. Press the button to make it again, or reload the " +
    "page, which brings back the same run and view.",
);

const TIMES = 30; // that a server which makes many runs again is asked
const PAUSE_MS = 1000;

/** @typedef {(data: any) => Promise<any>} Question a function of the server's, as Gradio gives it */

/** @type {Map<Question, number>} */
const names = new Map();
/** @type {(question: Question) => number} */
const nameOf = (question) => {
  if (!names.has(question)) names.set(question, names.size);
  return names.get(question) ?? 0;
};
/** @type {(question: Question, data: any) => Promise<any>} */
const reply = async (question, data) => {
  let answer = await question(data);
  const made = answer?.gone ? requestsFor(data) : null;
  for (let times = 0; made && answer?.gone && times < TIMES; times += 1) {
    if (times) await new Promise((done) => setTimeout(done, PAUSE_MS)); // others are first
    answer = await question({ ...data, made });
  }
  if (answer === undefined || answer === null) {
    throw new Error(say("The server did not answer; is it still running?"));
  }
  if (answer.error) throw new Error(answer.gone ? RUN_GONE : answer.error);
  return answer;
};

/** @type {Map<string, Promise<any>>} */
const pending = new Map();
// Ask the server; a refusal becomes an Error with the server's own sentence. A question that is
// on its way already is not asked again.
/** @type {(question: Question, data: any) => Promise<any>} */
export const ask = (question, data) => {
  const key = `${nameOf(question)} ${JSON.stringify(data)}`;
  const underway = pending.get(key);
  if (underway) return underway;
  const answer = reply(question, data).finally(() => pending.delete(key));
  pending.set(key, answer);
  return answer;
};
