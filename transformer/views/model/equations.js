// A formula, the lines of our source that compute it, and this run's tensors, for the chosen head and token.
//
// Whatever has `data-part` belongs to that part of the formula.

import { capital, numeral, say, sayN, sayWith } from "../../web/messages.js";
import { html, useRef, useState } from "../../web/preact.js";
import { Token } from "../../web/text.js";
import { fields } from "../../web/fields.js";
import { Switch } from "../../web/controls.js";
import { fieldsOf } from "../../web/declared.js";
import { headLookedAt, predictedPosition } from "../../web/selection.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { attentionOf } from "../../web/sites.js";

// ---- formulas as text, drawn as MathML ----

const TOKEN =
  /(?<space>\s*)(?:"(?<mtext>[^"]*)"|(?<mn>\d+(?:[.,\u00a0\u202f]\d+)*)|(?<mi>\p{L}+′?|∞)|:(?<part>\w+)|(?<mo>\/\/|\S))/gu;
/** @type {(tag: string, ...children: any[]) => any} */
const mathElement = (tag, ...children) => html`<${tag}>${children}</${tag}>`;
const row = (terms) => (terms.length === 1 ? terms[0] : mathElement("mrow", ...terms));
// The style sheet slants letters: the browser's own slanted ones are in few fonts.
const identifier = (text) =>
  html`<mi mathvariant="normal" class=${[...text].length > 2 ? "name" : undefined}>${text}</mi>`;

// The formula "s:scores = {q:q K^T:k} / √D:root" as elements.
//
// `_` and `^` set an index and a power, `/` a fraction, `√` a root; `//` is a plain slash. Braces
// group and are not seen, `f(x)` applies a function, `cases{a & b; c & d;}` is one of several values,
// and "..." are words. `:part` names the symbol before it.
const elements = (formula, of) => {
  /** @type {{ kind: string, text: string, touches: boolean }[]} */
  const tokens = [...formula.matchAll(TOKEN)].map(({ groups: { space, ...kinds } }) => {
    const kind = Object.keys(kinds).find((key) => kinds[key] !== undefined) ?? "";
    return { kind, text: kinds[kind], touches: !space };
  });
  const is = (kind, text) =>
    tokens[0]?.kind === kind && (text ?? tokens[0].text) === tokens[0].text;
  const next = () => tokens.splice(0, 1)[0];
  const takes = (sign) => is("mo", sign) && Boolean(next());

  const fenced = () =>
    mathElement("mrow", mathElement("mo", "("), ...terms(")"), mathElement("mo", ")"));
  const cases = () => {
    const rows = [];
    while (!takes("}")) {
      const cells = ["&", ";"].map((end) => mathElement("mtd", ...terms(end)));
      rows.push(mathElement("mtr", ...cells));
    }
    return mathElement("mrow", mathElement("mo", "{"), mathElement("mtable", ...rows));
  };
  const atom = () => {
    if (takes("{")) return row(terms("}"));
    if (takes("(")) return fenced();
    if (takes("√")) return mathElement("msqrt", atom());
    const { kind, text } = next();
    if (text === "cases" && takes("{")) return cases();
    return kind === "mi" ? identifier(text) : mathElement(kind, text === "//" ? "/" : text);
  };
  const scripted = () => {
    const index = is("mo", "∑") ? "munder" : "msub";
    let node = atom();
    if (takes("_")) node = mathElement(index, node, atom());
    if (takes("^")) node = mathElement("msup", node, atom());
    if (is("part")) node = html`<mrow ...${of(next().text)}>${node}</mrow>`;
    if (tokens[0]?.touches && takes("(")) {
      node = mathElement("mrow", node, mathElement("mo", "\u2061"), fenced());
    }
    return node;
  };
  const terms = (end) => {
    const found = [];
    while (tokens.length && !takes(end)) {
      const over = scripted();
      found.push(takes("/") ? mathElement("mfrac", over, scripted()) : over);
    }
    return found;
  };
  return terms("");
};

