// A part of the page as an SVG: each box, border, letter and picture where the page has it.
import assert from "node:assert/strict";
import test from "node:test";

import { place } from "../kit/dom.js";
import { pagePicture } from "../../transformer/views/export/page_picture.js";

const { document, Element, Text } = /** @type {any} */ (globalThis);

/** @type {(left: number, top: number, width: number, height: number) => any} */
const rect = (left, top, width, height) => ({
  ...{ left, top, width, height, x: left, y: top },
  ...{ right: left + width, bottom: top + height },
});

// What a browser's style sheet says of an element that says nothing itself.
const PLAIN = {
  ...{ display: "block", visibility: "visible", opacity: "1", overflow: "visible" },
  ...{ fontStyle: "normal", fontWeight: "400", fontSize: "10px", fontFamily: "Sans" },
  ...{ color: "rgb(1,1,1)", lineHeight: "20px", textDecorationLine: "none" },
  ...{ backgroundColor: "clear", backgroundImage: "none", borderTopLeftRadius: "0px" },
  ...{ boxShadow: "none", outlineStyle: "none", outlineWidth: "3px", clipPath: "none" },
};
const BORDERS = Object.fromEntries(
  ["top", "right", "bottom", "left"].flatMap((side) => [
    [`border-${side}-style`, "none"],
    [`border-${side}-width`, "9px"],
  ]),
);
/** @type {Map<any, Record<string, string>>} */
const styles = new Map();
const kebab = (/** @type {string} */ name) =>
  name.replace(/-(\w)/g, (_, sign) => sign.toUpperCase());
/** @type {any} */
const styleOf = (/** @type {any} */ element) => {
  const own = { ...PLAIN, ...BORDERS, ...styles.get(element) };
  const getPropertyValue = (/** @type {string} */ name) =>
    own[/** @type {"color"} */ (name)] ?? own[/** @type {"color"} */ (kebab(name))] ?? "";
  return { ...own, getPropertyValue };
};

