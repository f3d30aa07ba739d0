// What a view declares in Python, in the browser: its fields, the answer of its picture, and the component of a view
// without a script, of its controls, pictures and tables.

import { Control } from "./controls.js";
import { fieldsOf, viewNamed } from "./declared.js";
import { fields } from "./fields.js";
import { Figure } from "./figure.js";
import { say } from "./messages.js";
import { mounted, useAnswer, usePart } from "./part.js";
import { html, useMemo } from "./preact.js";
import { siteName } from "./sites.js";
import { chosenRow, page } from "./store.js";

/** @import { Part } from "./part.js" */
/** @import { Attributes, DeclaredField, DeclaredPicture, DeclaredView, PictureAnswer, PlainValues, Run } from "./types" */

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
/** @type {(name: string) => PlainValues} */
const named = (name) => {
  const values = {};
  for (const [field, declared] of Object.entries(fieldsOf(name)))
    Object.defineProperty(values, declared.name, {
      get: () => fields[field],
      set: (value) => {
        fields[field] = value;
      },
      enumerable: true,
    });
  return values;
};
// What a picture is asked with: values, by parameter, and what is chosen on the page.
/** @type {(picture: DeclaredPicture, values: PlainValues) => PlainValues | null} */
const wanted = ({ takes, parameters }, values) => {
  if (takes === "batch") return page.batch && { batch: page.batch.batch, ...values };
  if (!page.run) return null;
  /** @type {PlainValues} */
  const chosen = selection();
  /** @type {PlainValues} */
  const question = takes === "model" ? { model: page.run.model } : { run: page.run.run };
  for (const { name, use } of parameters) {
    if (name in values) question[name] = values[name];
    else if (use === "selection" && chosen[name] !== undefined) question[name] = chosen[name];
  }
  return question;
};
/** @type {(part: Part, picture: DeclaredPicture, values: PlainValues) => { answer: PictureAnswer | null, asked: PlainValues | null }} */
const usePicture = (part, picture, values) =>
  useAnswer(part, /** @type {"picture"} */ (picture.name), wanted(picture, values));

// A view of one picture: run: the shown one; fields: see `named`; answer: of its picture, null before the first;
// ref: the attributes of its element, in which the values asked with become data-NAME; part: for its Figure.
/** @type {(name: string) => { run: Run, fields: PlainValues, answer: PictureAnswer | null, ref: Attributes, part: Part }} */
export const useView = (name) => {
  const part = usePart();
  const own = useMemo(() => named(name), []);
  const { pictures } = /** @type {DeclaredView} */ (viewNamed(name));
  const { answer, asked } = usePicture(part, pictures[0], own);
  return { run: page.run, fields: own, answer, ref: part.attributes({ ...asked }), part };
};

// ---- a view without a script ----

/** @param {{ part: Part, picture: DeclaredPicture, view: DeclaredView, values: PlainValues }} props */
const Picture = ({ part, picture, view, values }) => {
  const { answer } = usePicture(part, picture, values);
  const title = say(picture.title || view.title);
  return html`${answer?.sentence && html`<p>${answer.sentence}</p>`}
    <${Figure} part=${part} name=${picture.name} figure=${answer?.figure} wide=${title} label=${title} />`;
};

/** @param {{ props: { view: string, folded?: string } }} props */
const Panel = ({ props: { view: name, folded } }) => {
  const part = usePart();
  const values = useMemo(() => named(name), []);
  const view = /** @type {DeclaredView} */ (viewNamed(name));
  const control = (/** @type {DeclaredField} */ declared) =>
    html`<${Control} field=${declared.name} declared=${declared} fields=${values} />`;
  const picture = (/** @type {DeclaredPicture} */ each) =>
    html`<${Picture} picture=${each} part=${part} view=${view} values=${values} />`;
  return html`<section class="panel" ...${part.attributes({ run: page.run?.run })}>
    ${!folded && html`<h3 class="panel-title">${say(view.title)}</h3>`}
    <p class="hint panel-help">${say(view.help)}</p>
    <div class="panel-controls">${Object.values(view.controls).map(control)}</div>
    <div class="panel-pictures">${view.pictures.map(picture)}</div>
  </section>`;
};
export const mount = { panel: mounted(Panel) };
