// The page's view state as texts by field, as in a link, the history and a lesson. Each field is declared
// once, in Python (see declared.js); its value is here even before its view is on the page.

import { batch as together, computed, signal } from "./preact.js";
import { addProblem, page } from "./store.js";
import { oneOf, wholeNumber, declared, fieldsOf, views } from "./declared.js";

const MOST_WHOLE = 2 ** 31 - 1;

/** @typedef {Record<string, string>} Fields */
/** @type {Record<string, any>} */
const every = Object.assign({}, declared.page, ...views.map(({ controls }) => controls));

// The text of a declared field's value in a link, and the value of a text.
/** @type {(value: any) => string} */
const textOf = (value) => (value === null || value === undefined ? "" : String(value));
/** @type {(declared: any, text: string) => any} */
export const valueOf = ({ type, optional }, text) => {
  if (text === "" && optional) return null;
  if (type === "int" || type === "number") return text.trim() === "" ? null : Number(text);
  if (type === "bool") return text === "true";
  if (type === "intlist") return text.split(",").filter(Boolean).map(Number);
  return text;
};

// ---- the store ----

/** @type {Record<string, { value: string }>} */
const texts = Object.fromEntries(
  Object.entries(every).map(([field, one]) => [field, signal(textOf(one.default))]),
);
// A field stored outside this module, as in `page`. set(text) throws an Error with a sentence for a value
// that is not available.
/** @type {(field: string, get: () => string, set: (text: string) => void) => void} */
export const bindField = (field, get, set) => {
  texts[field] = Object.defineProperty(/** @type {any} */ ({}), "value", { get, set });
};
// A field's text now; a component that reads it is drawn again when it changes.
/** @type {(field: string) => string} */
export const fieldText = (field) => texts[field].value;
/** @type {(field: string, text: string) => void} */
export const setField = (field, text) => void (texts[field].value = text);

// A field's initial value: the shown run's, else the declared default.
/** @type {(field: string) => string} */
const startOf = (field) => page.run?.opening?.[field] ?? textOf(every[field].default);
/** @type {(chosen: (field: string) => boolean) => Fields} */
const fieldsThat = (chosen) =>
  Object.fromEntries(
    Object.keys(every)
      .filter(chosen)
      .map((field) => [field, fieldText(field)]),
  );
// The fields that differ from their initial values.
/** @type {() => Fields} */
export const shownFields = () => fieldsThat((field) => fieldText(field) !== startOf(field));
// `shownFields` without those that name a place in this run or batch.
/** @type {() => Fields} */
export const lookFields = () => {
  const shown = shownFields();
  return Object.fromEntries(Object.entries(shown).filter(([name]) => every[name].use !== "place"));
};

export const STAYS = ["projector", "lesson"]; // of the page, whatever is shown
// What of the page stays as it is where something else is shown: a lesson goes on.
/** @type {() => Record<string, string>} */
export const staying = () => {
  const shown = Object.entries(shownFields());
  return Object.fromEntries(shown.filter(([name]) => STAYS.includes(name)));
};

// Listeners for links, by view.
/** @type {Map<string, (given: Fields) => string | null>} */
const linked = new Map();

/** @type {(field: string, text: string) => string | null} a problem */
const applyField = (field, text) => {
  const { type, optional, options, least, most } = every[field];
  const isNone = text === "" && optional;
  try {
    if (type === "choice" && !isNone) oneOf(field, text, Object.keys(options));
    if (type === "int" && !isNone) wholeNumber(field, text, least, most ?? MOST_WHOLE);
    setField(field, text);
    return null;
  } catch (error) {
    setField(field, startOf(field));
    return error.message;
  }
};
// Set these fields; returns the problems.
/** @type {(given: Fields) => string[]} */
export const setFields = (given) =>
  together(() => {
    const known = Object.keys(every).filter((field) => field in given);
    const wrong = known.map((field) => applyField(field, given[field]));
    const heard = [...linked.values()].map((hear) => hear(given));
    return [...wrong, ...heard].filter((one) => one !== null);
  });
// Reset a view's fields to their initial values.
/** @type {(view: string) => void} */
export const resetFields = (view) =>
  void setFields(
    Object.fromEntries(Object.keys(fieldsOf(view)).map((field) => [field, startOf(field)])),
  );
// Set these fields, and all others to their initial values.
/** @type {(given: Fields) => string[]} */
export const showFields = (given) => {
  const starts = Object.keys(every).map((field) => [field, startOf(field)]);
  return setFields({ ...Object.fromEntries(starts), ...given });
};

// ---- the fields of a view ----

// The declared fields of a view, {field: value}: a component that reads a field is drawn again when a control
// or a link changes it. follow(values, texts) is called for a link, also one opened before this part was on
// the page, and throws an Error with a sentence for what the run does not have.
/** @type {(view: string, follow?: (values: any, texts: Fields) => void) => any} */
export const declaredFields = (view, follow = () => {}) => {
  const own = fieldsOf(view);
  const values = {};
  for (const [field, one] of Object.entries(own)) {
    const value = computed(() => valueOf(one, fieldText(field)));
    const set = (/** @type {any} */ now) => setField(field, textOf(now));
    Object.defineProperty(values, field, { get: () => value.value, set, enumerable: true });
  }
  const hear = (/** @type {Fields} */ given) => {
    const said = Object.keys(own).filter((field) => field in given);
    if (!said.length) return null;
    try {
      follow(
        values,
        fieldsThat((field) => field in own),
      );
      return null;
    } catch (error) {
      for (const field of said) setField(field, startOf(field));
      return error.message;
    }
  };
  linked.set(view, hear);
  const problem = hear(fieldsThat((field) => field in own && fieldText(field) !== startOf(field)));
  if (problem) addProblem(problem);
  return values;
};
