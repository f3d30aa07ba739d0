// The selected token: the chosen token is the last one read, and the predicted token is the one that follows
// it. For an encoder it is the chosen token itself.

import { html, effect } from "./preact.js";
import {
  chosenRow,
  headShown,
  labelsOf,
  on,
  page,
  setKey,
  setQuery,
  tracedFrom,
  setHead,
} from "./store.js";
import { oneOf, siteNamed, wholeNumber } from "./declared.js";
import { bindField } from "./fields.js";
import { siteName, sitesOf } from "./sites.js";
import { Token } from "./text.js";
import { say, sayWith } from "./messages.js";

// The position of the last token read: the chosen one of the run's text, else the run's default. A token that
// no longer fits into the window is not read.
export const readPosition = () =>
  chosenRow(page.run.stack) === null ? page.run.last_read : page.query.index;
// The tokens before a position that no longer fit into the window, if any.
/** @type {(position: number) => string | false} */
export const forgotten = (position) => {
  const { labels, trace_start: start } = page.run;
  const first = position + 1 - (labels.length - start);
  return (
    first > 0 &&
    say("It read tokens {first} to {last}; earlier ones no longer fit into the window.", {
      first,
      last: position,
    })
  );
};
// The position that is predicted; it may be one after the end. of: the position read.
export const predictedPosition = (of = readPosition()) =>
  page.run.stack === "encoder" ? of : of + 1;
// `predictedPosition` of the chosen token; null without one.
export const predictedIfChosen = () =>
  chosenRow(page.run.stack) === null ? null : predictedPosition();
// The token before a position.
/** @type {(place: number) => import("./store.js").Query} */
export const before = (place) => ({
  stack: page.run.stack,
  index: page.run.stack === "encoder" ? place : Math.max(0, place - 1),
});

// A token of the shown run's text, or one of this label, as a sentence's {token} and {place}.
/** @param {number} place @param {string} [label] */
export const tokenAt = (place, label = page.run.labels[place]) => ({
  place,
  token: html`<${Token} label=${label} />`,
});

// The predicted token in words; after the end it is not known yet. of: the last token read.
export const PredictedToken = ({ of = readPosition() }) => {
  const { labels, stack } = page.run;
  const token = (/** @type {number} */ place) =>
    html`<strong><${Token} label=${labels[place]} /></strong>`;
  const place = predictedPosition(of);
  const values = { read: token(of), at: of, place };
  const sentence = () => {
    if (stack === "encoder") return sayWith("Asked about: {read}, token {place}, itself.", values);
    return place < labels.length
      ? sayWith(
          "Last token read: {read} ({at}). Asked about: {token}, token {place}, which follows it.",
          { ...values, token: token(place) },
        )
      : sayWith(
          "Last token read: {read} ({at}). Nothing follows it yet, so the question is about the intact network's likeliest token.",
          values,
        );
  };
  return html`<p class="asked" data-place=${place}>${sentence()}</p>`;
};

// The selected row of a stack's trace; null for another stack than the text's without a chosen token.
/** @type {(stack: string) => number | null} */
const rowLookedAt = (stack) =>
  chosenRow(stack) ?? (stack === page.run.stack ? readPosition() - tracedFrom(stack) : null);

// The shown head and the selected row, {run, site, head, query}; null without a run.
export const headLookedAt = () => {
  const at = headShown();
  const query = at && rowLookedAt(at.stack);
  return at && { run: page.run.run, site: siteName(at), head: at.head, query };
};

// Keep the selected token when the same text is continued or altered.
on("run", (run) => {
  const { run: former, query: chosen } = page.before ?? {};
  if (!chosen || former?.text !== run.text || former.model !== run.model) return;
  const labels = chosen.stack === run.stack ? run.labels : run.source_labels;
  if (chosen.index >= labels.length) return;
  queueMicrotask(() => page.query ?? setQuery(chosen)); // after all listeners have the run
});

// ---- the head that reads a chosen token ----

