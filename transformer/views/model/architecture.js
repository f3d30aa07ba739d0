// The network as columns of blocks, which are buttons that open their views.

import { hasMoved } from "../../web/pointer.js";
import { fields } from "../../web/fields.js";
import { declared, views } from "../../web/declared.js";
import { shell, page, setHead } from "../../web/store.js";
import { hasServer } from "../../web/ask.js";
import { say, sayList, sayWith, wholeText } from "../../web/messages.js";
import { mounted, useAnswer, useEvent, usePart, openSection } from "../../web/part.js";
import { html, useLayoutEffect, useRef, useState } from "../../web/preact.js";
import { formulaLine } from "./equations.js";

/**
 * @typedef {import("./types").Block} Block
 * @typedef {import("./types").Stack} Stack
 * @typedef {import("./types").Architecture["leads"]} Leads
 */

const SPARE_PX = 290; // width that the explanation needs next to a column
const COLUMN_PX = 312; // of a stack
const LANE_PX = 43; // from the middle between two stacks to a block

// ---- words ----

/** @param {string} name */
const computedBy = (name) => {
  const model = html`<bdi translate=${false}>${name}</bdi>`;
  if (!page.inBrowser.includes(name))
    return hasServer() && sayWith("The server computes {model}.", { model });
  return hasServer()
    ? sayWith(
        "This browser computes {model}; the server is asked only what the browser cannot answer.",
        { model },
      )
    : sayWith("This browser computes {model}.", { model });
};
/** @type {(run: import("../../web/store.js").Run) => string} */
const tokensInWords = ({ labels, trace_start: start, source_labels: source }) => {
  const count = labels.length - start;
  return source.length
    ? say(
        "S and T: tokens of the source and of the translation ({n_source} and {n_target} in " +
          "this run).",
        { n_source: source.length, n_target: count },
      )
    : say("T: tokens of the text ({count} in this run).", { count });
};
/** @type {(block: Block, blocks: Block[]) => string} */
const parameters = ({ each, times, shared_with: owner }, blocks) => {
  if (!each && owner) {
    const title = blocks.find(({ name }) => name === owner)?.title;
    return say("0 of its own, shared with “{title}”", { title });
  }
  return times > 1
    ? say("{each} × {times} parameters", { each: wholeText(each), times })
    : say("{each} parameters", { each: wholeText(each) });
};
/** @param {{ block?: Block, blocks: Block[], leads: Leads }} props */
const Explanation = ({ block, blocks, leads }) => {
  if (!block) return say("Point at a block to read what it does; press it to open its view.");
  const tab = leads[block.kind]?.title;
  return html`<b>${block.title}</b>${` ${say("{sentence}.", { sentence: sayList([block.shape, parameters(block, blocks)]) })} ${block.does}`}${
    tab && ` ${say("Press to open {tab}.", { tab })}`
  }`;
};

// Open the view of a block, or its formula.
/** @type {(block: Block, leads: Leads) => void} */
const follow = ({ stack, kind }, leads) => {
  const { tab: name, equation } = leads[kind] ?? { title: "" };
  if (equation) {
    if (page.head?.stack !== stack) setHead({ stack, kind: "self", layer: 0, head: 0 });
    fields.equation = equation;
    openSection("equations");
  }
  if (!name || !(name in declared.page.tab.options)) return;
  if (name === "attention" && (page.head?.stack !== stack || page.head?.kind !== kind)) {
    setHead({ stack, kind, layer: 0, head: 0 });
  }
  const tab = shell.openTab(name);
  tab?.focus();
  tab?.scrollIntoView({ block: "nearest" });
};

// ---- the formulas ----

const hasEquations = views.some(({ name }) => name === "equations"); // a saved page has none

