// What a part of the page looks like as an SVG of shapes and letters alone: it opens in Inkscape and Word, and a canvas
// that it is drawn on can be saved, as neither is true of HTML inside an SVG.

import { paperColour } from "../../web/plots.js";
import { themed } from "../../web/theme.js";
import { COLOUR, canvas, escaped, isClear, paint, px, tag } from "./svg.js";

const EDGE_PX = 16; // around everything
const PICTURED = "pictured"; // the class of the body by which what can only be pressed is hidden, see exports.css
// Of a shape or text in an SVG, what its style sheet says.
const SHAPE = [
  ...["fill", "fill-opacity", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin"],
  ...["stroke-dasharray", "opacity", "font-size", "font-weight", "text-anchor", "paint-order"],
];

/** @typedef {{ left: number, top: number, right: number, bottom: number }} Bounds */

// ---- letters ----

/** @type {Map<string, number>} */
const ascents = new Map();
// How far above the baseline the box of a line begins.
/** @type {(style: CSSStyleDeclaration) => number} */
const ascentOf = ({ fontStyle, fontWeight, fontSize, fontFamily }) => {
  const font = `${fontStyle} ${fontWeight} ${fontSize} ${fontFamily}`;
  canvas().font = font;
  const ascent = ascents.get(font) ?? canvas().measureText("x").fontBoundingBoxAscent;
  ascents.set(font, ascent);
  return ascent;
};

// A text, as it is broken into lines: each with its box.
/** @type {(node: Text) => { text: string, box: DOMRect }[]} */
const linesOf = (node) => {
  const range = document.createRange();
  /** @type {{ first: number, last: number, box: DOMRect }[]} */
  const lines = [];
  for (const { index, 0: word } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect();
    const line = lines.at(-1);
    if (line && Math.abs(line.box.top - box.top) < 2) line.last = index + word.length;
    else if (box.width > 0) lines.push({ first: index, last: index + word.length, box });
  }
  return lines.map(({ first, last }) => {
    range.setStart(node, first);
    range.setEnd(node, last);
    const text = node.data.slice(first, last).replace(/\s+/g, " ");
    return { text, box: range.getBoundingClientRect() };
  });
};

// struck: the colour of a line through them, "" for none.
/** @type {(text: string, at: { x: number, y: number, end?: boolean, width?: number }, style: CSSStyleDeclaration, struck?: string) => string} */
const letters = (text, { x, y, end, width }, style, struck = "") => {
  const size = parseFloat(style.fontSize);
  const line = { x, y: y - 0.32 * size, width: width ?? 0, height: size / 14 };
  const written = tag(
    "text",
    {
      ...{ x, y, ...paint("fill", style.color) },
      ...{ "font-size": style.fontSize, "font-weight": style.fontWeight },
      "font-style": style.fontStyle === "normal" ? null : style.fontStyle,
      "text-anchor": end ? "end" : null,
      textLength: width && text.length > 1 ? width : null,
      lengthAdjust: width && text.length > 1 ? "spacingAndGlyphs" : null,
    },
    escaped(text),
  );
  return struck ? written + tag("rect", { ...line, ...paint("fill", struck) }) : written;
};

// ---- boxes ----

/** @type {(style: CSSStyleDeclaration, side: string) => number} */
const widthOf = (style, side) =>
  style.getPropertyValue(`border-${side}-style`) === "none"
    ? 0
    : parseFloat(style.getPropertyValue(`border-${side}-width`));
const SIDES = ["top", "right", "bottom", "left"];

// A frame inside (or, for less than 0, outside) the edge of a box.
/** @type {(box: DOMRect, inside: number, radius: number) => Record<string, number | null>} */
const frame = ({ left, top, width, height }, inside, radius) => ({
  ...{ x: left + inside, y: top + inside },
  ...{ width: Math.max(0, width - 2 * inside), height: Math.max(0, height - 2 * inside) },
  rx: radius > 0 ? Math.max(0, radius - inside) : null,
});

// The ground, borders, outline and ring of an element. isOff: whether it is a head that is switched off.
/** @type {(box: DOMRect, style: CSSStyleDeclaration, defs: string[], isOff: boolean) => string} */
const groundOf = (box, style, defs, isOff) => {
  const radius = parseFloat(style.borderTopLeftRadius) || 0;
  const shapes = [];
  const stripes = style.backgroundImage.match(/^repeating-linear-gradient/)
    ? (style.backgroundImage.match(COLOUR) ?? [])
    : [];
  if (stripes.length > 2) {
    const id = `stripes${defs.length}`;
    const stripe = (/** @type {number} */ x, /** @type {string} */ colour) =>
      tag("rect", { x, y: 0, width: x ? 3 : 4, height: 7, ...paint("fill", colour) });
    const size = { width: 7, height: 7, patternUnits: "userSpaceOnUse" };
    const inner = stripe(0, stripes[0]) + stripe(4, stripes[stripes.length - 1]);
    defs.push(tag("pattern", { id, ...size, patternTransform: "rotate(45)" }, inner));
    shapes.push(tag("rect", { ...frame(box, 0, radius), fill: `url(#${id})` }));
  } else if (!isClear(style.backgroundColor))
    shapes.push(tag("rect", { ...frame(box, 0, radius), ...paint("fill", style.backgroundColor) }));
  const ring = (
    /** @type {number} */ inside,
    /** @type {number} */ width,
    /** @type {string} */ colour,
  ) =>
    shapes.push(
      tag("rect", {
        ...frame(box, inside, radius),
        ...{ fill: "none", "stroke-width": width, ...paint("stroke", colour) },
      }),
    );
  const widths = SIDES.map((side) => widthOf(style, side));
  if (widths.every((width) => width === widths[0])) {
    if (widths[0] > 0) ring(widths[0] / 2, widths[0], style.borderTopColor);
  } else
    SIDES.forEach((side, at) => {
      const isDown = side === "left" || side === "right";
      const size = isDown ? { width: widths[at] } : { height: widths[at] };
      const x = side === "right" ? box.right - widths[at] : box.left;
      const y = side === "bottom" ? box.bottom - widths[at] : box.top;
      const colour = style.getPropertyValue(`border-${side}-color`);
      const place = { x, y, width: box.width, height: box.height, ...size };
      if (widths[at] > 0) shapes.push(tag("rect", { ...place, ...paint("fill", colour) }));
    });
  const shadow = style.boxShadow.match(/^(.*\)) 0px 0px 0px ([\d.]+)px$/);
  if (shadow) ring(-Number(shadow[2]) / 2, Number(shadow[2]), shadow[1]);
  const inset = style.boxShadow.match(/^(.*\)) 0px (-?[\d.]+)px 0px 0px inset$/);
  if (inset) {
    const height = Math.abs(Number(inset[2]));
    const y = Number(inset[2]) < 0 ? box.bottom - height : box.top;
    const strip = { x: box.left, y, width: box.width, height };
    shapes.push(tag("rect", { ...strip, ...paint("fill", inset[1]) }));
  }
  if (isOff) {
    const path = `M${px(box.left)} ${px(box.bottom)}L${px(box.right)} ${px(box.top)}`;
    shapes.push(tag("path", { d: path, "stroke-width": 2, ...paint("stroke", themed("key")) }));
  }
  const outline = style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth);
  if (outline > 0) ring(-outline / 2, outline, style.outlineColor);
  return shapes.join("");
};

