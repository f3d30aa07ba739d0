// The view state of the page: the value of each field, also before its view is on the page. Each is declared once, in
// Python (see declared.js); in a link, the history and a lesson it is a text.

import { batch as together, computed } from "./preact.js";
import { addProblem, page, reactive } from "./store.js";
import { everyField, fieldsOf, oneOf, textOf, valueOf, wholeNumber } from "./declared.js";

const MAX_WHOLE = 2 ** 31 - 1;

/** @typedef {Record<string, string>} Fields texts by field */

// The values by field: a component that reads one is drawn again when a control or a link changes it.
/** @type {import("./types").PlainValues} */
export const fields = reactive(
  Object.fromEntries(Object.entries(everyField).map(([name, field]) => [name, field.default])),
);
// A field stored outside this module, as in `page`. set(value) throws an Error with a sentence for a value
// that is not available.
/** @type {<Value>(field: string, get: () => Value, set: (value: NonNullable<Value>) => void) => void} */
export const bindField = (field, get, set) => {
  Object.defineProperty(fields, field, { get, set });
  changes[field] = changeOf(field);
};

// A field's initial value: the shown run's, else the declared default.
/** @type {(field: string) => string} */
const startOf = (field) => page.run?.opening?.[field] ?? textOf(everyField[field].default);
// A field's text where it differs from its initial value, else null; worked out again once one of these changes.
/** @type {(field: string) => { readonly value: string | null }} */
const changeOf = (field) => {
  const start = computed(() => startOf(field));
  return computed(() => {
    const text = textOf(fields[field]);
    return text === start.value ? null : text;
  });
};
const changes = Object.fromEntries(
  Object.keys(everyField).map((field) => [field, changeOf(field)]),
);
/** @type {(field: string) => boolean} */
const isChanged = (field) => changes[field].value !== null;
// The fields that differ from their initial values.
/** @type {() => Fields} */
export const shownFields = () =>
  Object.fromEntries(
    Object.entries(changes).flatMap(([field, { value }]) =>
      value === null ? [] : [[field, value]],
    ),
  );
// `shownFields` without those that name a place in this run or batch.
/** @type {() => Fields} */
export const lookFields = () => {
  const shown = shownFields();
  return Object.fromEntries(
    Object.entries(shown).filter(([name]) => everyField[name].use !== "place"),
  );
};

export const STAYS = ["projector", "lesson"]; // of the page, whatever is shown
// What of the page stays as it is where something else is shown: a lesson goes on.
/** @type {() => Record<string, string>} */
export const staying = () => {
  const shown = Object.entries(shownFields());
  return Object.fromEntries(shown.filter(([name]) => STAYS.includes(name)));
};

// Checks of links, by view.
/** @type {Map<string, (names: string[]) => string | null>} */
const checks = new Map();

/** @type {(field: string) => void} */
const resetField = (field) => (fields[field] = valueOf(field, everyField[field], startOf(field)));
/** @type {(field: string, text: string) => string | null} a problem */
const applyField = (field, text) => {
  const { type, optional, options, least, most } = everyField[field];
  const isNone = text === "" && optional;
  try {
    if (type === "choice" && !isNone) oneOf(field, text, Object.keys(options));
    if (type === "int" && !isNone) wholeNumber(field, text, least ?? 0, most ?? MAX_WHOLE);
    fields[field] = valueOf(field, everyField[field], text);
    return null;
  } catch (error) {
    resetField(field);
    return error.message;
  }
};
// Set these fields; returns the problems.
/** @type {(texts: Fields) => string[]} */
export const setFields = (texts) =>
  together(() => {
    const names = Object.keys(everyField).filter((field) => field in texts);
    const wrong = names.map((field) => applyField(field, texts[field]));
    const checked = [...checks.values()].map((check) => check(names));
    return [...wrong, ...checked].filter((one) => one !== null);
  });
// Reset a view's fields to their initial values.
/** @type {(view: string) => void} */
export const resetFields = (view) =>
  together(() => Object.keys(fieldsOf(view)).forEach(resetField));
// Set these fields, and all others to their initial values.
/** @type {(texts: Fields) => string[]} */
export const showFields = (texts) => {
  const starts = Object.keys(everyField).map((field) => [field, startOf(field)]);
  return setFields({ ...Object.fromEntries(starts), ...texts });
};

// follow() is called after a link has set fields of a view, also one opened before the view was on the page, and
// throws an Error with a sentence for what the run does not have.
/** @type {(view: string, follow: () => void) => void} */
export const followLinks = (view, follow) => {
  const own = fieldsOf(view);
  const check = (/** @type {string[]} */ names) => {
    const wanted = names.filter((field) => field in own);
    try {
      if (wanted.length) follow();
      return null;
    } catch (error) {
      wanted.forEach(resetField);
      return error.message;
    }
  };
  checks.set(view, check);
  const problem = check(Object.keys(own).filter(isChanged));
  if (problem) addProblem(problem);
};
