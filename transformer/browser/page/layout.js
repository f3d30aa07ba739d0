// The page without Gradio: what Gradio's own description of it holds (transformer/server/page/static_page.py), in elements of the same
// names, so that the page's style and scripts fit both. Its events are scripts alone, see server/page/components.py.

import { html, signal, useLayoutEffect, useRef, useState } from "../../web/preact.js";

/** @import { ComponentChild, FunctionComponent } from "preact" */
/** @import { PlainValues } from "../../web/types" */
/**
 * @typedef {object} Described a component or a group of them
 * @property {string} type Gradio's name of it
 * @property {number} id
 * @property {string} [name] of its element
 * @property {string} [classes]
 * @property {PlainValues} props
 * @property {{ module: string, mount: string, bundle: string }} [script] that draws it
 * @property {Described[]} children
 */
/** @typedef {{ targets: [number, string][], inputs: number[], outputs: number[], js: (...values: unknown[]) => unknown, then: Event[] }} Event */

/** @type {Map<number, { value: PlainValues }>} signals of the components' properties */
const parts = new Map();
/** @type {Event[]} */
let events = [];
/** @type {Record<string, PlainValues>} */
let bundles = {};

/** @type {(id: number) => PlainValues} */
const propsOf = (id) => parts.get(id)?.value ?? {};

/** @type {(event: Event) => Promise<void>} */
const run = async ({ inputs, outputs, js, then }) => {
  const result = await js(...inputs.map((id) => propsOf(id).value));
  const values = outputs.length === 1 ? [result] : /** @type {unknown[]} */ (result ?? []);
  outputs.forEach((id, place) => change(id, values[place]));
  for (const next of then) await run(next);
};
/** @type {(id: number, name: string) => void} */
const fire = (id, name) => {
  for (const event of events)
    if (event.targets.some(([of, on]) => of === id && on === name)) void run(event);
};
// Set a component's value, or the properties of an update of Gradio's.
/** @type {(id: number, given: unknown) => void} */
const change = (id, given) => {
  const isUpdate = typeof given === "object" && given !== null && "__type__" in given;
  const { __type__: type, ...update } = /** @type {PlainValues} */ (
    isUpdate ? given : { __type__: "", value: given }
  );
  const part = parts.get(id);
  if (!part || (type && !Object.keys(update).length)) return;
  const before = part.value;
  part.value = { ...before, ...update };
  if ("value" in update && update.value !== before.value) fire(id, "change");
};
// A visitor has set it.
/** @type {(id: number, value: unknown) => void} */
const enter = (id, value) => {
  change(id, value);
  fire(id, "input");
};

// ---- controls ----

/** @param {string} label @param {ComponentChild} control */
const labelled = (label, control) =>
  html`<label class="block-label"><span class="block-info">${label}</span>${control}</label>`;
/** @param {[string, string][]} choices @param {string} value */
const optionsOf = (choices, value) =>
  choices.map(
    ([words, choice]) =>
      html`<option value=${choice} selected=${choice === value}>${words}</option>`,
  );

/** @type {Record<string, (props: PlainValues, id: number) => ComponentChild>} */
const CONTROLS = {
  textbox: ({ label, value, lines }, id) => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || event.shiftKey || lines > 1) return;
      event.preventDefault();
      fire(id, "submit");
    };
    return labelled(
      label,
      html`<textarea rows=${lines} value=${value} onInput=${(/** @type {import("../../web/types").ChangeOf} */ { target }) => enter(id, target.value)} onKeyDown=${press} />`,
    );
  },
  number: ({ label, value, step }, id) => {
    const take = (/** @type {import("../../web/types").ChangeOf} */ { target }) =>
      enter(id, target.value === "" ? null : Number(target.value));
    return labelled(
      label,
      html`<input type="number" step=${step ?? "any"} value=${value ?? ""} onChange=${take} />`,
    );
  },
  slider: ({ label, value, minimum, maximum, step }, id) => {
    const range = { min: minimum ?? 0, max: maximum, step, value };
    const take = (/** @type {import("../../web/types").ChangeOf} */ { target }) =>
      enter(id, Number(target.value));
    return html`<div class="head">${labelled(label, html`<input type="number" ...${range} onChange=${take} />`)}</div>
      <input type="range" aria-label=${label} ...${range} onInput=${take} />`;
  },
  radio: ({ label, choices, value }, id) =>
    html`<fieldset><legend class="block-info">${label}</legend><div class="wrap">${choices.map(
      (
        /** @type {[string, string]} */ [words, one],
      ) => html`<label class=${one === value ? "selected" : ""}>
        <input type="radio" name=${`radio-${id}`} value=${one} checked=${one === value} onChange=${() => enter(id, one)} /><span>${words}</span></label>`,
    )}</div></fieldset>`,
  dropdown: ({ label, choices, value, container }, id) => {
    const take = (/** @type {import("../../web/types").ChangeOf} */ { target }) =>
      enter(id, target.value);
    const menu = html`<select aria-label=${label} value=${value} onChange=${take}>${optionsOf(choices ?? [], value)}</select>`;
    return container === false ? menu : labelled(label, menu);
  },
  html: ({ value }) =>
    html`<div class="html-container" dangerouslySetInnerHTML=${{ __html: value }} />`,
};

