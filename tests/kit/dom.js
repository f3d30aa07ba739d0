// A document without layout, for node tests of components: what Preact and the page's modules need of one. Everything
// is in sight, 800 px wide. Import it before them.
import { readFileSync } from "node:fs";
import { URL } from "node:url";

const WIDTH = 800;
export const room = { width: WIDTH }; // of the elements that are made from now on
const BOX = { top: 0, left: 0, right: WIDTH, bottom: 20, width: WIDTH, height: 20, x: 0, y: 0 };
const kebab = (/** @type {string} */ name) =>
  name.replace(/[A-Z]/g, (sign) => `-${sign.toLowerCase()}`);

class Node {
  static TEXT_NODE = 3;
  /** @type {any} */ parentNode = null;
  /** @type {any[]} */ childNodes = [];
  get firstChild() {
    return this.childNodes[0] ?? null;
  }
  get nextSibling() {
    const all = this.parentNode?.childNodes ?? [];
    return all[all.indexOf(this) + 1] ?? null;
  }
  get previousElementSibling() {
    const all = this.parentNode?.children ?? [];
    return all[all.indexOf(this) - 1] ?? null;
  }
  get textContent() {
    return this.childNodes.map((child) => child.textContent).join("");
  }
  insertBefore(/** @type {any} */ child, /** @type {any} */ before = null) {
    child.remove();
    const at = before ? this.childNodes.indexOf(before) : this.childNodes.length;
    if (at < 0) throw new Error("it is not a child");
    this.childNodes.splice(at, 0, child);
    child.parentNode = this;
    return child;
  }
  appendChild(/** @type {any} */ child) {
    return this.insertBefore(child);
  }
  append(/** @type {any[]} */ ...children) {
    for (const child of children) {
      this.insertBefore(child);
      if (child.localName === "script") Promise.resolve().then(() => child.onload?.());
    }
  }
  removeChild(/** @type {any} */ child) {
    this.childNodes = this.childNodes.filter((each) => each !== child);
    child.parentNode = null;
    return child;
  }
  replaceChildren(/** @type {any[]} */ ...children) {
    for (const child of this.childNodes) child.parentNode = null;
    this.childNodes = [];
    this.append(...children);
  }
  replaceWith(/** @type {any} */ other) {
    this.parentNode?.insertBefore(other, this);
    this.remove();
  }
  get isConnected() {
    return globalThis.document.body.contains(/** @type {any} */ (this));
  }
  remove() {
    this.parentNode?.removeChild(this);
  }
  contains(/** @type {any} */ other) {
    for (let at = other; at; at = at.parentNode) if (at === this) return true;
    return false;
  }
}

class Text extends Node {
  nodeType = 3;
  constructor(/** @type {string} */ data) {
    super();
    this.data = data;
  }
  get textContent() {
    return this.data;
  }
  get nodeValue() {
    return this.data;
  }
  set nodeValue(text) {
    this.data = text;
  }
  get parentElement() {
    return this.parentNode;
  }
  splitText(/** @type {number} */ at) {
    const rest = new Text(this.data.slice(at));
    this.data = this.data.slice(0, at);
    return this.parentNode.insertBefore(rest, this.nextSibling);
  }
}