// A colour "rgba(R,G,B,A)" or "rgb(R,G,B)" is painted as it says, anything else is clear.
/** @type {any} */
const PIXEL = {
  measureText: () => ({ fontBoundingBoxAscent: 8 }),
  ...{ clearRect: () => {}, fillRect: () => {}, fillStyle: "" },
  getImageData: () => {
    const [red, green, blue, alpha] = (PIXEL.fillStyle.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(
      Number,
    );
    return { data: [red, green, blue, 255 * (alpha ?? 1)] };
  },
};
class SvgText extends Element {}
class Drawing extends Element {}
class Canvas extends Element {
  toDataURL() {
    return "data:image/png;base64,AA==";
  }
}
Object.assign(globalThis, {
  getComputedStyle: styleOf,
  OffscreenCanvas: class {
    getContext() {
      return PIXEL;
    }
  },
  HTMLCanvasElement: Canvas,
  SVGElement: Drawing,
  SVGTextElement: SvgText,
});
// Five px a letter; words from "|" on are on the next line, 20 px below. Texts say where they begin.
document.createRange = () => {
  /** @type {any} */
  let [node, first, last] = [null, 0, 0];
  return {
    setStart: (/** @type {any} */ of, /** @type {number} */ at) => ([node, first] = [of, at]),
    setEnd: (/** @type {any} */ _, /** @type {number} */ at) => (last = at),
    getBoundingClientRect: () => {
      const line = node.data.slice(0, first + 1).split("|").length - 1;
      return rect(node.x + 5 * first, node.y + 20 * line, 5 * (last - first), 12);
    },
  };
};

/** @type {(box: any, style?: Record<string, string>, children?: any[], element?: any) => any} */
const drawn = (box, style = {}, children = [], element = new Element("div")) => {
  styles.set(element, style);
  element.getBoundingClientRect = () => box;
  element.getClientRects = () => [box];
  element.append(...children);
  Object.assign(element, { scrollWidth: 0, scrollHeight: 0 });
  return element;
};
/** @type {(data: string, x: number, y: number) => any} */
const written = (data, x, y) => Object.assign(new Text(data), { x, y });
// The shapes of what is drawn in a root at 100, 50.
/** @type {(...children: any[]) => { shapes: string, defs: string, svg: string, width: number, height: number }} */
const pictured = (...children) => {
  const root = place();
  drawn(rect(100, 50, 300, 200), {}, children, root);
  const picture = pagePicture(root);
  root.remove();
  const [, defs, shapes] = /** @type {string[]} */ (
    /<defs>(.*?)<\/defs><rect[^>]*><\/rect><g[^>]*>(.*)<\/g><\/svg>$/.exec(picture.svg)
  );
  return { ...picture, shapes, defs };
};

test("a picture holds all that is drawn, with an edge, on the page's paper", () => {
  styles.set(document.body, { backgroundColor: "rgb(250,251,252)" });
  const { svg, width, height } = pictured(
    drawn(rect(110, 60, 50, 20), { backgroundColor: "rgb(1,2,3)" }),
    drawn(rect(90.5, 100, 10, 100.25), { backgroundColor: "rgba(4,5,6,0.5)" }),
  );
  assert.deepEqual([width, height], [102, 173]); // from -10 to 60 and from 10 to 151, and 16 around
  assert.equal(
    svg,
    '<svg font-family="Sans" xmlns="http://www.w3.org/2000/svg" width="102" height="173" viewBox="-26 -6 102 173">' +
      '<defs></defs><rect x="-26" y="-6" width="102" height="173" fill="rgb(250,251,252)"></rect>' +
      '<g transform="translate(-100 -50)"><rect x="110" y="60" width="50" height="20" fill="rgb(1,2,3)"></rect>' +
      '<rect x="90.5" y="100" width="10" height="100.25" fill="rgb(4,5,6)" fill-opacity="0.500"></rect></g></svg>',
  );
  assert.ok(!document.body.classList.contains("pictured"));
});

test("borders, rings, outlines and stripes are shapes of their own", () => {
  const box = rect(110, 60, 50, 20);
  /** @type {(style: Record<string, string>) => string} */
  const shapes = (style) => pictured(drawn(box, style)).shapes;
  const sides = ["top", "right", "bottom", "left"];
  const all = Object.fromEntries(
    sides.flatMap((side) => [
      [`border-${side}-style`, "solid"],
      [`border-${side}-width`, "2px"],
    ]),
  );
  const frame = { ...all, borderTopColor: "rgb(9,9,9)", borderTopLeftRadius: "4px" };
  assert.equal(
    shapes(frame),
    '<rect x="111" y="61" width="48" height="18" rx="3" fill="none" stroke-width="2" stroke="rgb(9,9,9)"></rect>',
  );
  /** @type {(side: string) => string} */
  const one = (side) =>
    shapes({
      [`border-${side}-style`]: "solid",
      [`border-${side}-width`]: "3px",
      [`border-${side}-color`]: "rgb(7,8,9)",
    });
  const fill = 'fill="rgb(7,8,9)"></rect>';
  assert.deepEqual(sides.map(one), [
    `<rect x="110" y="60" width="50" height="3" ${fill}`,
    `<rect x="157" y="60" width="3" height="20" ${fill}`,
    `<rect x="110" y="77" width="50" height="3" ${fill}`,
    `<rect x="110" y="60" width="3" height="20" ${fill}`,
  ]);
  assert.equal(
    shapes({ boxShadow: "rgb(1,2,3) 0px 0px 0px 4px" }),
    '<rect x="108" y="58" width="54" height="24" fill="none" stroke-width="4" stroke="rgb(1,2,3)"></rect>',
  );
  const strip = 'fill="rgb(1,2,3)"></rect>';
  assert.equal(
    shapes({ boxShadow: "rgb(1,2,3) 0px -2px 0px 0px inset" }),
    `<rect x="110" y="78" width="50" height="2" ${strip}`,
  );
  assert.equal(
    shapes({ boxShadow: "rgb(1,2,3) 0px 2px 0px 0px inset" }),
    `<rect x="110" y="60" width="50" height="2" ${strip}`,
  );
  assert.equal(
    shapes({ outlineStyle: "solid", outlineWidth: "2px", outlineColor: "rgb(3,3,3)" }),
    '<rect x="109" y="59" width="52" height="22" fill="none" stroke-width="2" stroke="rgb(3,3,3)"></rect>',
  );
  const stripes = "rgb(1,1,1) 0px, rgb(1,1,1) 4px, rgb(2,2,2) 4px";
  const { shapes: striped, defs } = pictured(
    drawn(box, { backgroundImage: `repeating-linear-gradient(45deg, ${stripes})` }),
  );
  assert.equal(
    striped,
    '<rect x="110" y="60" width="50" height="20" fill="url(#stripes0)"></rect>',
  );
  assert.equal(
    defs,
    '<pattern id="stripes0" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">' +
      '<rect x="0" y="0" width="4" height="7" fill="rgb(1,1,1)"></rect>' +
      '<rect x="4" y="0" width="3" height="7" fill="rgb(2,2,2)"></rect></pattern>',
  );
  const off = drawn(box, { backgroundColor: "rgb(5,5,5)" });
  off.setAttribute("class", "head ablated");
  styles.set(document.body, { "--viz-key": "rgb(6,6,6)" });
  assert.match(
    pictured(off).shapes,
    /<path d="M110 80L160 60" stroke-width="2" stroke="rgb\(6,6,6\)"><\/path>$/,
  );
});

test("letters are on their lines, as long and as struck as the page's", () => {
  const box = rect(110, 60, 80, 40);
  const look = 'fill="rgb(1,1,1)" font-size="10px" font-weight="400"';
  const line = (/** @type {number} */ x, /** @type {number} */ y, /** @type {string} */ text) =>
    `<text x="${x}" y="${y}" ${look} textLength="${5 * text.length}" lengthAdjust="spacingAndGlyphs">${text}</text>`;
  const text = () => written("ab  c |defg", 110, 60);
  assert.equal(
    pictured(drawn(box, {}, [text()])).shapes,
    line(110, 68, "ab  c").replace(">ab  c<", ">ab c<") + line(140, 88, "|defg"),
  );
  const struck = pictured(
    drawn(box, { textDecorationLine: "line-through", textDecorationColor: "rgb(9,0,0)" }, [
      drawn(box, {}, [written("xy", 120, 70)]),
    ]),
  );
  assert.equal(
    struck.shapes,
    line(120, 78, "xy") +
      '<rect x="120" y="74.8" width="10" height="0.71" fill="rgb(9,0,0)"></rect>',
  );
  const one = pictured(drawn(box, { fontStyle: "italic" }, [written("&", 120, 70)])).shapes;
  assert.equal(one, `<text x="120" y="78" ${look} font-style="italic">&#38;</text>`);
  const items = [1, 2].map(() =>
    drawn(box, { display: "list-item", listStyleType: "decimal" }, [written("i", 130, 60)]),
  );
  const { shapes } = pictured(drawn(box, {}, items));
  assert.match(shapes, /<text x="104" y="73.6" [^>]*text-anchor="end">2\.<\/text>/);
});

test("what is hidden is left out, what is cut off is clipped, what is faint is faint", () => {
  const box = rect(110, 60, 50, 20);
  const ground = { backgroundColor: "rgb(1,2,3)" };
  const shape = '<rect x="110" y="60" width="50" height="20" fill="rgb(1,2,3)"></rect>';
  const hidden = Object.entries({
    ...{ display: "none", opacity: "0", clipPath: "inset(50%)", visibility: "hidden" },
  }).map(([name, value]) => drawn(box, { ...ground, [name]: value }));
  const flat = drawn(rect(0, 0, 0, 20), ground);
  const small = drawn(box, { fontSize: "0px" }, [written("none", 0, 0)]);
  assert.equal(pictured(drawn(box, ground), ...hidden, flat, small).shapes, shape);
  assert.equal(
    pictured(drawn(box, { ...ground, opacity: "0.5" })).shapes,
    `<g opacity="0.5">${shape}</g>`,
  );
  /** @type {(scroll: object) => { shapes: string, defs: string }} */
  const cut = (scroll) =>
    pictured(Object.assign(drawn(box, { ...ground, overflow: "hidden" }), scroll));
  const fits = { clientWidth: 50, scrollWidth: 51, clientHeight: 20, scrollHeight: 21 };
  assert.equal(cut(fits).shapes, shape);
  for (const more of [{ scrollWidth: 52 }, { scrollHeight: 22 }]) {
    const { shapes, defs } = cut({ ...fits, ...more });
    assert.equal(shapes, `<g opacity="1" clip-path="url(#cut0)">${shape}</g>`);
    assert.equal(
      defs,
      '<clipPath id="cut0"><rect x="110" y="60" width="50" height="20"></rect></clipPath>',
    );
  }
});

test("canvases and drawings are where the page has them", () => {
  const box = rect(110, 60, 50, 20);
  const canvas = drawn(
    box,
    { imageRendering: "pixelated" },
    [],
    new /** @type {any} */ (Canvas)("canvas"),
  );
  assert.equal(
    pictured(canvas).shapes,
    '<image x="110" y="60" width="50" height="20" preserveAspectRatio="none" style="image-rendering:pixelated"' +
      ' opacity="1" href="data:image/png;base64,AA=="></image>',
  );
  const path = new Element("path");
  path.setAttribute("d", "M0 0L9 9");
  path.tagName = "path";
  styles.set(path, { fill: "none", stroke: "rgb(1,2,3)", "stroke-width": "2px", opacity: "1" });
  const gone = new Element("path");
  styles.set(gone, { display: "none" });
  const svg = drawn(box, {}, [path, gone], new /** @type {any} */ (Drawing)("svg"));
  assert.equal(
    pictured(svg).shapes,
    '<g transform="translate(110 60)"><path d="M0 0L9 9" fill="none" stroke="rgb(1,2,3)" stroke-width="2px"' +
      ' opacity="1" font-size="10px" font-weight="400"></path></g>',
  );
});