// A formula opens the code that computes it and the numbers of this run; `is-here` with its blocks.
/** @param {{ formulas: import("./types").BlockFormula[], blocks: Block[], drawing: Drawing }} props */
const Formulas = ({ formulas, blocks, drawing: { here, show } }) => {
  const hereKind = blocks.find(({ name }) => name === here)?.kind ?? "";
  const open = (/** @type {string} */ topic) => {
    fields.equation = topic;
    if (hasEquations) openSection("equations");
  };
  /** @param {import("./types").BlockFormula} block */
  const row = ({ equation, title, formula, kinds }) => {
    const block = blocks.find(({ kind }) => kinds.includes(kind)) ?? null;
    const look = [kinds.includes(hereKind) && "is-here", `of-${equation}`];
    return html`<li><button type="button" class=${["formula-of", ...look].filter(Boolean).join(" ")} data-equation=${equation}
      onClick=${() => open(equation)} onFocus=${() => show(block)}
      onPointerEnter=${(/** @type {PointerEvent} */ event) => hasMoved(event) && show(block)}>
      <b>${title}</b><span class="formula-lines">${formula.map((line) => formulaLine(line))}</span></button></li>`;
  };
  return html`<ol class="formulas" onPointerLeave=${() => show(null)}>${formulas.map(row)}</ol>
    ${hasEquations && formulas.length > 0 && html`<p class="hint">${say("Press a formula for the code that computes it and the numbers of this run.")}</p>`}`;
};

// ---- the drawing ----

/**
 * @typedef {object} Drawing
 * @property {Leads} leads
 * @property {string | null} here the name of the described block
 * @property {Ref} memoryRef the end of an encoder
 * @property {Ref} crossRef the block that reads it
 * @property {(block: Block | null) => void} show
 * @property {(block: Block) => void} open
 */

/** @param {{ block: Block, drawing: Drawing }} props */
const Box = ({ block, drawing: { leads, here, show, open, crossRef } }) => {
  const { name, kind, title, short, each } = block;
  const numbers = kind === "softmax" ? short : [short, wholeText(each)].filter(Boolean).join(" · ");
  const look = { self: "is-attention", cross: "is-attention", feed_forward: "is-feed-forward" }[
    kind
  ];
  return html`<button type="button" class=${`block ${look ?? ""} ${name === here ? "is-here" : ""}`}
    ref=${kind === "cross" ? crossRef : undefined} data-block=${name} data-leads=${leads[kind]?.title} onClick=${() => open(block)} onFocus=${() => show(block)}
    onPointerEnter=${(/** @type {PointerEvent} */ event) => hasMoved(event) && show(block)}>
    <b>${title}</b>${short ? html`<br />` : " · "}<span class="facts">${numbers}</span>
  </button>`;
};

// What is added to the stream, beside the line of the stream itself.
/** @param {{ branches: Block[][], drawing: Drawing }} props */
const Sum = ({ branches, drawing }) => html`<div class="sum">
  <div class="branches">${branches.map(
    (blocks) => html`<div class="branch">
      ${blocks.map((block) => html`<${Box} key=${block.name} block=${block} drawing=${drawing} />`)}
    </div>`,
  )}</div>
  <i class="skip" /><span class="plus">+</span>
</div>`;

/** @param {{ stack: Stack, drawing: Drawing }} props */
const Column = ({ stack, drawing }) => {
  const { sublayers, parallel, before, after, reads, writes, shape, times } = stack;
  const isMemory = stack.stack === "encoder";
  /** @param {Block[]} blocks */
  const boxes = (blocks) =>
    blocks.map((block) => html`<${Box} key=${block.name} block=${block} drawing=${drawing} />`);
  const sums = parallel
    ? html`<${Sum} branches=${sublayers.map(({ branch }) => branch)} drawing=${drawing} />`
    : sublayers.map(({ branch, after: norms }) => [
        html`<${Sum} branches=${[branch]} drawing=${drawing} />`,
        boxes(norms),
      ]);
  return html`<div class="stack">
    <p class="end">${reads}</p>
    ${boxes(before)}
    <div class="layer"><p class="shape">${shape}</p>${sums}<p class="times">${times}</p></div>
    ${boxes(after)}
    ${writes && html`<p class="end is-output"><span ref=${isMemory ? drawing.memoryRef : undefined}>${writes}</span></p>`}
  </div>`;
};

