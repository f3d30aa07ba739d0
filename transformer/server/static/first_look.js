// The parts that a visitor sees first. Each is drawn in page.html's first look as soon as the page's scripts have
// come, and moves to its place once Gradio has laid out the page, all of them in one frame.

import { signal } from "../../web/preact.js";

/** @import { Mounted, PlainValues } from "../../web/types" */
/** @typedef {{ element: Element, moves: (place: Mounted) => void, place: Mounted | null }} FirstPart */

/** @type {Map<string, FirstPart>} */
const parts = new Map(); // by the id of its element

export const isPlaced = signal(false); // whether Gradio has laid out the page

// Gradio's description of the page's components.
/** @type {() => { type: string, props: PlainValues }[]} */
export const gradioComponents = () =>
  /** @type {{ gradio_config?: PlainValues }} */ (globalThis).gradio_config?.components ?? [];
// What Gradio will give to a component's script.
/** @type {(name: string) => PlainValues} */
const describedProps = (name) => {
  const { value, props } =
    gradioComponents().find((each) => each.props.elem_id === name)?.props ?? {};
  return { value, ...props };
};

// Draw them with what their modules export: {module: {mount}}.
/** @type {(modules: PlainValues) => void} */
export const draw = (modules) => {
  const places = document.querySelectorAll("#first-look [data-part]");
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (places)) {
    const { part: name = "", module = "" } = element.dataset;
    const { mount } = modules[module];
    element.replaceChildren(document.createElement("div"));
    /** @type {FirstPart["moves"]} */
    let moves = () => {};
    const placed = new Promise((done) => (moves = done));
    parts.set(name, { element, moves, place: null });
    const trigger = async (/** @type {string} */ event, /** @type {unknown} */ value) => {
      const gradio = await placed;
      gradio.props.value = value;
      gradio.trigger(event, value);
    };
    (mount[name] ?? mount)({ element, props: describedProps(name), trigger });
    element.closest("#first-look")?.classList.add("drawn");
  }
};

// Gradio has made the element of a component: mount it there, unless it is drawn already.
/** @type {(name: string, mount: (place: Mounted) => void, place: Mounted) => void} */
export const place = (name, mount, given) => {
  const part = parts.get(name);
  if (!part) return mount(given);
  part.place = given;
  if ([...parts.values()].some((each) => !each.place)) return;
  for (const { element: drawn, place: gradio, moves } of parts.values()) {
    const { element } = /** @type {Mounted} */ (gradio);
    element.firstElementChild?.replaceWith(/** @type {Node} */ (drawn.firstElementChild));
    moves(/** @type {Mounted} */ (gradio));
  }
  parts.clear();
  isPlaced.value = true;
  document.querySelector("#first-look:not(.opens)")?.classList.add("opened");
};

// An address that says what is to be shown has been opened: show it in the first look, if that is all of it, and
// Gradio has still to come. Returns whether it is.
export const shows = () => {
  const isWhole = document.body.matches(".first:not(.projector, .embedded, .touring, .typing)");
  if (parts.size && isWhole) document.querySelector("#first-look")?.classList.remove("opens");
  return parts.size > 0 && isWhole;
};
