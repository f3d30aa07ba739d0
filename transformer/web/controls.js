// Controls of a view as components.

import { say } from "../ui/static/messages.js";
import { valueOf } from "../ui/static/fields.js";
import { html } from "./preact.js";

// A menu. options: [[value, text], ...].
export const Select = ({ options, value, set, ...more }) =>
  html`<select ...${more} onChange=${(event) => set(event.target.value)}>
    ${options.map(
      ([one, text]) =>
        html`<option key=${one} value=${one} selected=${String(one) === String(value)}>
          ${text}
        </option>`,
    )}
  </select>`;

// The control of a declared parameter. fields: see declaredFields. changed() follows each choice.
export const Control = ({ field, declared, fields, changed = () => {} }) => {
  const { type, title, options, least, most } = declared;
  const set = (text) => {
    fields[field] = valueOf(declared, text);
    changed();
  };
  const value = fields[field];
  const numeric = ["whole", "number"].includes(type);
  const words = Object.entries(options ?? {}).map(([one, text]) => [one, say(text)]);
  return html`<label class="panel-control"
    >${`${say(title)} `}
    ${
      type === "choice"
        ? html`<${Select} options=${words} value=${value} set=${set} />`
        : type === "flag"
          ? html`<input
              type="checkbox"
              name=${field}
              checked=${value}
              onChange=${(event) => set(String(event.target.checked))}
            />`
          : html`<input
              type=${numeric ? "number" : "text"}
              name=${field}
              min=${least}
              max=${numeric && typeof most === "number" ? most : undefined}
              value=${value ?? ""}
              onChange=${(event) => set(event.target.value)}
            />`
    }
  </label>`;
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
