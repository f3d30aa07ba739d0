// A formula, which the server sends as nested lists [tag, part, ...children], as the browser's MathML.

/** @typedef {[string, string, ...(string | any)[]]} Node see views/equations/mathml.py */

const MATHML = "http://www.w3.org/1998/Math/MathML";
const TAGS = new Set([
  "mi", "mn", "mo", "mtext", "mrow", "mfrac", "msqrt", "msub", "msup", "munder", "mtable", "mtr",
  "mtd",
]); // prettier-ignore

/** @type {(node: Node) => Element} */
const built = ([tag, part, ...children]) => {
  if (!TAGS.has(tag)) throw new TypeError(tag);
  const made = document.createElementNS(MATHML, tag);
  // The style sheet slants letters: the browser's own slanted ones are in few fonts.
  if (tag === "mi") made.setAttribute("mathvariant", "normal");
  if (tag === "mi" && [...String(children[0])].length > 2) made.classList.add("name");
  if (part) made.dataset.part = part;
  made.append(...children.map((child) => (typeof child === "string" ? child : built(child))));
  return made;
};

// block: on a line of its own, with large fractions.
/** @type {(node: Node, block?: boolean) => Element} */
export const mathElement = (node, block = false) => {
  const made = document.createElementNS(MATHML, "math");
  if (block) made.setAttribute("display", "block");
  made.append(built(node));
  return made;
};
