// Controls of a view as components.

import { say } from "./messages.js";
import { valueOf } from "./fields.js";
import { kindOf } from "./sites.js";
import { html } from "./preact.js";

// A menu. options: [[value, text], ...].
export const Select = ({ options, value, set, ...more }) => {
  const option = ([one, text]) =>
    html`<option key=${one} value=${one} selected=${String(one) === String(value)}>${text}</option>`;
  return html`<select ...${more} onChange=${({ target }) => set(target.value)}>${options.map(option)}</select>`;
};

// The control of a declared parameter. fields: see declaredFields. changed() follows each choice.
export const Control = ({ field, declared, fields, changed = () => {} }) => {
  const { type, title, options, least, most } = declared;
  const value = fields[field];
  const set = (text) => {
    fields[field] = valueOf(declared, text);
    changed();
  };
  const kind = { flag: "checkbox", whole: "number", number: "number" }[type] ?? "text";
  const input = () => html`<input type=${kind} name=${field} min=${least} value=${value ?? ""}
    max=${kind === "number" ? most : undefined} onChange=${({ target }) => set(target.value)} />`;
  const box = () => html`<input type=${kind} name=${field} checked=${value}
    onChange=${({ target }) => set(String(target.checked))} />`;
  const menu = () => {
    const words = Object.entries(options).map(([one, text]) => [one, say(text)]);
    return html`<${Select} options=${words} value=${value} set=${set} />`;
  };
  const control = type === "choice" ? menu : type === "flag" ? box : input;
  return html`<label class="panel-control">${`${say(title)} `}${control()}</label>`;
};

// A choice of few, all of them seen. options: [[value, words], ...]; value: the chosen one.
export const Switch = ({ name, title, options, value, set, hidden = false }) => {
  const one = ([each, words]) => html`<label>
    <input type="radio" name=${name} value=${each} checked=${each === value}
      onChange=${() => set(each)} /><span>${words}</span>
  </label>`;
  return html`<fieldset class="switch" hidden=${hidden}>
    <legend>${title}</legend>${options.map(one)}
  </fieldset>`;
};

// One button for each kind of attention, where there are several; chosen: the place of the chosen one.
export const KindButtons = ({ name, kinds, chosen, choose }) => {
  const one = (kind, index) => html`<button type="button" class="kind" role="radio"
    aria-checked=${String(index === chosen)} onClick=${() => choose(index)}>${kindOf(kind)}</button>`;
  return html`<div class="kinds" role="radiogroup" aria-label=${name} hidden=${kinds.length < 2}>
    ${kinds.map(one)}
  </div>`;
};