// An SVG of the page, of paths and texts, with the colours and type of its style sheets.
/** @type {(svg: SVGElement, box: DOMRect) => string} */
const copied = (svg, box) => {
  /** @type {(element: Element) => string} */
  const copy = (element) => {
    const style = getComputedStyle(element);
    if (style.display === "none" || style.visibility === "hidden") return "";
    /** @type {Record<string, string | null>} */
    const values = {};
    for (const name of ["d", "x", "y"]) values[name] = element.getAttribute(name);
    for (const name of SHAPE) values[name] = style.getPropertyValue(name);
    for (const name of /** @type {const} */ (["fill", "stroke"]))
      if (values[name] !== "none") Object.assign(values, paint(name, values[name] ?? ""));
    const inner = [...element.children].map(copy).join("");
    const isText = element instanceof SVGTextElement;
    return tag(element.tagName, values, isText ? escaped(element.textContent ?? "") : inner);
  };
  const inner = [...svg.children].map(copy).join("");
  return tag("g", { transform: `translate(${px(box.left)} ${px(box.top)})` }, inner);
};

// ---- all of it ----

// The shapes of an element and of what is in it. drawn: grown to hold them all.
/** @type {(root: Element, drawn: Bounds, defs: string[]) => string} */
const shapesOf = (root, drawn, defs) => {
  const hold = (/** @type {DOMRect} */ { left, top, right, bottom }) => {
    drawn.left = Math.min(drawn.left, left);
    drawn.top = Math.min(drawn.top, top);
    drawn.right = Math.max(drawn.right, right);
    drawn.bottom = Math.max(drawn.bottom, bottom);
  };
  /** @type {(element: Element, struck: string) => string} */
  const visit = (element, struck) => {
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (style.display === "none" || style.opacity === "0") return "";
    if (style.clipPath === "inset(50%)") return ""; // for screen readers alone
    const isSeen = style.visibility === "visible" && box.width > 0 && box.height > 0;
    /** @type {string[]} */
    const shapes = [];
    if (isSeen) {
      const isOff = element.matches(".head.ablated");
      const boxes = style.display === "inline" ? [...element.getClientRects()] : [box];
      for (const each of boxes) shapes.push(groundOf(each, style, defs, isOff));
      if (shapes.join("")) boxes.forEach(hold);
    }
    if (isSeen && element instanceof HTMLCanvasElement) {
      hold(box);
      const { left: x, top: y, width, height } = box;
      const size = { x, y, width, height, preserveAspectRatio: "none" };
      const look = { style: `image-rendering:${style.imageRendering}`, opacity: style.opacity };
      return tag("image", { ...size, ...look, href: element.toDataURL() });
    }
    if (element instanceof SVGElement) {
      if (!isSeen) return "";
      hold(box);
      return copied(element, box);
    }
    const isStruck = style.textDecorationLine.includes("line-through");
    const line = isStruck ? style.textDecorationColor : struck;
    if (isSeen && style.display === "list-item" && style.listStyleType === "decimal") {
      const number = [...(element.parentElement?.children ?? [])].indexOf(element) + 1;
      const y = box.top + (parseFloat(style.lineHeight) + 0.72 * parseFloat(style.fontSize)) / 2;
      shapes.push(letters(`${number}.`, { x: box.left - 6, y, end: true }, style));
    }
    for (const node of element.childNodes) {
      if (node instanceof Element) shapes.push(visit(node, line));
      if (!(node instanceof Text) || style.visibility !== "visible" || style.fontSize === "0px")
        continue;
      for (const { text, box: at } of linesOf(node)) {
        hold(at);
        const y = at.top + ascentOf(style);
        shapes.push(letters(text, { x: at.left, y, width: at.width }, style, line));
      }
    }
    const all = shapes.join("");
    if (!all) return "";
    const isCut =
      style.overflow !== "visible" &&
      (element.scrollWidth > element.clientWidth + 1 ||
        element.scrollHeight > element.clientHeight + 1);
    if (!isCut) return style.opacity === "1" ? all : tag("g", { opacity: style.opacity }, all);
    const id = `cut${defs.length}`;
    defs.push(tag("clipPath", { id }, tag("rect", frame(box, 0, 0))));
    return tag("g", { opacity: style.opacity, "clip-path": `url(#${id})` }, all);
  };
  return visit(root, "");
};

