// A view's component and what it declares in Python: the fields, and the answer of its picture.

import { fieldsOf, viewNamed } from "./declared.js";
import { fields } from "./fields.js";
import { useAnswer, usePart } from "./part.js";
import { useMemo } from "./preact.js";
import { siteName } from "./sites.js";
import { chosenRow, page } from "./store.js";

// What the page's chosen head and token say of a picture's parameters.
const selection = () => {
  const { run, head } = page;
  const position = chosenRow(run.stack) === null ? null : page.query.index;
  const step = position === null ? 0 : position - run.n_prompt;
  const last = run.probabilities.length - 1;
  return {
    site: head && siteName(head),
    stack: head?.stack,
    kind: head?.kind,
    layer: head?.layer,
    head: head?.head,
    query: head ? chosenRow(head.stack) : null,
    position,
    step: Math.max(0, Math.min(step, last)),
  };
};

// A view's fields by the names of its function's parameters; setting one changes the page's state.
const named = (name) => {
  const found = {};
  for (const [field, declared] of Object.entries(fieldsOf(name)))
    Object.defineProperty(found, declared.name, {
      get: () => fields[field],
      set: (value) => {
        fields[field] = value;
      },
      enumerable: true,
    });
  return found;
};
// What a picture is asked with: values, by parameter, and what is chosen on the page.
const wanted = ({ takes, parameters }, values) => {
  if (takes === "batch") return page.batch && { batch: page.batch.batch, ...values };
  if (!page.run) return null;
  const chosen = selection();
  const asked = takes === "model" ? { model: page.run.model } : { run: page.run.run };
  for (const { name, use } of parameters) {
    if (name in values) asked[name] = values[name];
    else if (use === "selection" && chosen[name] !== undefined) asked[name] = chosen[name];
  }
  return asked;
};
// The answer of a picture, {answer, asked}, as `useAnswer` gives it.
export const usePicture = (part, picture, values) =>
  useAnswer(part, picture.name, wanted(picture, values));

// A view of several pictures, each of which asks by itself. fields: see `named`; part: for its Figures.
/** @type {(name: string) => { view: any, fields: any, part: any }} */
export const useDeclared = (name) => {
  const part = usePart();
  return { view: viewNamed(name), fields: useMemo(() => named(name), []), part };
};
// A view of one picture: run: the shown one; answer: of its picture, null before the first; ref: the attributes of
// its element, in which the values asked with become data-NAME.
/** @type {(name: string) => { run: any, fields: any, answer: any, ref: any, part: any }} */
export const useView = (name) => {
  const { view, part, ...more } = useDeclared(name);
  const { answer, asked } = usePicture(part, view.pictures[0], more.fields);
  return { run: page.run, answer, ref: part.attributes({ ...asked }), part, ...more };
};
