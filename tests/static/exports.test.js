// Downloads: which pictures are offered and how files are named; and a notebook's page, from packed bytes.
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import test from "node:test";

import { chance } from "../kit/chance.js";
import { dataElements, fire, place, press, settled } from "../kit/dom.js";
import { modules } from "../kit/later.js";
import { drawnView, show, texts } from "./drawn.js";
import { page, setHead } from "../../transformer/web/store.js";
import { mount } from "../../transformer/views/export/exports.js";
import { canUnpack, contentOf, filled } from "../../transformer/views/export/static/pack.js";

const { document } = globalThis;
const { body } = document;
modules["views/export/page_picture.js"] = {
  pagePicture: () => ({ svg: "<svg>journey</svg>", width: 30, height: 20 }),
};
/** @type {{ name: string, blob: Blob }[]} */
const saved = [];
/** @type {any} */
const element = Object.getPrototypeOf(body);
URL.createObjectURL = (/** @type {any} */ blob) => {
  blobs.push(blob);
  return `blob:${blobs.length - 1}`;
};
URL.revokeObjectURL = () => {};
/** @type {Blob[]} */
const blobs = [];
// An address is given back a minute later: nothing waits for that.
const { setTimeout: later } = globalThis;
globalThis.setTimeout = /** @type {any} */ (
  (/** @type {any} */ work, /** @type {number} */ ms) => (ms > 10_000 ? 0 : later(work, ms))
);
element.click = function click() {
  if (this.localName === "a")
    saved.push({ name: this.download, blob: blobs[Number(this.href.slice(5))] });
  else press(this);
};
element.compareDocumentPosition = function compare(/** @type {any} */ other) {
  /** @type {(node: any) => any[]} */
  const all = (node) => [node, ...node.children.flatMap(all)];
  const order = all(body);
  return order.indexOf(this) < order.indexOf(other) ? 4 : 2;
};
Object.assign(globalThis.Node, { DOCUMENT_POSITION_FOLLOWING: 4 });
// Its toImage: what it was given, as an SVG.
/** @type {any[]} */
const drawings = [];
const { Plotly } = /** @type {any} */ (globalThis);
Plotly.toImage = async (/** @type {any[]} */ ...given) => (
  drawings.push(given),
  "data:image/svg+xml,picture"
);
/** @type {(tag: string, attributes?: Record<string, string>, around?: any) => any} */
const add = (tag, attributes = {}, around = right) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return around.appendChild(made);
};
const right = place();
right.setAttribute("id", "right");
/** @type {(text: string, look?: string) => any} */
const heading = (text, look) => {
  const made = add("h3");
  made.append(document.createTextNode(text));
  if (look) add("span", { class: look }, made).append(document.createTextNode("copies"));
  return made;
};
const plot = (/** @type {string} */ name) =>
  Object.assign(add("div", { class: "js-plotly-plot" }), {
    data: [name],
    layout: { width: 300, height: 200, margin: { l: 5, t: 7 } },
  });
const toggle = (/** @type {any} */ view) => {
  const details = view.querySelector("details");
  fire(details, "toggle", { target: { open: true } });
  return settled(view);
};
const bytesOf = async (/** @type {Blob} */ blob) => Buffer.from(await blob.arrayBuffer());