// A list of selectors: tags, ids, classes, attributes, some pseudo-classes, and what is inside what.
// The parts of a selector between these signs, but for those in brackets.
/** @type {(selector: string, signs: string) => string[]} */
const parted = (selector, signs) => {
  const parts = [""];
  let depth = 0;
  for (const sign of selector) {
    depth += Number("([".includes(sign)) - Number(")]".includes(sign));
    if (depth === 0 && signs.includes(sign)) parts.push("");
    else parts[parts.length - 1] += sign;
  }
  return parts.map((part) => part.trim()).filter(Boolean);
};
/** @type {Record<string, (element: any, argument: string) => boolean>} */
const PSEUDO = {
  not: (element, list) => !element.matches(list),
  is: (element, list) => element.matches(list),
  disabled: (element) => element.hasAttribute("disabled"),
  "focus-visible": () => false,
  "popover-open": (element) => Boolean(element.isPopoverOpen),
};
/** @type {(element: any, compound: string) => boolean} */
const fits = (element, compound) => {
  const tests = compound.match(/[#.:]?[\w-]+(?:\((?:[^()]|\([^()]*\))*\))?|\[[^\]]+\]|./g) ?? [];
  return tests.every((test) => {
    const name = test.slice(1);
    if (test[0] === "#") return element.getAttribute("id") === name;
    if (test[0] === ".") return element.classList.contains(name);
    if (/^[\w-]+$/.test(test)) return element.localName === test;
    if (test[0] === "[") {
      const [attribute, value] = test.slice(1, -1).split("=");
      const got = element.getAttribute(attribute);
      return got !== null && (value === undefined || got === value.replaceAll('"', ""));
    }
    const [, pseudo = "", argument = ""] = /^:([\w-]+)(?:\((.*)\))?$/.exec(test) ?? [];
    if (!(pseudo in PSEUDO)) throw new Error(`a selector that is not known here: ${compound}`);
    return PSEUDO[pseudo](element, argument);
  });
};
// Whether it fits the last of these parts, and those around it the others.
/** @type {(element: any, parts: string[]) => boolean} */
const fitsAll = (element, parts) => {
  const before = parts.slice(0, -1);
  if (!fits(element, parts[parts.length - 1])) return false;
  if (!before.length) return true;
  const isChild = before[before.length - 1] === ">";
  const around = isChild ? before.slice(0, -1) : before;
  for (let at = element.parentNode; at instanceof Element; at = at.parentNode) {
    if (fitsAll(at, around)) return true;
    if (isChild) return false;
  }
  return false;
};

class Element extends Node {
  nodeType = 1;
  clientWidth = room.width;
  clientHeight = 20;
  offsetWidth = WIDTH;
  scrollLeft = 0;
  /** @type {Record<string, string>} */ attributes = {};
  /** @type {Record<string, Set<Function>>} */ listeners = {};
  constructor(/** @type {string} */ name, namespace = "http://www.w3.org/1999/xhtml") {
    super();
    this.localName = name;
    this.namespaceURI = namespace;
    /** @type {Record<string, any>} */
    const style = {
      setProperty: (/** @type {string} */ key, /** @type {string} */ value) => {
        style[key] = value;
      },
    };
    this.style = style;
  }
  get nodeName() {
    return this.localName.toUpperCase();
  }
  get id() {
    return this.getAttribute("id") ?? "";
  }
  set className(/** @type {string} */ names) {
    this.setAttribute("class", names);
  }
  get textContent() {
    return super.textContent;
  }
  set textContent(text) {
    this.replaceChildren(new Text(text));
  }
  get ownerDocument() {
    return globalThis.document;
  }
  get children() {
    return this.childNodes.filter((child) => child instanceof Element);
  }
  get parentElement() {
    return this.parentNode;
  }
  get firstElementChild() {
    return this.children[0] ?? null;
  }
  get dataset() {
    const get = (/** @type {any} */ _, /** @type {string} */ name) =>
      this.getAttribute(`data-${kebab(name)}`) ?? undefined;
    return new Proxy({}, { get });
  }
  get classList() {
    const names = new Set((this.getAttribute("class") ?? "").split(" ").filter(Boolean));
    const set = () => this.setAttribute("class", [...names].join(" "));
    const toggle = (/** @type {string} */ name, is = !names.has(name)) => {
      if (is) names.add(name);
      else names.delete(name);
      set();
    };
    return {
      contains: (/** @type {string} */ name) => names.has(name),
      add: (/** @type {string} */ name) => toggle(name, true),
      remove: (/** @type {string} */ name) => toggle(name, false),
      replace: (/** @type {string} */ name, /** @type {string} */ other) => {
        if (names.delete(name)) toggle(other, true);
      },
      toggle,
    };
  }
  setAttribute(/** @type {string} */ name, /** @type {any} */ value) {
    this.attributes[name] = String(value);
  }
  getAttribute(/** @type {string} */ name) {
    return this.attributes[name] ?? null;
  }
  hasAttribute(/** @type {string} */ name) {
    return name in this.attributes;
  }
  removeAttribute(/** @type {string} */ name) {
    delete this.attributes[name];
  }
  addEventListener(/** @type {string} */ type, /** @type {Function} */ listener) {
    (this.listeners[type] ??= new Set()).add(listener);
  }
  removeEventListener(/** @type {string} */ type, /** @type {Function} */ listener) {
    this.listeners[type]?.delete(listener);
  }
  // Plotly's, of a box that it draws in.
  on(/** @type {string} */ type, /** @type {Function} */ listener) {
    this.addEventListener(type, listener);
  }
  matches(/** @type {string} */ selector) {
    return parted(selector, ",").some((each) => fitsAll(this, parted(each, " ")));
  }
  closest(/** @type {string} */ selector) {
    for (let at = /** @type {any} */ (this); at instanceof Element; at = at.parentNode)
      if (at.matches(selector)) return at;
    return null;
  }
  /** @type {(selector: string) => any[]} */
  querySelectorAll(selector) {
    const lists = parted(selector, ",").map((each) => parted(each, " "));
    /** @type {(element: Element) => any[]} */
    const within = (element) =>
      element.children.flatMap((child) => [
        ...(lists.some((parts) => fitsAll(child, parts)) ? [child] : []),
        ...within(child),
      ]);
    return within(this);
  }
  querySelector(/** @type {string} */ selector) {
    return this.querySelectorAll(selector)[0] ?? null;
  }
  getBoundingClientRect() {
    return BOX;
  }
  getClientRects() {
    return [BOX];
  }
  focus() {
    Object.assign(globalThis.document, { activeElement: this });
  }
  select() {}
  click() {
    press(this);
  }
  scrollIntoView() {}
  scrollTo() {}
  animate() {}
  getContext() {
    return PEN;
  }
}

/** @type {any} */
const PEN = new Proxy(
  {
    measureText: (/** @type {string} */ text) => ({ width: 7 * text.length }),
    createImageData: (/** @type {number} */ width, /** @type {number} */ height) => ({
      data: new Uint8ClampedArray(4 * width * height),
    }),
  },
  {
    get: (own, /** @type {string} */ name) => Reflect.get(own, name) ?? (() => {}),
    set: () => true,
  },
);

const body = new Element("body");
const root = Object.assign(new Element("html"), { lang: "en", scrollHeight: 1000 });
root.append(body);
/** @type {Record<string, Set<Function>>[]} of the whole document: those that come before its elements', and after */
const listeners = [{}, {}];
/** @type {any} */
const document = {
  body,
  ...{ head: new Element("head"), documentElement: root, activeElement: body },
  ...{ fonts: { ready: Promise.resolve() }, hidden: false },
  createElement: (/** @type {string} */ name) => new Element(name),
  createElementNS: (/** @type {string} */ space, /** @type {string} */ name) =>
    new Element(name, space),
  createTextNode: (/** @type {string} */ data) => new Text(data),
  createTreeWalker: (
    /** @type {any} */ around,
    /** @type {number} */ _,
    /** @type {(node: any) => boolean} */ accepts,
  ) => {
    /** @type {(node: any) => any[]} */
    const textsIn = (node) => (node instanceof Text ? [node] : node.childNodes.flatMap(textsIn));
    const texts = textsIn(around).filter(accepts);
    /** @type {any} */
    const walker = { currentNode: around };
    walker.nextNode = () => (walker.currentNode = texts.shift() ?? null);
    return walker;
  },
  getElementById: (/** @type {string} */ id) =>
    dataElements[id] ?? body.querySelector(`#${id}`) ?? null,
  querySelector: (/** @type {string} */ selector) => body.querySelector(selector),
  querySelectorAll: (/** @type {string} */ selector) => body.querySelectorAll(selector),
  addEventListener: (/** @type {string} */ type, /** @type {Function} */ hear, isFirst = false) =>
    (listeners[isFirst ? 0 : 1][type] ??= new Set()).add(hear),
  removeEventListener: (/** @type {string} */ type, /** @type {Function} */ hear) =>
    listeners.forEach((each) => each[type]?.delete(hear)),
};
// Elements of the page that hold data, by their ids.
/** @type {Record<string, { textContent: string }>} */
export const dataElements = {};

const css = readFileSync(new URL("../../transformer/web/theme.css", import.meta.url), "utf8");
/** @type {(name: string) => string} a colour, or another value of the light theme */
const valueInTheme = (name) => new RegExp(`${name}: *([^;]+);`).exec(css)?.[1] ?? "16";

class Pixels {
  constructor(/** @type {number} */ width, /** @type {number} */ height) {
    this.data = new Uint8ClampedArray(4 * width * height);
  }
}
// Nothing changes but what the page's scripts change.
class Observer {
  observe() {}
  takeRecords() {
    return [];
  }
  disconnect() {}
  unobserve() {}
}
/** @type {any} what the page's pictures are drawn with */
const Plotly = {
  react: async (/** @type {any} */ box, /** @type {any[]} */ data, /** @type {any} */ layout) => {
    const axis = { _offset: 0, _length: 100, range: [-0.5, 9.5] };
    const whole = data.map((trace) => ({ visible: true, ...trace }));
    Object.assign(box, { data, layout, _fullData: whole, calcdata: [[{ z: data[0]?.z }]] });
    box._fullLayout = { ...layout, xaxis: axis, yaxis: { ...axis, range: [9.5, -0.5] } };
  },
  purge: () => {},
  Icons: { camera: {} },
};
Object.assign(globalThis, {
  NodeFilter: { SHOW_TEXT: 4, FILTER_ACCEPT: true, FILTER_REJECT: false },
});
Object.assign(globalThis, { document, Node, Element, HTMLElement: Element, Text, Plotly });
Object.assign(globalThis, { IntersectionObserver: Observer, ResizeObserver: Observer });
Object.assign(globalThis, { MutationObserver: Observer, ImageData: Pixels });
Object.assign(globalThis, {
  ...{ window: globalThis, innerHeight: 800, innerWidth: 1200, scrollY: 0 },
  ...{ devicePixelRatio: 1, scrollBy: () => {}, scrollTo: () => {} },
  addEventListener: () => {},
  removeEventListener: () => {},
  requestAnimationFrame: (/** @type {Function} */ draw) => globalThis.setTimeout(draw, 0),
  cancelAnimationFrame: (/** @type {any} */ timer) => globalThis.clearTimeout(timer),
  requestIdleCallback: (/** @type {Function} */ work) => globalThis.setTimeout(work, 0),
  getComputedStyle: () => ({
    getPropertyValue: valueInTheme,
    display: "block",
    backgroundColor: "#ffffff",
  }),
  matchMedia: () => ({ matches: false, addEventListener: () => {} }),
  location: { href: "http://127.0.0.1/", search: "", pathname: "/", hash: "" },
});

// An event at an element, at those around it if nothing stops it, and at the document.
/** @type {(element: any, type: string, more?: object) => any} the event */
export const fire = (element, type, more = {}) => {
  let isStopped = false;
  const event = {
    ...{ type, target: element, isTrusted: true, button: 0, defaultPrevented: false },
    preventDefault: () => {
      event.defaultPrevented = true;
    },
    stopPropagation: () => {
      isStopped = true;
    },
    ...more,
  };
  for (const listener of listeners[0][type] ?? []) listener(event);
  for (let at = element; at && !isStopped; at = at.parentNode)
    for (const listener of at.listeners?.[type] ?? [])
      listener.call(at, Object.assign(event, { currentTarget: at }));
  if (!isStopped) for (const listener of listeners[1][type] ?? []) listener(event);
  return event;
};
export const press = (/** @type {any} */ element) => fire(element, "click");

// An element of the page to draw in.
export const place = () => body.appendChild(new Element("div"));

const SETTLES_MS = 10_000;
// Wait until nothing below an element is out of date, and until `isReached`.
/** @type {(element: any, isReached?: () => boolean) => Promise<void>} */
export const settled = async (element, isReached = () => true) => {
  const giveUp = Date.now() + SETTLES_MS;
  for (let quiet = 0; quiet < 3;) {
    await new Promise((done) => globalThis.setTimeout(done, 0));
    const isBusy = element.querySelectorAll("[aria-busy=true]").length > 0;
    quiet = isBusy || !isReached() ? 0 : quiet + 1;
    if (Date.now() > giveUp) throw new Error(`it never came to rest: ${element.textContent}`);
  }
};