/** @param {Described} props */
const Control = ({ type, id, name, classes = "" }) =>
  html`<div class=${`block ${classes}`} id=${name}>${CONTROLS[type](propsOf(id), id)}</div>`;

/** @param {Described} props */
const Button = ({ id, name }) => {
  const { value, variant, size, interactive } = propsOf(id);
  const isOff = interactive === false;
  return html`<button id=${name} class=${`${variant ?? "secondary"} ${size}`} ...${isOff ? { disabled: true } : {}}
    onClick=${() => fire(id, "click")}>${value}</button>`;
};

// What a script of the page draws; see web/part.js.
/** @param {Described} props */
const Scripted = ({ id, name, script }) => {
  /** @type {{ current: HTMLElement }} */
  const box = useRef(null);
  const mount = async () => {
    const bundle = script?.bundle ?? "page";
    const { modules } = bundles[bundle] ?? (await import(bundle));
    const trigger = (/** @type {string} */ event) => fire(id, event);
    const [, of] = script?.mount.split(".") ?? [];
    const mounted = modules[script?.module ?? ""].mount;
    const props = propsOf(id);
    (of ? mounted[of] : mounted)({
      element: box.current,
      props: Object.assign(props, props.props),
      trigger,
    });
    document.dispatchEvent(new CustomEvent("mounted", { detail: box.current }));
  };
  useLayoutEffect(() => void mount(), []);
  return html`<div class="block" id=${name}><div class="html-container">
    <div ref=${box} dangerouslySetInnerHTML=${{ __html: "<div></div>" }} />
  </div></div>`;
};

// ---- what holds others ----

/** @type {(props: { children: Described[] }) => ComponentChild} */
const Parts = ({ children }) =>
  children.map((child) => html`<${Part} key=${child.id} of=${child} />`);

/** @param {Described} props */
const Accordion = ({ name, id, children }) => {
  const [isOpen, setOpen] = useState(false);
  return html`<div class="block accordion" id=${name}>
    <button class="label-wrap" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}><span>${propsOf(id).label}</span><span class="icon">${isOpen ? "▾" : "▸"}</span></button>
    <div class="column gap" hidden=${!isOpen}><${Parts} children=${children} /></div>
  </div>`;
};

/** @param {Described} props */
const Tabs = ({ children }) => {
  const [open, setOpen] = useState(children[0]);
  const opened = useRef(new Set());
  opened.current.add(open.id);
  useLayoutEffect(() => fire(open.id, "select"), [open.id]);
  const nameOf = (/** @type {Described} */ one) => propsOf(one.id).id;
  const press = (/** @type {import("../../web/types").KeyIn} */ event) => {
    /** @type {Record<string, number>} */
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    if (!(event.key in steps)) return;
    const all = /** @type {HTMLElement[]} */ ([...event.currentTarget.children]);
    const next = all.indexOf(event.target) + steps[event.key];
    all[(next + all.length) % all.length].focus();
  };
  const button = (
    /** @type {Described} */ one,
  ) => html`<button role="tab" data-tab-id=${nameOf(one)} id=${`tab-${nameOf(one)}`}
    class=${one === open ? "selected" : ""} aria-selected=${String(one === open)} tabindex=${one === open ? 0 : -1} aria-controls=${`panel-${nameOf(one)}`}
    onClick=${() => setOpen(one)}>${propsOf(one.id).label}</button>`;
  const panel = (
    /** @type {Described} */ one,
  ) => html`<div class="tabitem" role="tabpanel" id=${`panel-${nameOf(one)}`} aria-labelledby=${`tab-${nameOf(one)}`} key=${one.id}
    hidden=${one !== open}><div class="column gap">${opened.current.has(one.id) && html`<${Parts} children=${one.children} />`}</div></div>`;
  return html`<div class="tabs">
    <div class="tab-wrapper"><div class="tab-container" role="tablist" onKeyDown=${press}>${children.map(button)}</div></div>
    ${children.map(panel)}
  </div>`;
};

/** @type {Record<string, FunctionComponent<Described>>} */
const GROUPS = { tabs: Tabs, accordion: Accordion, button: Button };
/** @type {(props: { of: Described }) => ComponentChild} */
const Part = ({ of }) => {
  const { type, name, classes = "", children } = of;
  if (of.script) return html`<${Scripted} ...${of} />`;
  if (type in GROUPS) return html`<${GROUPS[type]} ...${of} />`;
  if (type in CONTROLS) return html`<${Control} ...${of} />`;
  const kind = type === "group" ? "styler" : `${type} gap`;
  return html`<div class=${`${kind} ${classes}`} id=${name}><${Parts} children=${children} /></div>`;
};

/** @type {(component: Described) => void} */
const keep = (component) => {
  parts.set(component.id, signal(component.props));
  component.children.forEach(keep);
};
const MAIN = ["main", "fillable", "column", "gap"].join(" "); // Gradio's names
// The whole layout as an element. scripts: bundles that have come, by name: what they draw is drawn at once.
/** @param {Described[]} layout @param {Event[]} happens @param {Record<string, PlainValues>} [scripts] */
export const pageOf = (layout, happens, scripts = {}) => {
  events = happens;
  bundles = scripts;
  layout.forEach(keep);
  return html`<div class="gradio-container"><main class=${MAIN}><${Parts} children=${layout} /></main></div>`;
};