test("a picture is offered while it is seen and up to date, under the heading before it", async () => {
  show({ model: "Ünï model!" });
  heading("First");
  const [one, two] = [plot("one"), plot("two")];
  heading("Layer 1, head 0: ", "head-label");
  const three = plot("three");
  const hidden = plot("hidden");
  hidden.getClientRects = () => [];
  const busy = add("div", { "aria-busy": "true" });
  busy.append(plot("late"));
  const view = await drawnView(mount);
  await toggle(view);
  const names = () => texts(view, "option");
  assert.deepEqual(names(), ["First", "First", "Layer 1, head 0: : copies"]);
  busy.removeAttribute("aria-busy");
  fire(view.querySelector("select"), "pointerdown");
  await settled(view);
  assert.equal(names().length, 4);
  assert.ok(one && two && three);
  const save = async (/** @type {string} */ format) => {
    const before = saved.length;
    press(view.querySelector(`[data-picture=${format}]`));
    await settled(
      view,
      () => saved.length > before && texts(view, ".export-note")[0].startsWith("Saved"),
    );
    return /** @type {{ name: string, blob: Blob }} */ (saved.at(-1));
  };
  assert.equal((await save("svg")).name, "u-ni-model-first.svg");
  assert.equal(texts(view, ".export-note")[0], "Saved u-ni-model-first.svg (1 KB).");
  const [{ data, layout }, size] = drawings.at(-1);
  assert.deepEqual([data, size], [["one"], { format: "svg", width: 300, height: 236, scale: 1 }]); // with a title above
  assert.deepEqual([layout.title.text, layout.margin], ["First", { l: 5, r: 20, t: 43, b: 60 }]);
  fire(view.querySelector("select"), "change", { target: { selectedIndex: 2 } });
  await settled(view);
  assert.equal((await save("png")).name, "u-ni-model-layer-1-head-0-copies.png");
  assert.deepEqual([drawings.at(-1)[0].data, drawings.at(-1)[1].scale], [["three"], 2]);
  // The one that was chosen stays chosen where others come before it.
  right.insertBefore(add("h3"), right.firstChild);
  right.insertBefore(plot("zero"), right.firstChild);
  fire(view.querySelector("select"), "focus");
  await settled(view);
  await save("svg");
  assert.deepEqual(drawings.at(-1)[0].data, ["three"]);
  right.replaceChildren();
  fire(view.querySelector("select"), "focus");
  await settled(view);
  press(view.querySelector("[data-picture=png]"));
  await settled(view, () => page.status.kind === "error");
  assert.match(page.status.text, /^No picture can be seen now/);
  assert.equal(texts(view, ".export-note")[0], "");
});

test("all heads are one picture, layers across and heads down", async () => {
  show();
  const grid = add("div", { class: "head-grid", "data-layers": "3" });
  for (let at = 0; at < 6; at += 1) add("canvas", {}, grid).toDataURL = () => `data:${at}`;
  const journey = add("div", { class: "journey" });
  const view = await drawnView(mount);
  await toggle(view);
  assert.deepEqual(texts(view, "option"), ["Journey", "Every head"]);
  fire(view.querySelector("select"), "change", { target: { selectedIndex: 1 } });
  await settled(view);
  press(view.querySelector("[data-picture=svg]"));
  await settled(view, () => saved.at(-1)?.name === "tiny-every-head.svg");
  const svg = String(await bytesOf(/** @type {any} */ (saved.at(-1)).blob));
  const images = [
    ...svg.matchAll(/<image x="(\d+)" y="(\d+)" width="(\d+)".*?href="data:(\d)"/g),
  ].map((match) => match.slice(1).map(Number));
  const [size, gap] = [images[0][2], images[1][0] - images[0][0]];
  assert.ok(size < gap);
  for (const [x, y, , at] of images)
    assert.deepEqual(
      [(x - images[0][0]) / gap, (y - images[0][1]) / gap],
      [at % 3, Math.floor(at / 3)],
    );
  const numbers = [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)".*?>(\d)</g)].map((match) =>
    match.slice(1).map(Number),
  );
  assert.deepEqual(
    numbers.map(([, , number]) => number),
    [0, 1, 2, 0, 1],
  );
  for (const [at, [x]] of numbers.slice(0, 3).entries())
    assert.ok(x > images[at][0] && x < images[at][0] + gap);
  const [, width, height] = /width="(\d+)" height="(\d+)"/.exec(svg)?.map(Number) ?? [];
  assert.deepEqual([width - images[0][0], height - images[0][1]], [3 * gap, 2 * gap]);
  fire(view.querySelector("select"), "change", { target: { selectedIndex: 0 } });
  await settled(view);
  press(view.querySelector("[data-picture=svg]"));
  await settled(view, () => saved.at(-1)?.name === "tiny-journey.svg");
  assert.equal(String(await bytesOf(/** @type {any} */ (saved.at(-1)).blob)), "<svg>journey</svg>");
  journey.remove();
  grid.remove();
});

