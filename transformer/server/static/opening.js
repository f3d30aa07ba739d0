// Opening a state: its model's example comes from the server, then its own batch and run.

import { showFields } from "../../web/fields.js";
import { oneOf, textsOf } from "../../web/declared.js";
import { partsOf, sameRequest } from "../../web/link_text.js";
import { say } from "../../web/messages.js";
import { controls, showProblem, showStatus } from "../../web/store.js";
import { setControls } from "./gradio.js";
import { press, settings as settingsNow, showBatch, showText } from "./presses.js";

/**
 * @typedef {object} How
 * @property {Record<string, any>} [kept] what is to be in boxes and settings in the end
 * @property {any} [facts] of its run, where this visit has shown it
 * @property {boolean} [isChosen] another model was chosen: the visitor's own texts and settings stay
 * @property {string} [tab] the one that stays open
 */

/** @type {(problems: string[]) => void} */
export const report = (problems) => {
  if (problems.length) showProblem(problems.join(" "));
};

const texts = () => ({ text: controls.text, lines: controls.lines });
const STORED = say("A stored example, read by this model.");

// Gives the fields that the state has for the views; null where it could not be opened, or another state is
// wanted by now. A part that fails is reported, and the rest is shown.
/** @type {(state: Record<string, string>, how: How, isWanted: () => boolean) => Promise<Record<string, string> | null>} */
export const openState = async (state, { kept = {}, facts, isChosen, tab }, isWanted) => {
  const parts = partsOf(state);
  /** @type {any} */
  let example = null;
  const wanted = { model: parts.request.model ?? null, typed: isChosen ? texts() : {} };
  const take = (/** @type {any} */ line) => (example = line.example ?? example);
  if (!(await press("examples", wanted, take)) || !isWanted()) return null;
  const problems = [...parts.problems, ...example.problems];
  const { model } = example.run;
  const { lines = parts.lines, text = parts.request.text ?? example.text } = example.own;
  const asked = { ...parts.request, model, text };
  const request = requestFor(asked, example, isChosen, problems);
  furnish(example, { ...request, lines: lines ?? example.lines, ...kept });

  /** @type {(name: string, data: object, of: string) => Promise<any>} */
  const made = async (name, data, of) => {
    /** @type {any} */
    let last = null;
    const isComplete = await press(name, data, (line) => (last = line));
    if (!isComplete || !isWanted()) return false;
    if (last.status.kind === "error") problems.push(last.status.text);
    return last[of] ?? example[of];
  };
  if (lines === undefined) showBatch(example.batch);
  else if (!(await made("batches", { model, lines }, "batch"))) return null;
  const asksForRun = example.own.text || Object.keys(parts.request).some((one) => one !== "model");
  if (facts) {
    showText(facts);
    showStatus({ kind: "done", text: say("Shown again.") });
  } else if (!asksForRun || isStored(asked, example.run)) {
    showText(example.run);
    showStatus({ kind: "done", text: STORED });
  } else {
    const count = problems.length;
    if (!(await made("runs", request, "tokens"))) return null;
    if (problems.length > count) {
      if (isChosen) problems.push(STORED);
      showText(example.run);
    }
  }
  report([...problems, ...showFields(tab === undefined ? parts.views : { ...parts.views, tab })]);
  return parts.views;
};
// Whether the model's example is what is asked for.
/** @type {(asked: Record<string, any>, run: any) => boolean} */
const isStored = (asked, { request }) =>
  request.method ? sameRequest(textsOf(asked), textsOf(request)) : asked.text === request.text; // nothing was generated
// A request with all settings: those that it names, else those that are set; a problem is added to those.
/** @type {(named: Record<string, any>, example: any, isChosen: boolean | undefined, problems: string[]) => Record<string, any>} */
const requestFor = (named, example, isChosen, problems) => {
  const { controls: words, methods, languages, length, lengths } = example;
  const now = settingsNow();
  if (isChosen && lengths.includes(now.length)) now.length = length; // it was left alone
  /** @type {Record<string, any>} */
  const first = { method: methods[0], ...languages };
  /** @type {Record<string, any>} */
  const request = { ...now, ...first, ...named };
  for (const name of Object.keys(first).filter((one) => one in named)) {
    try {
      const values = words[name].choices.map((/** @type {string[]} */ [, value]) => value);
      oneOf(name, named[name], values);
    } catch (error) {
      problems.push(error.message);
      request[name] = first[name];
    }
  }
  const usual = now.temperature || example.temperature;
  request.temperature = request.method === "greedy" ? 0 : (named.temperature ?? usual);
  return request;
};
// Set Gradio's controls: their words are the model's.
/** @type {(example: any, values: Record<string, any>) => void} */
const furnish = ({ controls: words, methods }, { method, ...others }) => {
  const chosen = methods.includes(method) ? method : methods[0]; // another model had it
  const values = Object.entries({ ...others, method: chosen });
  const given = values.map(([name, value]) => [name, withValue(words[name], value)]);
  setControls({ ...words, ...Object.fromEntries(given) });
};
/** @type {(update: any, value: any) => any} */
const withValue = (update, value) => (update ? { ...update, value } : value);