// of(part): the props of a symbol that belongs to a part.
const Formula = ({ text, of, ...more }) => html`<math ...${more}>${row(elements(text, of))}</math>`;
/** @type {(text: string) => string} */
const plainText = (text) => text.replace(/:\w+|[{}"]/g, "");

// ---- the view ----

// A number of a tensor: "0.247", "−1.394", "2.1e−5"; alone, a whole one as "4"; a text as it is.
/** @type {(value: number | string, alone?: boolean) => string} */
const shownNumber = (value, alone = false) => {
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
const axesText = (axes) =>
  [0, 1].map((at) => axes.map((axis) => axis[at]).join(" × ")).join(axes.length ? " = " : "");

// One stop of the tab key, within which arrow keys go on. fill(stop): its children; stop() gives the
// props of the next thing that can be reached.
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
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
    const index = count++;
    const ref = (element) => (stops.current[index] = element);
    return { tabindex: index === at ? "0" : "-1", ref };
  };
  return html`<section class="equation-side">
    <h4>${title}</h4>
    <div class=${`${look} equation-column`} onKeyDown=${press}>${fill(stop)}</div>
  </section>`;
};

// The formula, and its symbols as buttons: a screen reader reads a formula as one thing, so nothing
// inside it can be reached.
const formulas = ({ formula, tensors }, of, stop) => {
  const button = ({ part, symbol, name }) => html`<button type="button" ...${of(part)}
    aria-label=${`${plainText(symbol)}: ${name}`} ...${stop()}>
    <${Formula} text=${symbol} of=${of} />
  </button>`;
  return [
    ...formula.map((text) => html`<${Formula} display="block" ...${{ text, of }} />`),
    html`<div class="equation-symbols">${tensors.map(button)}</div>`,
  ];
};

// One excerpt of our source; the first piece of each part can be reached.
const excerpt = ({ file, symbol, lines }, nameOf, of, stop) => {
  const seen = new Set();
  const piece = ([text, parts]) => {
    if (!parts.length) return text;
    const fresh = parts.find((part) => !seen.has(part));
    seen.add(fresh);
    const label = `${text.trim()}: ${nameOf(fresh)}`;
    const more = fresh && { role: "button", "aria-label": label, ...stop() };
    return html`<span ...${of(fresh ?? parts[0], ...parts)} ...${more}>${text}</span>`;
  };
  const line = ({ number, pieces: [[first, parts] = ["", []], ...rest] }) => {
    const bare = first.trimStart(); // a wrapped line is indented a little more
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

// Symbol, name, shape, and some of its numbers.
const tensor = ({ part, symbol, name, axes, cells, more }, of, stop) => {
  const cell = ({ label, token, value }) => {
    const truth = ["True", "False"].includes(value) ? `is-${value.toLowerCase()}` : undefined;
    return html`<li class=${truth}><small title=${token}>${label}${
      token !== undefined && [" ", html`<${Token} label=${token} />`]
    }</small><span>${shownNumber(value, !axes.length)}</span></li>`;
  };
  const { class: lit, ...marked } = of(part);
  return html`<div class=${`equation-tensor ${lit}`} ...${marked}>
    <button type="button" class="tensor-name" ...${stop()}>
      <${Formula} text=${symbol} of=${of} />${` ${name}`}
    </button>
    <p class="tensor-axes">${axesText(axes)}</p>
    <ul class="tensor-cells">
      ${cells.map(cell)}
      ${more > 0 && html`<li class="is-more"><small>${sayN("{n} more", "{n} more", more)}</small></li>`}
    </ul>
  </div>`;
};

// The head and the token that the numbers are of.
const whatOf = ({ topic, site, head, query, query_label: label }) => {
  if (topic === "sampling") return null;
  const [stack, layer, kind] = site.split(".");
  return sayWith("Layer {layer}, head {head}, {attention}; token {query} {token}.", {
    ...{ layer, head, query },
    attention: attentionOf({ stack, kind }),
    token: html`<${Token} label=${label} />`,
  });
};

// A symbol, the code that computes it and its numbers light up together: the part that the pointer is
// over, else the one that was chosen.
const useLit = () => {
  const [chosen, choose] = useState(/** @type {string | null} */ (null));
  const [over, pass] = useState(/** @type {string | null} */ (null));
  const lit = over ?? chosen;
  // The props of what belongs to a part, and perhaps to others that light it up.
  /** @type {(part: string, ...others: string[]) => any} */
  const of = (part, ...others) => ({
    "data-part": part,
    class: [part, ...others].includes(lit ?? "") ? "is-lit" : "",
  });
  /** @type {(event: any) => string | null} */
  const partAt = ({ target }) => target.closest("[data-part]")?.dataset.part ?? null;
  const chooseIt = (event) => partAt(event) && choose(partAt(event));
  const clear = () => [choose, pass].forEach((set) => set(null));
  const listeners = {
    onPointerOver: (event) => event.pointerType === "mouse" && pass(partAt(event)),
    onPointerLeave: () => pass(null),
    onFocusIn: chooseIt,
    onClick: chooseIt,
    onKeyDown: ({ key }) => key === "Escape" && clear(),
  };
  return { lit, of, clear, listeners };
};

const Equations = () => {
  const part = usePart();
  const { lit, of, clear, listeners } = useLit();
  const head = headLookedAt();
  const wanted = head && { ...head, topic: fields.equation, position: predictedPosition() };
  const { answer, asked } = useAnswer(part, "equation", wanted);
  const choose = (topic) => {
    fields.equation = topic;
    clear();
  };
  const { code = [], tensors = [] } = answer ?? {};
  const tensorOf = (name) => tensors.find((one) => one.part === name);
  const nameOf = (name) => tensorOf(name)?.name ?? name;
  const found = tensorOf(lit);
  const topics = Object.entries(fieldsOf("equations").equation.options);
  const none = answer && !answer.formula.length;
  const { run, site, head: shown } = asked ?? {};
  const facts = { run, site, head: shown, query: answer?.query, topic: answer?.topic };
  return html`<section class="equations" data-lit=${lit ?? ""} ...${listeners} ...${part.attributes(facts)}>
    <${Switch} name="equation" class="equation-topics" title=${say("Formula")} value=${fields.equation}
      options=${topics.map(([topic, title]) => [topic, capital(say(title))])} set=${choose} />
    <p class="equation-says"><span class="equation-of">${answer && whatOf(answer)}</span> ${answer?.says.join(" ")}</p>
    <p class="hint equation-hint" hidden=${none}>${say("Point at a symbol, a piece of code or a tensor: the same thing lights up in the other two. With the keyboard, arrow keys go from one to the next within a column.")}</p>
    <p class="hint equation-letters" hidden=${none}>${say("B texts, H heads, T tokens (Tq queries, Tk keys), D features of a head, C features of a token, d_ff of its feed-forward, V tokens of the vocabulary.")}</p>
    <p class="equation-lit" role="status">${
      found && [found.name, axesText(found.axes)].filter(Boolean).join(" · ")
    }</p>
    ${
      answer &&
      html`<div key=${answer.topic} class="equation-columns" hidden=${none}>
        <${Column} class="equation-formula" title=${say("Formula")}
          fill=${(stop) => formulas(answer, of, stop)} />
        <${Column} class="equation-code" title=${say("Our code")}
          fill=${(stop) => code.map((one) => excerpt(one, nameOf, of, stop))} />
        <${Column} class="equation-tensors" title=${say("Numbers of this run")}
          fill=${(stop) => tensors.map((one) => tensor(one, of, stop))} />
      </div>`
    }
  </section>`;
};
export const mount = mounted(
  Equations,
  () => html`<bdi translate=${false}>softmax(qKᵀ ÷ √D) V</bdi>`,
);
