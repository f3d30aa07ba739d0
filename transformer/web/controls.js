// Controls of a view as components.

import { say } from "./messages.js";
import { valueOf } from "./declared.js";
import { kindOf } from "./sites.js";
import { html, useLayoutEffect, useRef } from "./preact.js";
import { useEvent } from "./part.js";
import { page, setQuery } from "./store.js";

// A menu. options: [[value, text], ...].
/** @param {{ options: import("./types").Choice[], value: string | number, set: (value: string) => void } & import("./types").Attributes} props */
export const Select = ({ options, value, set, ...more }) => {
  const option = (/** @type {import("./types").Choice} */ [each, text]) =>
    html`<option key=${each} value=${each} selected=${String(each) === String(value)}>${text}</option>`;
  return html`<select ...${more} onChange=${(/** @type {import("./types").ChangeOf<HTMLSelectElement>} */ { target }) => set(target.value)}>${options.map(option)}</select>`;
};

/** @type {Record<string, string>} */
const INPUTS = { bool: "checkbox", int: "number", number: "number" };
// The control of a declared parameter. changed() follows each choice.
/** @param {{ field: string, declared: import("./types").DeclaredField, fields: import("./types").PlainValues, changed?: () => void }} props */
export const Control = ({ field, declared, fields, changed = () => {} }) => {
  const { type, title, options, least, most } = declared;
  const value = fields[field];
  const set = (/** @type {string} */ text) => {
    const isEmpty = text === "" && INPUTS[type] === "number";
    fields[field] = isEmpty ? null : valueOf(field, declared, text);
    changed();
  };
  const input =
    () => html`<input type=${INPUTS[type] ?? "text"} name=${field} min=${least} max=${most}
    step=${type === "number" ? "any" : undefined} value=${value ?? ""}
    onChange=${(/** @type {import("./types").ChangeOf} */ { target }) => set(target.value)} />`;
  const box = () => html`<input type=${INPUTS[type]} name=${field} checked=${value}
    onChange=${(/** @type {import("./types").ChangeOf} */ { target }) => set(String(target.checked))} />`;
  const menu = () => {
    const words = Object.entries(options).map(([option, text]) => [option, say(text)]);
    return html`<${Select} options=${words} value=${value} set=${set} />`;
  };
  const control = type === "choice" ? menu : type === "bool" ? box : input;
  return html`<label class="panel-control">${`${say(title)} `}${control()}</label>`;
};

// A row of buttons, one per choice. options: [[value, words, hint?], ...]; value: the chosen one.
/** @template {string | number} Value
 * @param {{ name: string, title?: string, options: import("./types").Choice<Value>[], value: Value, set: (value: Value) => void, disabled?: boolean } & import("./types").Attributes} props */
export const Switch = ({ name, title, options, value, set, disabled = false, ...more }) => {
  const button = (
    /** @type {import("./types").Choice<Value>} */ [each, words, hint],
  ) => html`<label title=${hint}>
    <input type="radio" name=${name} value=${each} checked=${each === value} disabled=${disabled}
      onChange=${() => set(each)} /><span>${words}</span>
  </label>`;
  return html`<fieldset ...${more} class=${`switch ${more.class ?? ""}`}>
    <legend>${title}</legend>${options.map(button)}
  </fieldset>`;
};

// One button for each kind of attention, named by `wordsOf`, if there are several; chosen: the index of the
// chosen one.
/** @template {import("./store.js").Kind} Kind
 * @param {{ name: string, kinds: Kind[], chosen: number, choose: (index: number) => void, wordsOf?: (kind: Kind) => string }} props */
export const KindButtons = ({ name, kinds, chosen, choose, wordsOf = kindOf }) => {
  /** @param {Kind} kind @param {number} index */
  const button = (kind, index) => html`<button type="button" class="kind" role="radio"
    aria-checked=${String(index === chosen)} onClick=${() => choose(index)}>${wordsOf(kind)}</button>`;
  return html`<div class="kinds" role="radiogroup" aria-label=${name} hidden=${kinds.length < 2}>
    ${kinds.map(button)}
  </div>`;
};

// Play the text token by token: play, pause, step forward, step back. Later tokens are hidden.

const PAUSE_MS = 1200; // long enough to read what each token reads

// At a token the network chooses the next one, so the walk begins at the last given token and ends before the
// last one.
const first = () => Math.max(page.run.trace_start, page.run.n_prompt - 1);
const last = () => page.run.labels.length - 2;
const here = () => (page.query?.stack === page.run.stack ? page.query.index : -1);

// Whether the visitor wants no motion.
export const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

const FILL_MS = 500;
// Fill an element from the left at each step of the played text; delay: in ms. Without motion the player only steps.
/** @type {(place: number | undefined, delay: number) => { current: HTMLElement | null }} */
export const useFilling = (place, delay) => {
  const filled = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    if (!page.playing) return;
    const frames = { clipPath: ["inset(-20px 100% -20px 0)", "inset(-20px -20px -20px 0)"] };
    filled.current?.animate(frames, { duration: FILL_MS, delay, fill: "backwards" });
  }, [place]);
  return filled;
};

// show(place): how far the text is written. Without motion, each press is a step.
/** @param {{ show: (place: number) => void }} props */
export const Player = ({ show }) => {
  const isPlaying = page.playing;
  const setPlaying = (/** @type {boolean} */ now) => (page.playing = now);
  const isMine = useRef(false); // whether this sets the chosen token
  const goTo = (/** @type {number} */ place) => {
    isMine.current = true;
    setQuery({ stack: page.run.stack, index: place });
    isMine.current = false;
    show(place);
  };
  const stop = () => {
    setPlaying(false);
    show(Infinity);
  };
  const step = (/** @type {number} */ by) => {
    const fits = here() >= first() && here() <= last();
    goTo(Math.min(last(), Math.max(first(), fits ? here() + by : first())));
  };
  const leaf = (/** @type {number} */ by) => {
    setPlaying(false);
    if (last() >= first()) step(by);
  };
  const play = () => {
    if (isPlaying || last() < first()) return setPlaying(false);
    goTo(here() < first() || here() >= last() ? first() : here());
    return setPlaying(true);
  };
  const press = () => (isStill() ? leaf(1) : play());
  useLayoutEffect(() => {
    if (!isPlaying) return undefined;
    const on = () => (here() < 0 || here() >= last() ? stop() : step(1));
    const timer = setInterval(on, PAUSE_MS);
    return () => clearInterval(timer);
  }, [isPlaying]);
  useEvent("run", stop);
  useEvent("query", () => isMine.current || stop());
  const { labels = [], n_prompt: start = 0 } = page.run ?? {};
  return html`<p class="player" hidden=${labels.length - start < 1}>
    <button type="button" class="play-back" aria-label=${say("One token back")} onClick=${() => leaf(-1)}>‹</button>
    <button type="button" class="play" onClick=${press}>${isPlaying ? say("Pause") : say("Play")}</button>
    <button type="button" class="play-on" aria-label=${say("One token on")} onClick=${() => leaf(1)}>›</button>
  </p>`;
};
