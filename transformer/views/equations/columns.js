// Formula, code and tensors of a topic as components; see shown.py, source.py and mathml.py. Whatever
// has `data-part` is of one part, and pieces that are of several name them all in `data-parts`.

import { numeral, say, sayN } from "../../web/messages.js";
import { html, useRef, useState } from "../../web/preact.js";
import { Token } from "../../web/text.js";

/** @typedef {[string, string, ...(string | any)[]]} Node of a formula: [tag, part, ...children] */

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

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
// One stop of the tab key, within which arrow keys go on. fill(stop): what stands in it; stop() gives
// the props of the next thing that can be gone to.
const Column = ({ class: look, title, fill }) => {
  const [at, setAt] = useState(0);
  const stops = useRef(/** @type {any[]} */ ([]));
  const press = (event) => {
    const to = stops.current.indexOf(event.target) + STEPS[event.key];
    if (!stops.current[to]) return;
    event.preventDefault();
    setAt(to);
    stops.current[to].focus();
  };
  let count = 0;
  const stop = () => {
    const place = count++;
    return {
      tabindex: place === at ? "0" : "-1",
      ref: (made) => (stops.current[place] = made),
    };
  };
  return html`<section class="equation-side">
    <h4>${title}</h4>
    <div class=${`${look} equation-column`} onKeyDown=${press}>${fill(stop)}</div>
  </section>`;
};
/** @type {(lit: string | null, ...parts: string[]) => string} */
const litClass = (lit, ...parts) => (lit && parts.includes(lit) ? "is-lit" : "");

// ---- the formula ----

const TAGS = new Set([
  "mi", "mn", "mo", "mtext", "mrow", "mfrac", "msqrt", "msub", "msup", "munder", "mtable", "mtr",
  "mtd",
]); // prettier-ignore
/** @type {(node: Node, lit: string | null) => any} */
const built = ([tag, part, ...children], lit) => {
  if (!TAGS.has(tag)) throw new TypeError(tag);
  const name = tag === "mi" && [...String(children[0])].length > 2 ? "name" : "";
  const look = [name, litClass(lit, part)].filter(Boolean).join(" ");
  // The style sheet slants letters: the browser's own slanted ones are in few fonts.
  return html`<${tag} mathvariant=${tag === "mi" ? "normal" : undefined} class=${look || undefined}
    data-part=${part || undefined}>${children.map((one) =>
      typeof one === "string" ? one : built(one, lit),
    )}</${tag}>`;
};
const Formula = ({ node, lit, ...more }) => html`<math ...${more}>${built(node, lit)}</math>`;
/** @type {(node: Node) => string} */
const textOf = ([, , ...children]) =>
  children.map((one) => (typeof one === "string" ? one : textOf(one))).join("");

const formulas = ({ formula, tensors }, lit, stop) => {
  // The symbols as buttons: within the formula itself, which is one thing to who listens to it, nothing
  // may be gone to.
  const button = ({ part, symbol, name }) => html`<button type="button" data-part=${part}
    class=${litClass(lit, part)} aria-label=${`${textOf(symbol)}: ${name}`} ...${stop()}>
    <${Formula} node=${symbol} lit=${lit} />
  </button>`;
  return [
    ...formula.map((node) => html`<${Formula} display="block" ...${{ node, lit }} />`),
    html`<div class="equation-symbols">${tensors.map(button)}</div>`,
  ];
};

// ---- the code ----

// One excerpt of our source: its file, and its lines with the pieces that compute something. The first
// piece of each part can be gone to.
const excerpt = ({ file, symbol, lines }, nameOf, lit, stop) => {
  const seen = new Set();
  const piece = ([text, parts]) => {
    if (!parts.length) return text;
    const fresh = text.trim() ? parts.find((one) => !seen.has(one)) : undefined;
    seen.add(fresh);
    const more = fresh && {
      role: "button",
      "aria-label": `${text.trim()}: ${nameOf(fresh)}`,
      ...stop(),
    };
    return html`<span data-part=${fresh ?? parts[0]} data-parts=${parts.join(" ")}
      class=${litClass(lit, ...parts)} ...${more}>${text}</span>`;
  };
  const line = ({ number, pieces: [[first, parts] = ["", []], ...rest] }) => {
    const bare = first.trimStart(); // what is wrapped stands a little further in
    const indent = { "--indent": `${first.length - bare.length}ch` };
    const shown = number === null ? "⋯" : [[bare, parts], ...rest].map(piece);
    return html`<div class="equation-line"><span class="line-number">${number}</span><code
      style=${indent}>${shown}</code></div>`;
  };
  return html`<figure class="equation-excerpt">
    <figcaption>${file}<wbr />${` · ${symbol}`}</figcaption>
    <div class="equation-lines">${lines.map(line)}</div>
  </figure>`;
};

// ---- the tensors ----

const cell =
  (alone) =>
  ({ label, token, value }) => {
    const truth = ["True", "False"].includes(value) ? `is-${value.toLowerCase()}` : undefined;
    return html`<li class=${truth}><small title=${token}>${label}${
      token !== undefined && [" ", html`<${Token} label=${token} />`]
    }</small><span>${shownNumber(value, alone)}</span></li>`;
  };
// Symbol, name, shape, and some of its numbers.
const tensor = ({ part, symbol, name, axes, cells, more, rest, adds_up: sum, note }, lit, stop) => {
  const whole = (title, value, look) =>
    html`<li class=${`is-rest ${look}`}><small>${title}</small>${
      value !== null && html`<span>${shownNumber(value)}</span>`
    }</li>`;
  return html`<div class=${`equation-tensor ${litClass(lit, part)}`} data-part=${part}>
    <button type="button" class="tensor-name" ...${stop()}>
      <${Formula} node=${symbol} lit=${lit} />${` ${name}`}
    </button>
    <p class="tensor-axes">${axesText(axes)}</p>
    <ul class="tensor-cells">
      ${cells.map(cell(!axes.length))}
      ${more > 0 && whole(sayN("{n} more", "{n} more", more), rest, "is-more")}
      ${sum !== null && whole(say("sum"), sum, "is-sum")}
    </ul>
    ${note && html`<p class="tensor-note">${note}</p>`}
  </div>`;
};

// The three, of which the part `lit` is lit. answer: see Topic.answer of shown.py; nameOf(part).
export const Columns = ({ answer, lit, nameOf }) => html`<div class="equation-columns"
  hidden=${!answer.formula.length}>
  <${Column} class="equation-formula" title=${say("Formula")}
    fill=${(stop) => formulas(answer, lit, stop)} />
  <${Column} class="equation-code" title=${say("Our code")}
    fill=${(stop) => answer.code.map((one) => excerpt(one, nameOf, lit, stop))} />
  <${Column} class="equation-tensors" title=${say("Numbers of this run")}
    fill=${(stop) => answer.tensors.map((one) => tensor(one, lit, stop))} />
</div>`;