test("a run is saved in each form, with its head where that matters; a visitor's own network has fewer", async () => {
  const { answerFrom } = await import("../../transformer/web/ask.js");
  /** @type {any[]} */
  const asked = [];
  const draw = chance(5);
  const bytes = Uint8Array.from({ length: 300 }, () => draw.whole(0, 255));
  const file = (/** @type {any} */ data) => (
    asked.push(data),
    data.form === "npz"
      ? { name: "run.npz", type: "application/zip", base64: Buffer.from(bytes).toString("base64") }
      : { name: `run.${data.form ?? "html"}`, type: "text/plain", text: "é".repeat(100_000) }
  );
  answerFrom(
    { export: file, offline_page: (/** @type {any} */ data) => file({ ...data, whole: true }) },
    () => true,
  );
  Object.assign(globalThis.location, { origin: "http://a", pathname: "/b/" });
  const run = show();
  setHead({ stack: "decoder", kind: "self", layer: 1, head: 0 });
  const view = await drawnView(mount);
  assert.equal(texts(view, ".chosen-head")[0], "–");
  await toggle(view);
  assert.equal(texts(view, ".chosen-head")[0], "layer 1, head 0");
  const save = async (/** @type {string} */ form) => {
    const before = saved.length;
    press(view.querySelector(`[data-form=${form}]`));
    await settled(
      view,
      () => saved.length > before && texts(view, ".export-note")[0].startsWith("Saved"),
    );
    return asked.at(-1);
  };
  const head = { site: "decoder.1.self", head: 0 };
  assert.deepEqual(await save("csv"), { run, form: "csv", ...head });
  assert.equal(texts(view, ".export-note")[0], "Saved run.csv (0.2 MB).");
  assert.deepEqual(await save("json"), { run, form: "json" });
  assert.deepEqual(await save("npz"), { run, form: "npz" });
  const { blob } = /** @type {any} */ (saved.at(-1));
  assert.deepEqual([new Uint8Array(await bytesOf(blob)), blob.type], [bytes, "application/zip"]);
  assert.deepEqual(await save("py"), { run, form: "py", ...head, address: "http://a/b/" });
  assert.deepEqual(await save("html"), { run, form: "html", ...head });
  fire(view.querySelector(".with-network"), "change", { target: { checked: true } });
  await settled(view);
  assert.deepEqual(await save("html"), { run, ...head, whole: true });
  assert.deepEqual(await save("json"), { run, form: "json" });
  const own = show({ model: "tiny~mine" });
  await settled(view);
  assert.deepEqual(
    ["py", "html"].map((form) => view.querySelector(`[data-form=${form}]`) !== null),
    [false, true],
  );
  assert.equal(view.querySelector(".with-network"), null);
  assert.deepEqual(await save("html"), { run: own, form: "html", ...head });
});

// ---- packed data ----

const KINDS = {
  f4: Float32Array,
  f8: Float64Array,
  i1: Int8Array,
  i2: Int16Array,
  i4: Int32Array,
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
};
// The bytes of arrays plane by plane, after the JSON; as packing.py writes them.
/** @type {(content: any, arrays: [string, any][]) => ArrayBuffer} */
const packed = (content, arrays) => {
  const json = Buffer.from(
    JSON.stringify({ arrays: arrays.map(([kind, { length }]) => [kind, length]), content }),
  );
  const start = Buffer.alloc(4);
  start.writeUInt32LE(json.length);
  const planes = arrays.flatMap(([, array]) => {
    const whole = Buffer.from(array.buffer);
    const size = array.BYTES_PER_ELEMENT;
    return Array.from({ length: size }, (_, plane) =>
      Buffer.from(whole.filter((__, at) => at % size === plane)),
    );
  });
  const all = Buffer.concat([start, json, ...planes]);
  return Uint8Array.from(all).buffer;
};