/**
 * A part of the page as it is drawn now, without what can only be pressed: the SVG's text, and its size in px.
 * @type {(root: Element) => { svg: string, width: number, height: number }}
 */
export const pagePicture = (root) => {
  const { classList } = document.body;
  classList.add(PICTURED); // and away again before anything is painted
  try {
    /** @type {Bounds} */
    const drawn = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
    /** @type {string[]} */
    const defs = [];
    const shapes = shapesOf(root, drawn, defs);
    const origin = root.getBoundingClientRect(); // so that scrolling changes nothing
    const left = Math.floor(drawn.left - origin.left) - EDGE_PX;
    const top = Math.floor(drawn.top - origin.top) - EDGE_PX;
    const width = Math.ceil(drawn.right - origin.left) + EDGE_PX - left;
    const height = Math.ceil(drawn.bottom - origin.top) + EDGE_PX - top;
    const { fontFamily } = getComputedStyle(root);
    const place = { x: left, y: top, width, height };
    const paper = tag("rect", { ...place, ...paint("fill", paperColour()) });
    const size = { width, height, viewBox: `${left} ${top} ${width} ${height}` };
    const look = { "font-family": fontFamily, xmlns: "http://www.w3.org/2000/svg" };
    const moved = { transform: `translate(${px(-origin.left)} ${px(-origin.top)})` };
    const inner = tag("defs", {}, defs.join("")) + paper + tag("g", moved, shapes);
    return { svg: tag("svg", { ...look, ...size }, inner), width, height };
  } finally {
    classList.remove(PICTURED);
  }
};
