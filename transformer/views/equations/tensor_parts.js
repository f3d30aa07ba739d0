// Code and tensors of a topic as elements; see views/equations/shown.py and source.py.

import { el, tokenElement } from "../../ui/static/dom.js";
import { numeral, say, sayN } from "../../ui/static/messages.js";
import { mathElement } from "./math_element.js";

// A number of a tensor: "0.247", "−1.394", "2.1e−5"; alone, a whole one as "4"; a text as it is.
/** @type {(value: number | string, alone?: boolean) => string} */
export const shownNumber = (value, alone = false) => {
  if (typeof value === "string") return value;
  const size = Math.abs(value);
  if (size >= 1e5 || (size > 0 && size < 0.0005)) {
    return numeral(value.toExponential(1)).replaceAll("-", "−").replace("e+", "e");
  }
  const whole = alone && Number.isInteger(value);
  return numeral(whole ? String(value) : value.toFixed(3)).replace("-", "−");
};

// "B × H × Tq × D = 1 × 8 × 17 × 32", or nothing for a single number.
/** @type {(axes: [string, number][]) => string} */
export const axesText = (axes) => {
  if (!axes.length) return "";
  const letters = axes.map(([letter]) => letter);
  const sizes = axes.map(([, size]) => String(size));
  return `${letters.join(" × ")} = ${sizes.join(" × ")}`;
};

/** @type {(made: any, part: string, label: string) => void} */
const asStop = (made, part, label) => {
  made.dataset.part = part;
  made.setAttribute("role", "button");
  made.setAttribute("aria-label", label);
  made.setAttribute("tabindex", "-1");
};

// The symbols of a formula as buttons: within the formula itself, which is one thing to who listens to
// it, nothing may be gone to.
/** @type {(tensors: any[]) => HTMLElement} */
export const symbolButtons = (tensors) => {
  const made = el("div", "equation-symbols");
  made.append(
    ...tensors.map(({ part, symbol, name }) => {
      const [button, math] = [el("button"), mathElement(symbol)];
      button.append(math);
      asStop(button, part, `${math.textContent}: ${name}`);
      return button;
    }),
  );
  return made;
};

// One excerpt of our source: its file, and its lines with the pieces that compute something.
/** @type {(code: any, nameOf: (part: string) => string) => HTMLElement} */
export const codeElement = (code, nameOf) => {
  const made = el("figure", "equation-excerpt");
  const name = el("figcaption", "", code.file);
  name.append(el("wbr"), ` · ${code.symbol}`);
  const box = el("div", "equation-lines");
  const seen = new Set();
  for (const { number, pieces } of code.lines) {
    const line = el("div", "equation-line");
    line.append(el("span", "line-number", number ?? ""));
    const text = el("code", "", number === null ? "⋯" : undefined);
    const [[first, ...others] = ["", []], ...rest] = pieces;
    const bare = String(first).trimStart(); // what is wrapped stands a little further in
    text.style.setProperty("--indent", `${String(first).length - bare.length}ch`);
    const shown = number === null ? [] : [[bare, ...others], ...rest];
    text.append(...shown.map((piece) => pieceElement(piece, seen, nameOf)));
    line.append(text);
    box.append(line);
  }
  made.append(name, box);
  return made;
};

/** @type {(piece: [string, string[]], seen: Set<string>, nameOf: (part: string) => string) => any} */
const pieceElement = ([text, parts], seen, nameOf) => {
  if (!parts.length) return text;
  const made = el("span", "", text);
  const [part] = parts;
  Object.assign(made.dataset, { part, parts: parts.join(" ") });
  const fresh = parts.filter((one) => !seen.has(one));
  if (fresh.length && text.trim()) {
    seen.add(fresh[0]);
    asStop(made, fresh[0], `${text.trim()}: ${nameOf(fresh[0])}`);
  }
  return made;
};

// One tensor: symbol, name, shape, some of its numbers.
/** @type {(tensor: any) => HTMLElement} */
export const tensorElement = (tensor) => {
  const made = el("div", "equation-tensor");
  const head = el("button", "tensor-name");
  head.append(mathElement(tensor.symbol), ` ${tensor.name}`);
  made.dataset.part = tensor.part;
  head.setAttribute("tabindex", "-1");
  const axes = el("p", "tensor-axes", axesText(tensor.axes));
  const cells = el("ul", "tensor-cells");
  const alone = !tensor.axes.length;
  cells.append(...tensor.cells.map((cell) => cellElement(cell, alone)), ...restElements(tensor));
  made.append(head, axes, cells);
  if (tensor.note) made.append(el("p", "tensor-note", tensor.note));
  return made;
};

/** @type {(cell: any, alone: boolean) => HTMLElement} */
const cellElement = ({ label, token, value }, alone) => {
  const made = el("li");
  const place = el("small", "", label);
  if (token !== undefined) place.append(" ", tokenElement(token));
  if (token !== undefined) place.title = token;
  made.append(place, el("span", "", shownNumber(value, alone)));
  if (value === "True" || value === "False") made.classList.add(`is-${value.toLowerCase()}`);
  return made;
};

/** @type {(tensor: any) => HTMLElement[]} */
const restElements = ({ more, rest, adds_up: sum }) => {
  const made = [];
  const add = (name, value, className) => {
    const one = el("li", `is-rest ${className}`);
    one.append(el("small", "", name));
    if (value !== null) one.append(el("span", "", shownNumber(value)));
    made.push(one);
  };
  if (more) add(sayN("{n} more", "{n} more", more), rest, "is-more");
  if (sum !== null) add(say("sum"), sum, "is-sum");
  return made;
};