/** @typedef {{ current: HTMLElement | null }} Ref */
// The way from the end of an encoder to the cross-attention, and its head, as SVG paths; px in `columns`.
/** @type {(columns: Ref, from: Ref, to: Ref) => string[]} */
const pathOfMemory = (...refs) => {
  const [columns, from, to] = refs.map(({ current }) => current?.getBoundingClientRect());
  if (!columns || !from || !to) return [];
  const { left, top } = columns;
  const [x, y] = [from.right - left, (from.top + from.bottom) / 2 - top];
  const [toX, toY] = [to.left - left, (to.top + to.bottom) / 2 - top];
  return [`M${x},${y} H${toX - LANE_PX} V${toY} H${toX - 6}`, `M${toX},${toY} l-6,-4 v8 z`];
};

// ---- the part ----

const Architecture = () => {
  const part = usePart();
  const { run } = page;
  const { answer, asked } = useAnswer(part, "architecture", run && { run: run.run });
  const [pointed, setPointed] = useState(/** @type {string | null} */ (null));
  const [memory, setMemory] = useState(/** @type {string[]} */ ([]));
  const [columns, memoryRef, crossRef] = [null, null, null].map((none) =>
    useRef(/** @type {HTMLElement | null} */ (none)),
  );
  useEvent("run", () => setPointed(null));
  useLayoutEffect(() => {
    setMemory(pathOfMemory(columns, memoryRef, crossRef));
  }, [answer, part.width]);
  const { title, n_parameters: total = 0, stacks = [], leads = {}, formulas = [] } = answer ?? {};
  const blocks = stacks.flatMap(({ before, sublayers, after }) => [
    ...before,
    ...sublayers.flatMap((layer) => [...layer.branch, ...layer.after]),
    ...after,
  ]);
  // The feed-forward whose card Journey shows is marked, unless another block is pointed at.
  const opened = blocks.find(
    ({ kind, stack }) => kind === "feed_forward" && stack === page.forward?.stack,
  );
  const here = pointed ?? opened?.name ?? null;
  /** @type {Drawing} */
  const drawing = {
    leads,
    here,
    memoryRef,
    crossRef,
    show: (block) => setPointed(block?.name ?? null),
    open: (block) => {
      setPointed(block.name);
      follow(block, leads);
    },
  };
  const isWide = stacks.length * COLUMN_PX + SPARE_PX <= part.width;
  return html`<div class=${isWide ? "architecture in-columns" : "architecture"}
    ...${part.attributes({ run: asked?.run, blocks: answer ? blocks.length : undefined })}>
    <div class="architecture-text">
      <h3 class="architecture-title">${
        title &&
        say("{title}, {n_parameters} parameters", { title, n_parameters: wholeText(total) })
      }</h3>
      <p class="architecture-letters">${run && tokensInWords(run)}</p>
      <p class="architecture-says" role="status">
        <${Explanation} block=${blocks.find(({ name }) => name === here)} blocks=${blocks} leads=${leads} />
      </p>
      <${Formulas} ...${{ formulas, blocks, drawing }} />
    </div>
    <div class="architecture-drawing">
      <div class="stacks" ref=${columns} onPointerLeave=${() => drawing.show(null)}>
        ${stacks.map((stack) => html`<${Column} key=${stack.stack} stack=${stack} drawing=${drawing} />`)}
        <svg class="memory" aria-hidden="true">
          <path d=${memory[0]} /><path class="head" d=${memory[1]} />
        </svg>
      </div>
      <p class="computed-by">${run && computedBy(run.model)}</p>
    </div>
  </div>`;
};
export const mount = mounted(Architecture);