/** @type {(of: { stack: string, kind: string }) => import("./types").Head} */
export const firstHead = ({ stack, kind }) => ({ stack, kind, layer: 0, head: 0 });
// The default kind of attention for a stack's tokens.
/** @type {(stack: string) => import("./store.js").Kind} */
export const usualKind = (stack) => {
  const own = page.run.kinds.filter((kind) => kind.stack === stack);
  return own.find(({ kind }) => kind === "cross") ?? own[0];
};
// The stack whose tokens are read.
/** @type {(of: { stack: string, kind: string }) => string} */
export const readStack = ({ stack, kind }) => (kind === "cross" ? "encoder" : stack);

/** @type {Map<string, import("./types").Head>} */
const lastHeads = new Map(); // of each kind of attention
on("run", ({ model }) => {
  if (model !== page.before?.run.model) lastHeads.clear();
});
effect(() => {
  if (page.head) lastHeads.set(`${page.head.stack} ${page.head.kind}`, page.head);
});
// Choosing a token that the shown head does not read shows the last head of that token's stack.
/** @type {(stack: string) => void} */
export const followStack = (stack) => {
  const at = headShown();
  if (!at || [at.stack, readStack(at)].includes(stack)) return;
  const usual = usualKind(stack);
  setHead(lastHeads.get(`${stack} ${usual.kind}`) ?? firstHead(usual));
};

// ---- the chosen head and token, as fields of the page's state ----

const firstSite = () => sitesOf(page.run)[0];
const siteShown = () => {
  const site = page.run && page.head ? siteName(page.head) : "";
  return site && site === siteName(firstSite()) ? "" : site;
};
bindField("site", siteShown, (text) => {
  if (!page.run) return;
  const site = text === "" ? firstSite() : siteNamed("site", text, page.run);
  setHead({ ...site, head: page.head?.head ?? 0 });
});
bindField(
  "head",
  () => page.head?.head ?? 0,
  (number) => {
    if (!page.run) return;
    const head = wholeNumber("head", number, 0, page.run.n_heads - 1);
    setHead({ ...(page.head ?? firstSite()), head });
  },
);

const MAX_NEURON = 2 ** 20; // of any layer; whether this one has it, its answer says
bindField(
  "forward",
  () => {
    const { stack, layer, neuron } = page.forward ?? {};
    return [stack, layer, neuron].filter((part) => part !== undefined).join(".");
  },
  (text) => {
    if (text === "" || !page.run) return void (page.forward = null);
    const [stack, number, index] = text.split(".");
    const kind = page.run.kinds.find((each) => each.stack === stack);
    oneOf("stack", stack, page.run.kinds.map((each) => each.stack)); // prettier-ignore
    const layer = wholeNumber("layer", number, 0, (kind?.n_layers ?? 1) - 1);
    const neuron =
      index === undefined ? {} : { neuron: wholeNumber("neuron", index, 0, MAX_NEURON) };
    page.forward = { stack, layer, ...neuron };
  },
);

/** @type {(token: import("./store.js").Query | null) => string} */
const nameOf = (token) => {
  if (!token || !page.run) return "";
  const { stack, index } = token;
  return stack === page.run.stack ? String(index) : `${stack}.${index}`;
};
/** @type {(field: string, name: string) => import("./store.js").Query | null} */
const tokenNamed = (field, name) => {
  if (!page.run || name === "") return null;
  const [stack, index] = name.includes(".") ? name.split(".") : [page.run.stack, name];
  const own = stack === page.run.stack;
  if (!own) oneOf("token's stack", stack, page.run.source_labels.length ? ["encoder"] : []);
  return { stack, index: wholeNumber(field, index, 0, labelsOf(stack).length - 1) };
};
bindField(
  "read",
  () => nameOf(page.query),
  (name) => setQuery(tokenNamed("read", name)),
);
bindField(
  "key",
  () => nameOf(page.key),
  (name) => {
    const key = tokenNamed("key", name);
    if (key) setKey(key);
    else page.key = null;
  },
);
