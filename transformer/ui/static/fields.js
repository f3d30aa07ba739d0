// The page's state as one plain object of texts, {field: value}: what a link, the history and a lesson
// hold. Each part of the page owns some of its fields.

import { batch as together } from "../../web/preact.js";
import { oneOf, wholeNumber } from "./link_text.js";
import { fieldsOf } from "./schema.js";
import { page, reactive, showProblem } from "../../web/store.js";

// What a state says of the run and the batch themselves; every other field is how they are shown.
export const REQUEST = [
  "model", "text", "method", "temperature", "top_k", "top_p", "beams", "penalty", "length", "seed",
  "taken", "forced_tokens", "alter",
]; // prettier-ignore
export const BATCH = ["lines"];
const MOST_WHOLE = 2 ** 31 - 1;

/** @typedef {Record<string, string>} Fields */
/** @type {{ starts: Fields, read: () => any, show: (values: Fields) => void }[]} */
const owners = [];
/** @type {Fields} */
let waiting = {}; // fields of parts that are not on the page yet

// How the shown run is first shown, if it says so: in place of the fields' defaults.
const opening = () => page.run?.opening ?? {};
const startOf = (name, start) => opening()[name] ?? start;
// Show that of it; all other fields stay as they are.
export const showOpening = () => {
  for (const owner of owners) {
    if (!Object.keys(owner.starts).some((name) => name in opening())) continue;
    const now = owner.read() ?? {};
    const kept = Object.fromEntries(
      Object.entries(now).map(([name, value]) => [name, String(value)]),
    );
    give(owner, { ...kept, ...opening() });
  }
};

// A part of the page owns fields. starts: {name: its default}; read() gives what they are now, or
// nothing as yet; show(values) shows all of them, and throws an Error with a sentence for what is not
// to be had.
/** @type {(starts: Fields, read: () => any, show: (values: Fields) => void) => void} */
export const ownFields = (starts, read, show) => {
  const owner = { starts, read, show };
  owners.push(owner);
  const asked = Object.keys(starts).some((name) => name in waiting || name in opening());
  const problem = asked ? give(owner, waiting) : null;
  if (problem) showProblem(problem);
};

/** @type {(owner: { starts: Fields, show: (values: Fields) => void }, values: Fields) => string | null} */
const give = ({ starts, show }, values) => {
  const given = Object.fromEntries(
    Object.entries(starts).map(([name, start]) => [name, values[name] ?? startOf(name, start)]),
  );
  for (const name of Object.keys(starts)) delete waiting[name];
  try {
    show(given);
  } catch (error) {
    return error.message;
  }
  return null;
};

// The fields that differ from their defaults, and those that wait for their part of the page.
/** @type {() => Fields} */
export const shownFields = () => {
  /** @type {Fields} */
  const found = {};
  for (const { starts, read } of owners) {
    for (const [name, value] of Object.entries(read() ?? {})) {
      if (String(value) !== startOf(name, starts[name])) found[name] = String(value);
    }
  }
  return { ...found, ...waiting };
};

// Show these fields, every other one as it is at first. Gives the sentences of what could not be.
/** @type {(values: Fields) => string[]} */
export const showFields = (values) => {
  waiting = { ...values };
  return owners.flatMap((owner) => give(owner, values) ?? []);
};
// What waits for its part of the page is of a run that is no longer shown.
export const forgetWaiting = () => (waiting = {});

// The text of a declared field's value in a link, and the value of a text.
/** @type {(value: any) => string} */
const textOf = (value) => (value === null || value === undefined ? "" : String(value));
/** @type {(declared: any, text: string) => any} */
export const valueOf = ({ type, optional }, text) => {
  if (text === "" && optional) return null;
  if (type === "whole" || type === "number") return text.trim() === "" ? null : Number(text);
  if (type === "flag") return text === "true";
  if (type === "wholes") return text.split(",").map(Number);
  return text;
};
// The same of a link's text; an Error with a sentence for what is not to be had.
/** @type {(field: string, declared: any, text: string) => any} */
const linkedValue = (field, declared, text) => {
  const { type, optional, options, least, most } = declared;
  const given = text !== "" || !optional;
  if (type === "choice" && given) oneOf(field, text, Object.keys(options));
  if (type === "whole" && given) wholeNumber(field, text, least, most ?? MOST_WHOLE);
  return valueOf(declared, text);
};

// What a view declares that a visitor may choose, {field: its value}: a component that reads a field is
// drawn again when it changes, by a control that sets it or by a link; linked(values) follows the
// latter.
/** @type {(view: string, linked?: (values: any) => void) => any} */
export const declaredFields = (view, linked = () => {}) => {
  const declared = Object.entries(fieldsOf(view));
  const texts = (of) =>
    Object.fromEntries(declared.map(([field, one]) => [field, textOf(of(field, one))]));
  const values = reactive(Object.fromEntries(declared.map(([field, one]) => [field, one.default])));
  ownFields(
    texts((_, { default: start }) => start),
    () => texts((field) => values[field]),
    (given) => {
      const read = declared.map(([field, one]) => [field, linkedValue(field, one, given[field])]);
      together(() => Object.assign(values, Object.fromEntries(read)));
      linked(values);
    },
  );
  return values;
};
