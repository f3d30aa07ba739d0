// A formula beside our own lines that compute it and this run's tensors, for the chosen head and token.

import { numeral, say, sayN, sayWith } from "../../web/messages.js";
import { html, useRef, useState, useMemo } from "../../web/preact.js";
import { Token } from "../../web/text.js";
import { declaredFields } from "../../web/fields.js";
import { Switch } from "../../web/controls.js";
import { fieldsOf } from "../../web/link_text.js";
import { headLookedAt, placeAsked } from "../../web/looked_at.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { attentionOf, stackOf } from "../../web/sites.js";
import { page } from "../../web/store.js";

// Formula, code and tensors of a topic as components; see topic.py, source.py and mathml.py. Whatever
// has `data-part` is of one part, and pieces that are of several name them all in `data-parts`.

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
    return { tabindex: place === at ? "0" : "-1", ref: (made) => (stops.current[place] = made) };
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

// The three, of which the part `lit` is lit. answer: see Topic.answer of topic.py; nameOf(part).
const Columns = ({ answer, lit, nameOf }) => html`<div class="equation-columns"
  hidden=${!answer.formula.length}>
  <${Column} class="equation-formula" title=${say("Formula")}
    fill=${(stop) => formulas(answer, lit, stop)} />
  <${Column} class="equation-code" title=${say("Our code")}
    fill=${(stop) => answer.code.map((one) => excerpt(one, nameOf, lit, stop))} />
  <${Column} class="equation-tensors" title=${say("Numbers of this run")}
    fill=${(stop) => answer.tensors.map((one) => tensor(one, lit, stop))} />
</div>`;

// What the numbers are of: a head, a layer or a token.
const whatOf = ({ topic, site, head, query, query_label: label }) => {
  const [stack, layer, kind] = site.split(".");
  const values = { layer, head, query, token: html`<${Token} label=${label} />` };
  if (topic === "sampling") return null;
  if (["norm", "feed-forward"].includes(topic)) {
    return sayWith("Layer {layer}, {stack}; token {query} {token}.", {
      ...values,
      stack: stackOf(stack),
    });
  }
  if (topic === "positions" && !page.run.turns) {
    return sayWith("Token {query} {token}, {stack}.", { ...values, stack: stackOf(stack) });
  }
  return sayWith("Layer {layer}, head {head}, {attention}; token {query} {token}.", {
    ...values,
    attention: attentionOf({ stack, kind }),
  });
};

// A symbol, the code that computes it and its numbers light up together: the part that the pointer is
// over, else the one that was chosen.
const useLit = () => {
  const [chosen, choose] = useState(/** @type {string | null} */ (null));
  const [over, pass] = useState(/** @type {string | null} */ (null));
  /** @type {(event: any) => string | null} */
  const partOf = ({ target }) => target.closest("[data-part]")?.dataset.part ?? null;
  const chooseIt = (event) => partOf(event) && choose(partOf(event));
  const clear = () => [choose, pass].forEach((set) => set(null));
  const listeners = {
    onPointerOver: (event) => event.pointerType === "mouse" && pass(partOf(event)),
    onPointerLeave: () => pass(null),
    onFocusIn: chooseIt,
    onClick: chooseIt,
    onKeyDown: ({ key }) => key === "Escape" && clear(),
  };
  return { lit: over ?? chosen, clear, listeners };
};

const Equations = () => {
  const part = usePart();
  const fields = useMemo(() => declaredFields("equations"), []);
  const { lit, clear, listeners } = useLit();
  const of = headLookedAt();
  const wanted = of && { ...of, topic: fields.equation, position: placeAsked() };
  const { answer, asked } = useAnswer(part, "equation", wanted);
  const choose = (topic) => {
    fields.equation = topic;
    clear();
  };
  const tensors = useMemo(() => new Map(answer?.tensors.map((one) => [one.part, one])), [answer]);
  const nameOf = (one) => tensors.get(one)?.name ?? one;
  const found = tensors.get(lit);
  const topics = Object.entries(fieldsOf("equations").equation.options);
  const none = answer && !answer.formula.length;
  const { run, site, head } = asked ?? {};
  const facts = { run, site, head, query: answer?.query, topic: answer?.topic };
  return html`<section class="equations" data-lit=${lit ?? ""} ...${listeners} ...${part.shows(facts)}>
    <${Switch} name="equation" class="equation-topics" title=${say("Formula")} value=${fields.equation}
      options=${topics.map(([topic, title]) => [topic, say(title)])} set=${choose} />
    <p class="equation-of">${answer && whatOf(answer)}</p>
    <p class="equation-says">${answer?.says.join(" ")}</p>
    <p class="hint equation-hint" hidden=${none}>${say("Point at a symbol, a piece of code or a tensor: the same thing lights up in the other two. With the keyboard, arrow keys go from one to the next within a column.")}</p>
    <p class="hint equation-letters" hidden=${none}>${say("B texts, H heads, T tokens (Tq queries, Tk keys), D features of a head, C features of a token, d_ff of its feed-forward, V tokens of the vocabulary.")}</p>
    <p class="equation-lit" role="status">${
      found && [found.name, axesText(found.axes)].filter(Boolean).join(" · ")
    }</p>
    ${answer && html`<${Columns} key=${answer.topic} ...${{ answer, lit, nameOf }} />`}
  </section>`;
};
export const mount = mounted(Equations);
