// Formulas as text, drawn as MathML.

import { html } from "../../web/preact.js";

const TOKEN =
  /(?<space>\s*)(?:"(?<mtext>[^"]*)"|(?<mn>\d+(?:[.,\u00a0\u202f]\d+)*)|(?<mi>\p{L}+′?|∞)|:(?<part>\w+)|(?<mo>\/\/|\S))/gu;
/** @type {(tag: string, ...children: any[]) => any} */
const element = (tag, ...children) => html`<${tag}>${children}</${tag}>`;
const row = (terms) => (terms.length === 1 ? terms[0] : element("mrow", ...terms));
// The style sheet slants letters: the browser's own slanted ones are in few fonts.
const name = (text) =>
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

  const fenced = () => element("mrow", element("mo", "("), ...terms(")"), element("mo", ")"));
  const cases = () => {
    const rows = [];
    while (!takes("}")) {
      const cells = ["&", ";"].map((end) => element("mtd", ...terms(end)));
      rows.push(element("mtr", ...cells));
    }
    return element("mrow", element("mo", "{"), element("mtable", ...rows));
  };
  const atom = () => {
    if (takes("{")) return row(terms("}"));
    if (takes("(")) return fenced();
    if (takes("√")) return element("msqrt", atom());
    const { kind, text } = next();
    if (text === "cases" && takes("{")) return cases();
    return kind === "mi" ? name(text) : element(kind, text === "//" ? "/" : text);
  };
  const scripted = () => {
    const index = is("mo", "∑") ? "munder" : "msub";
    let node = atom();
    if (takes("_")) node = element(index, node, atom());
    if (takes("^")) node = element("msup", node, atom());
    if (is("part")) node = html`<mrow ...${of(next().text)}>${node}</mrow>`;
    if (tokens[0]?.touches && takes("(")) {
      node = element("mrow", node, element("mo", "\u2061"), fenced());
    }
    return node;
  };
  const terms = (end) => {
    const found = [];
    while (tokens.length && !takes(end)) {
      const over = scripted();
      found.push(takes("/") ? element("mfrac", over, scripted()) : over);
    }
    return found;
  };
  return terms("");
};

// of(part): the props of a symbol that belongs to a part.
export const Formula = ({ text, of, ...more }) =>
  html`<math ...${more}>${row(elements(text, of))}</math>`;
/** @type {(text: string) => string} */
export const plainText = (text) => text.replace(/:\w+|[{}"]/g, "");
