// What the page shows of its run and batch, as texts by field: what a link, the history and a lesson hold.
// Each field is declared once, in Python (see link_text.js); its value is here, whether or not the part that
// shows it is on the page yet.

import { batch as together, computed, signal } from "./preact.js";
import { addProblem, page } from "./store.js";
import { oneOf, wholeNumber, declared, fieldsOf, views } from "./link_text.js";

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
// A field that stands elsewhere: in `page`, or what is followed from there. set(text) throws an Error with
// a sentence for what is not to be had.
/** @type {(field: string, get: () => string, set: (text: string) => void) => void} */
export const bindField = (field, get, set) => {
  texts[field] = Object.defineProperty(/** @type {any} */ ({}), "value", { get, set });
};
// A field's text now; a component that reads it is drawn again when it changes.
/** @type {(field: string) => string} */
export const fieldText = (field) => texts[field].value;
/** @type {(field: string, text: string) => void} */
export const setField = (field, text) => void (texts[field].value = text);

// How it is first shown: as the shown run says, else as it is declared.
/** @type {(field: string) => string} */
const startOf = (field) => page.run?.opening?.[field] ?? textOf(every[field].default);
/** @type {(chosen: (field: string) => boolean) => Fields} */
const fieldsThat = (chosen) =>
  Object.fromEntries(
    Object.keys(every)
      .filter(chosen)
      .map((field) => [field, fieldText(field)]),
  );
// The fields that are not as they are at first.
/** @type {() => Fields} */
export const shownFields = () => fieldsThat((field) => fieldText(field) !== startOf(field));
// The same without those that name a place in this run or batch.
/** @type {() => Fields} */
export const lookFields = () => {
  const shown = shownFields();
  return Object.fromEntries(Object.entries(shown).filter(([name]) => every[name].use !== "place"));
};

// Who hears of what a link says: by its view.
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
// Show these fields, and all others as they are; gives the sentences of what could not be.
/** @type {(given: Fields) => string[]} */
export const setFields = (given) =>
  together(() => {
    const known = Object.keys(every).filter((field) => field in given);
    const wrong = known.map((field) => applyField(field, given[field]));
    const heard = [...linked.values()].map((hear) => hear(given));
    return [...wrong, ...heard].filter((one) => one !== null);
  });
// Show a view as it is at first.
/** @type {(view: string) => void} */
export const resetFields = (view) =>
  void setFields(
    Object.fromEntries(Object.keys(fieldsOf(view)).map((field) => [field, startOf(field)])),
  );
// Show these fields, and every other one as it is at first.
/** @type {(given: Fields) => string[]} */
export const showFields = (given) => {
  const starts = Object.keys(every).map((field) => [field, startOf(field)]);
  return setFields({ ...Object.fromEntries(starts), ...given });
};

// ---- a view's own ----

// What a view declares that a visitor may choose, {field: its value}: a component that reads a field is
// drawn again when it changes, by a control that sets it or by a link. follow(values, texts) hears of a link,
// also of one that came before this part did, and throws an Error with a sentence for what the run does not have.
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