test("packed numbers are what was packed, of any kind and shape", () => {
  assert.equal(canUnpack, true);
  const draw = chance(17);
  for (let round = 0; round < 20; round += 1) {
    const shapes = Array.from({ length: draw.whole(1, 4) }, () =>
      Array.from({ length: draw.whole(1, 3) }, () => draw.whole(1, 4)),
    );
    const arrays = shapes.map((shape) => {
      const kind = draw.one(Object.keys(KINDS));
      const most = kind[0] === "f" ? 1e6 : kind[0] === "i" ? 100 : 200;
      const values = Array.from({ length: shape.reduce((a, b) => a * b) }, () =>
        kind[0] === "u" ? draw.whole(0, most) : draw.whole(-most, most),
      );
      return /** @type {[string, any]} */ ([kind, /** @type {any} */ (KINDS)[kind].from(values)]);
    });
    const content = {
      text: "say",
      list: shapes.map((shape, array) => ({ of: [{ array, shape }] })),
      none: null,
    };
    const found = /** @type {any} */ (
      contentOf(packed(content, arrays), (text) => text.replace("say", "say!"))
    );
    assert.equal(found.text, "say!");
    const whole = /** @type {any} */ (filled(found));
    assert.equal(whole.none, null);
    /** @type {(value: any) => number[]} */
    const flat = (/** @type {any} */ value) =>
      Array.from(value).flatMap((each) => (typeof each === "number" ? [each] : flat(each)));
    for (const [at, [, values]] of arrays.entries()) {
      let [value] = whole.list[at].of;
      assert.deepEqual(flat(value), [...values]);
      for (const size of shapes[at]) {
        assert.equal(value.length, size);
        [value] = value;
      }
    }
  }
});

test("a notebook's page shows each head of each attention, cell by cell", async () => {
  const pixels = Uint8Array.from({ length: 2 * 2 * 6 }, (_, at) => 10 * at); // 2 layers, 2 heads, 2 queries, 3 keys
  const masked = Uint8Array.from({ length: 2 * 6 }, (_, at) => Number(at === 7)); // layer 1, query 0, key 1
  const kind = (/** @type {string} */ name, more = {}) => ({
    ...{
      stack: "decoder",
      kind: name,
      queries_before: 4,
      keys_before: 3,
      query_labels: ["x", "y"],
      key_labels: ["a", "b", "c"],
      off: [[], [1]],
    },
    ...{
      pixels: { array: 0, shape: [2, 2, 2, 3] },
      masked: { array: 1, shape: [2, 2, 3] },
      ...more,
    },
  });
  const kinds = [kind("cross", { queries_before: 0, keys_before: 0 }), kind("self")];
  const data = gzipSync(
    Buffer.from(
      packed({ kinds }, [
        ["u1", pixels],
        ["u1", masked],
      ]),
    ),
  );
  const box = place();
  dataElements.shown = /** @type {any} */ (box);
  dataElements.data = { textContent: data.toString("base64") };
  await import("../../transformer/views/export/static/notebook.js");
  await settled(body, () => box.querySelector("#title") !== null);
  const says = (/** @type {string} */ id) => texts(box, `#${id}`)[0];
  assert.equal(says("title"), "Layer 0, head 0, the last 2 of 6 queries");
  const buttons = () => box.querySelectorAll("#grid button");
  assert.equal(buttons().length, 4);
  press(buttons()[3]); // head 1, layer 1
  await settled(box);
  assert.equal(says("title"), "Layer 1, head 1, switched off, the last 2 of 6 queries");
  const large = box.querySelector("#large");
  const point = async (/** @type {number} */ x, /** @type {number} */ y) => {
    fire(large, "pointermove", { offsetX: x, offsetY: y, currentTarget: large });
    await settled(box);
    return says("readout");
  };
  const wide = large.clientWidth;
  const high = large.clientHeight;
  for (let row = 0; row < 2; row += 1)
    for (let column = 0; column < 3; column += 1) {
      const place_ = 3 * 6 + row * 3 + column;
      const weight = ((10 * place_) / 255) ** 2;
      const reading =
        row === 0 && column === 1 ? "hidden by the mask" : `weight ${weight.toFixed(2)}`;
      const cell = await point(((column + 0.5) / 3) * wide, ((row + 0.5) / 2) * high);
      assert.equal(
        cell,
        `query ${4 + row} ${"xy"[row]} reads key ${3 + column} ${"abc"[column]}: ${reading}`,
      );
    }
  assert.match(await point(wide + 50, -5), /^query 4 x reads key 5 c/); // at its edge
  fire(box.querySelector("#kind"), "change", { target: { value: "0" } });
  await settled(box);
  assert.equal(says("title"), "Layer 0, head 0");
  assert.match(says("readout"), /^Point at a cell/);
});
