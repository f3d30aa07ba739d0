// A formula, the lines of our source that compute it, and this run's tensors, for the chosen head and token.
//
// Whatever has `data-part` belongs to that part of the formula.

import { capital, numeral, say, sayN } from "../../web/messages.js";
import { html, useState } from "../../web/preact.js";
import { Token } from "../../web/text.js";
import { fields } from "../../web/fields.js";
import { Switch } from "../../web/controls.js";
import { fieldsOf } from "../../web/declared.js";
import { headLookedAt, predictedPosition } from "../../web/selection.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";

// ---- formulas as text, drawn as MathML ----

/** @import { ComponentChild } from "preact" */
/** @import { Attributes } from "../../web/types" */

const TOKEN =
  /(?<space>\s*)(?:"(?<mtext>[^"]*)"|(?<mn>\d+(?:[.,\u00a0\u202f]\d+)*)|(?<mi>\p{L}+′?|∞)|:(?<part>\w+)|(?<mo>\/\/|\S))/gu;
/** @type {(tag: string, ...children: ComponentChild[]) => ComponentChild} */
const mathElement = (tag, ...children) => html`<${tag}>${children}</${tag}>`;
/** @type {(terms: ComponentChild[]) => ComponentChild} */
const row = (terms) => (terms.length === 1 ? terms[0] : mathElement("mrow", ...terms));
// The style sheet slants letters: the browser's own slanted ones are in few fonts.
/** @param {string} text */
const identifier = (text) =>
  html`<mi mathvariant="normal" class=${[...text].length > 2 ? "name" : undefined}>${text}</mi>`;

// The formula "s:scores = {q:q K:k^T} / √D:root" as elements.
//
// `_` and `^` set an index and a power, `/` a fraction, `√` a root; `//` is a plain slash. Braces
// group and are not seen, `f(x)` applies a function, and "..." are words. `:part` names the symbol
// before it; symbols: gets the first of each part.
/** @type {(formula: string, of: (part: string) => Attributes, symbols: Record<string, ComponentChild>) => ComponentChild} */
const elements = (formula, of, symbols) => {
  const tokens = [...formula.matchAll(TOKEN)].map(({ groups }) => {
    const { space, ...kinds } = groups ?? {};
    const [kind = "", text = ""] =
      Object.entries(kinds).find(([, match]) => match !== undefined) ?? [];
    return { kind, text, touches: !space };
  });
  const next = () => tokens.shift() ?? { kind: "", text: "" };
  const takes = (/** @type {string} */ sign) => tokens[0]?.text === sign && Boolean(tokens.shift());

  const named = (/** @type {ComponentChild} */ node) => {
    if (tokens[0]?.kind !== "part") return node;
    const { text: part } = next();
    symbols[part] ??= node;
    return html`<mrow ...${of(part)}>${node}</mrow>`;
  };
  const fenced = () =>
    mathElement("mrow", mathElement("mo", "("), ...terms(")"), mathElement("mo", ")"));
  /** @type {() => ComponentChild} */
  const atom = () => {
    if (takes("{")) return row(terms("}"));
    if (takes("(")) return fenced();
    if (takes("√")) return mathElement("msqrt", atom());
    const { kind, text } = next();
    return kind === "mi" ? identifier(text) : mathElement(kind, text === "//" ? "/" : text);
  };
  const scripted = () => {
    const index = tokens[0]?.text === "∑" ? "munder" : "msub";
    let node = named(atom());
    if (takes("_")) node = mathElement(index, node, atom());
    if (takes("^")) node = mathElement("msup", node, atom());
    node = named(node);
    if (tokens[0]?.touches && takes("(")) {
      node = mathElement("mrow", node, mathElement("mo", "\u2061"), fenced());
    }
    return node;
  };
  const terms = (/** @type {string} */ end) => {
    const list = [];
    while (tokens.length && !takes(end)) {
      const over = scripted();
      list.push(takes("/") ? mathElement("mfrac", over, scripted()) : over);
    }
    return list;
  };
  return row(terms(""));
};

// A line of a formula. of: the attributes of a part.
/** @type {(text: string, of?: (part: string) => Attributes) => ComponentChild} */
export const formulaLine = (text, of = () => ({})) =>
  html`<math display="block">${elements(text, of, {})}</math>`;

// ---- the view ----

// A number of a tensor: "0.247", "−1.394", "2.1e−5"; a text as it is.
/** @type {(value: number | string) => string} */
const shownNumber = (value) => {
  if (typeof value === "string") return value;
  const size = Math.abs(value);
  const isPlain = size === 0 || (size >= 0.0005 && size < 1e5);
  const text = isPlain ? value.toFixed(3) : value.toExponential(1).replace("e+", "e");
  return numeral(text).replaceAll("-", "−");
};

// One excerpt of our source.
/** @param {import("./types").Excerpt} code @param {import("./types").MarkPart} of */
const excerpt = ({ file, symbol, lines }, of) => {
  const piece = (/** @type {import("./types").Piece} */ [text, parts]) =>
    parts.length ? html`<span ...${of(...parts)}>${text}</span>` : text;
  /** @param {import("./types").SourceLine} line @param {number} at */
  const line = ({ number, pieces: [[first, parts], ...rest] }, at) => {
    const bare = first.trimStart(); // a wrapped line is indented a little more
    const pieces = [/** @type {import("./types").Piece} */ ([bare, parts]), ...rest];
    const indent = { "--indent": `${first.length - bare.length}ch` };
    const hasGap = at > 0 && number > lines[at - 1].number + 1;
    return html`${hasGap && html`<div class="equation-line"><i />⋯</div>`}
      <div class="equation-line"><span class="line-number">${number}</span><code
        style=${indent}>${pieces.map(piece)}</code></div>`;
  };
  return html`<figure class="equation-excerpt">
    <figcaption>${file}<wbr />${` · ${symbol}`}</figcaption>
    <div class="equation-lines">${lines.map(line)}</div>
  </figure>`;
};

// Symbol, name, shape, and some of its numbers. A screen reader reads a formula as one thing, and only these
// names can be reached by the keyboard.
/** @param {import("./types").FormulaTensor} shown @param {import("./types").MarkPart} of @param {ComponentChild} symbol */
const tensor = ({ part, name, shape, cells, more }, of, symbol) => {
  const cell = (
    /** @type {import("./types").FormulaCell} */ { label, token, value },
  ) => html`<li class=${value === "False" && "is-false"}>
    <small title=${token}>${label}${token !== undefined && html` <${Token} label=${token} />`}</small>
    <span>${shownNumber(value)}</span>
  </li>`;
  const { class: lit, ...marked } = of(part);
  return html`<div class=${`equation-tensor ${lit}`} ...${marked}>
    <button type="button" class="tensor-name"><math>${symbol}</math>${` ${name}`}</button>
    <p class="tensor-axes">${shape}</p>
    <ul class="tensor-cells">
      ${cells.map(cell)}
      ${more > 0 && html`<li class="is-more"><small>${sayN("{n} more", "{n} more", more)}</small></li>`}
    </ul>
  </div>`;
};

/** @param {string} name @param {string} title @param {ComponentChild} content */
const column = (name, title, content) => html`<section class="equation-side">
  <h4>${title}</h4>
  <div class=${`equation-${name} equation-column`}>${content}</div>
</section>`;

const Equations = () => {
  const part = usePart();
  const head = headLookedAt();
  const wanted = head && { ...head, topic: fields.equation, position: predictedPosition() };
  const { answer, asked } = useAnswer(part, "equations", wanted);
  /** @type {Partial<import("./types").Equation>} */
  const { formula = [], code = [], tensors = [], says = [], query, topic } = answer ?? {};

  // A symbol, its code and its numbers light up together: the part pointed at or chosen last.
  const [lit, light] = useState("");
  /** @type {import("./types").MarkPart} */
  const of = (...parts) => ({
    "data-part": parts[0],
    class: parts.includes(lit) ? "is-lit" : "",
  });
  const lightIt = (/** @type {Event & { target: Element }} */ { target }) => {
    /** @type {HTMLElement | null} */
    const marked = target.closest("[data-part]");
    light(marked?.dataset.part ?? lit);
  };
  const listeners = {
    onPointerOver: (/** @type {PointerEvent & { target: Element }} */ event) =>
      event.pointerType === "mouse" && lightIt(event),
    onFocusIn: lightIt,
    onClick: lightIt,
    onKeyDown: (/** @type {KeyboardEvent} */ { key }) => key === "Escape" && light(""),
  };

  const litTensor = tensors.find((one) => one.part === lit);
  const drawn = (/** @type {string} */ text) => formulaLine(text, of);
  const symbolOf = (/** @type {string} */ name) => {
    /** @type {Record<string, ComponentChild>} */
    const symbols = {};
    for (const text of formula) elements(text, () => ({}), symbols);
    return symbols[name];
  };
  const linesOf = (/** @type {import("./types").Excerpt} */ one) => excerpt(one, of);
  const numbersOf = (/** @type {import("./types").FormulaTensor} */ one) =>
    tensor(one, of, symbolOf(one.part));
  const { run, site, head: shown } = asked ?? {};
  const facts = { run, site, head: shown, query, topic };
  const topics = Object.entries(fieldsOf("equations").equation.options);
  return html`<section class="equations" data-lit=${litTensor?.part ?? ""} ...${listeners} ...${part.attributes(facts)}>
    <${Switch} name="equation" class="equation-topics" title=${say("Formula")} value=${fields.equation}
      options=${topics.map(([name, title]) => [name, capital(say(title))])} set=${(/** @type {string} */ name) => (fields.equation = name)} />
    <p class="equation-says">${says.join(" ")}</p>
    <div hidden=${answer && !formula.length}>
      <p class="hint">${say("Point at a symbol, a piece of code or a tensor: the same thing lights up in the other two.")}</p>
      <p class="hint">${say("B texts, H heads, T tokens (Tq queries, Tk keys), D features of a head, C features of a token, d_ff of its feed-forward, V tokens of the vocabulary.")}</p>
      <p class="equation-lit" role="status">${litTensor && [litTensor.name, litTensor.shape].filter(Boolean).join(" · ")}</p>
      <div key=${topic} class="equation-columns">
        ${column("formula", say("Formula"), formula.map(drawn))}
        ${column("code", say("Our code"), code.map(linesOf))}
        ${column("tensors", say("Numbers of this run"), tensors.map(numbersOf))}
      </div>
    </div>
  </section>`;
};
export const mount = mounted(
  Equations,
  () => html`<bdi translate=${false}>softmax(qKᵀ ÷ √D) V</bdi>`,
);
