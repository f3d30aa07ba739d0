// The numbers of an attention picture, its title, and the page's cache of them.

import { firstHead, readStack, usualKind } from "../../web/selection.js";
import { ask } from "../../web/ask.js";
import { capital, say } from "../../web/messages.js";
import { KindButtons, Switch } from "../../web/controls.js";
import { attentionOf, siteName } from "../../web/sites.js";
import { atlasOf, headName } from "../../web/head_grid.js";
import { headNumbers, STAGE_NAMES } from "../../web/head_numbers.js";
import { useAnswer, useEvent } from "../../web/part.js";
import { headShown, page, setHead, tracedFrom } from "../../web/store.js";
import { once } from "./metrics_cache.js";
import { fieldsOf, pictureNamed } from "../../web/declared.js";
import {
  batch,
  html,
  useMemo,
  useRef,
  useState,
  signal,
  useSignalEffect,
} from "../../web/preact.js";

const KEPT = 64; // heads
const CELLS_KEPT = 8_000_000; // of all of them: 9 bytes each

// Ways of combining heads; rollout and joint attention are for self-attention only.
const combined = ({ which }, { kind }) => (kind === "self" ? which : "mean");
// What the large picture shows: "heatmap", "alignment", "lines", or how heads are combined.
const shownAs = (fields, at) => (fields.picture === "flow" ? combined(fields, at) : fields.picture);
export const isHeatmap = (picture) => !["lines", "alignment"].includes(picture);

// The kinds of attention as buttons: each leads to its first head. at: the chosen one.
export const HeadKinds = ({ at }) => {
  const kinds = page.run?.kinds ?? [];
  const chosen = kinds.findIndex(({ stack, kind }) => stack === at?.stack && kind === at.kind);
  const choose = (index) => setHead(firstHead(kinds[index]));
  return html`<${KindButtons} name=${say("Which attention")} ...${{ kinds, chosen, choose }} />`;
};
// How often the large picture was asked to be brought into sight.
export const looked = signal(0);

// Update the selection after a change of run or head.
export const useFollowing = (cell) => {
  const settle = () => {
    const at = headShown();
    if (at) setHead({ stack: at.stack, kind: at.kind, layer: at.layer, head: at.head });
  };
  useEvent("run", () => {
    store.forget();
    cell.letGo();
    settle();
  });
  const kind = useRef("");
  useSignalEffect(() => {
    const now = page.head && `${page.head.stack} ${page.head.kind}`;
    if (now && kind.current && kind.current !== now) cell.letGo();
    kind.current = now ?? kind.current;
  });
  useMemo(settle, []); // a link may have chosen a head before this part was mounted
};

// The heading of a head's picture, by the view's fields.
export const pictureTitle = (fields, at) => {
  const { stage: shown, depth, picture, over_heads: over } = fields;
  const { layer, head } = at;
  const name = headName(layer, head);
  const attention = attentionOf(at);
  const last = depth === "all" ? at.n_layers - 1 : layer;
  const layers =
    last === 0 ? say("layer {layer}", { layer: 0 }) : say("layers 0 to {last}", { last });
  const whose = {
    head: say("layer {layer}, head {head}", { layer, head }),
    layer: say("the mean of the heads of layer {layer}", { layer }),
    all: say("the mean of all heads"),
  };
  const title = say(pictureNamed(picture).title || picture);
  const how = shownAs(fields, at);
  const heads = say(fieldsOf("attention").which.options[how] ?? "");
  const averaged = depth === "all" ? say("all layers") : say("layer {layer}", { layer });
  const [first, stage] = {
    heatmap: [name, STAGE_NAMES[shown]],
    lines: [name, say("lines")],
    alignment: [title, whose[over]],
    mean: [heads, averaged],
    rollout: [heads, layers],
    joint: [heads, layers],
  }[how];
  return say("{name}: {attention}, {stage}", { name: first, attention, stage });
};

// ---- the numbers ----

// The request: {name, data}; stacks: of the rows' and columns' tokens.
export const numbersAsked = (fields, at) => {
  const { run } = page.run;
  const { stack, kind, layer, head } = at;
  const stacks = { queries: stack, keys: readStack({ stack, kind }) };
  if (fields.picture === "flow") {
    const depth = fields.depth === "all" ? null : layer;
    const of = { which: combined(fields, at), stack, kind, layer: depth };
    return { name: "flow", data: { run, ...of, numbers: true }, stacks };
  }
  const site = siteName({ stack, layer, kind });
  return { name: "heatmap", data: { run, site, head, numbers: true }, stacks };
};

// Set `shown` to the numbers for the fields and the chosen head, once they arrive.
export const useNumbers = ({ part, fields, shown, store: from }, at) => {
  const take = (found, asked) =>
    batch(() => Object.assign(shown, { ...found, ...asked.stacks, key: JSON.stringify(asked) }));
  useAnswer(part, from.get, at && numbersAsked(fields, at), take);
};

// get(asked) gives {numbers, figure, labels: {query, key}}, fetched once; prefetch() and forget().
const numberStore = () => {
  const kept = new Map();
  const keep = (key, found) => {
    kept.set(key, found);
    let cells = 0;
    for (const [one, { numbers }] of [...kept].reverse()) {
      cells += numbers.weights.length;
      if (one !== key && cells > CELLS_KEPT) kept.delete(one);
    }
    if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  };
  const get = async ({ name, data }) => {
    const key = JSON.stringify([name, data]);
    if (kept.has(key)) return kept.get(key);
    const answer = await ask(name, data);
    if (!kept.has(key)) {
      const { figure } = answer;
      const { query_labels: queries, key_labels: keys } = figure.layout.meta;
      keep(key, { numbers: headNumbers(answer), figure, labels: { query: queries, key: keys } });
    }
    return kept.get(key);
  };
  // On pointer down on a head, a tenth of a second before the click.
  const prefetch = (asked) => get(asked).catch(() => {});
  return { get, prefetch, forget: () => kept.clear() };
};
export const store = numberStore(); // of all pictures

// ---- all heads small ----

/** @type {any} */
let first = null; // the small pictures of the stored example, which are part of the page
export const firstAtlas = (sent) => (first = sent && { ...sent, ...atlasOf(sent) });
const isFirst = (wanted) => first && Object.keys(wanted).every((one) => first[one] === wanted[one]);
const later = once("atlas", atlasOf);
const atlases = async (wanted) => (isFirst(wanted) ? first : later(wanted));
// The small pictures of a kind of attention, {run, stack, kind}, with that kind; requested once.
export const useAtlas = (part, wanted) => {
  const { answer, asked } = useAnswer(part, atlases, wanted);
  return { atlas: answer, of: asked };
};

// ---- what a token reads ----

// The source of the shown weights: the fields of their picture, and their name.
const source = (fields, at) => {
  const { layer, head } = at;
  const { picture, over_heads: over, depth } = fields;
  const mean = (of) =>
    capital(
      of === "all"
        ? say("the mean of all heads")
        : say("the mean of the heads of layer {layer}", { layer }),
    );
  if (picture === "alignment" && over !== "head") {
    return { of: { picture: "flow", which: "mean", depth: over }, whose: mean(over) };
  }
  const whose = {
    mean: mean(depth),
    rollout: say("Attention through the layers"),
    joint: say("Joint attention"),
  }[shownAs(fields, at)];
  if (whose) return { of: fields, whose };
  return { of: { picture: "heatmap" }, whose: headName(layer, head) };
};

// Returns reading(token): the token's weights in the shown picture; if that is not visible, by the chosen
// head; for a token that is no query there, by the mean of all heads; null for a token without recorded
// attention.
export const tokenReader = (shown, isInSight) => async (token) => {
  const fields = isInSight() ? shown : { picture: "heatmap" };
  const { run } = page.run;
  const at = headShown();
  const asks = token.stack === at?.stack;
  const usual = usualKind(token.stack);
  const of = asks ? at : usual && { ...usual, layer: 0, head: 0 };
  const row = token.index - tracedFrom(token.stack);
  if (row < 0 || !of) return null;
  const read = source(asks ? fields : { picture: "flow", which: "mean", depth: "all" }, of);
  const { numbers, labels } = await store.get(numbersAsked(read.of, of));
  const width = labels.key.length;
  if (page.run.run !== run || row >= labels.query.length) return null;
  const stack = readStack(of);
  const weights = numbers.weights.subarray(row * width, (row + 1) * width);
  return { stack, whose: read.whose, weights, first: tracedFrom(stack) };
};

// The switches above the attention picture, one per field of the view.

// The kind of attention of a picture that shows only one kind.
const KIND_OF = { alignment: "cross" };

export const isOffered = (picture, kind) => (KIND_OF[picture] ?? kind) === kind;

// words: {value: other words}; offers(value): whether it can be chosen.
const FieldSwitch = ({ fields, field, words = {}, offers = Boolean, ...how }) => {
  const { title, options } = fieldsOf("attention")[field];
  const offered = Object.entries(options)
    .filter(([value]) => offers(value))
    .map(([value, text]) => [value, words[value] ?? say(text)]);
  return html`<${Switch} name=${`attention-${field}`} title=${say(title)} options=${offered}
    value=${fields[field]} set=${(value) => (fields[field] = value)} data-field=${field}
    hidden=${offered.length < 2} ...${how} />`;
};

// fields: of the view; at: the chosen head; motion: a button among them.
export const Switches = ({ fields, at, motion }) => {
  const { kind, layer } = at;
  const { picture, stage } = fields;
  const [isMore, showMore] = useState(false);
  const offers = (value) =>
    isOffered(value, kind) && (isMore || value === picture || value !== "flow");
  const one = (field, look, pictures, more = {}) =>
    html`<${FieldSwitch} class=${look} hidden=${!pictures.includes(picture)} ...${{ fields, field, ...more }} />`;
  const upTo =
    combined(fields, at) === "mean" || layer === 0 ? `${layer}` : say("0 to {layer}", { layer });
  const coloured = isMore && isHeatmap(picture) ? [picture] : [];
  const disabled = picture === "heatmap" && stage !== "weights";
  return html`<${FieldSwitch} field="picture" class="pictures" ...${{ fields, offers }} />
    ${one("stage", "stages", ["heatmap"])}
    ${motion}
    ${one("which", "combining", kind === "self" ? ["flow"] : [])}
    ${one("depth", "depths", ["flow"], { words: { layer: upTo } })}
    ${one("threshold", "thresholds", ["lines"])}
    ${one("over_heads", "over", ["alignment"])}
    ${one("by", "by", ["alignment"])}
    <button type="button" class="more-button" aria-expanded=${String(isMore)}
      onClick=${() => showMore(!isMore)}>${isMore ? say("Less") : say("More")}</button>
    ${one("scale", "scales", coloured, { disabled })}
    ${one("range", "ranges", coloured, { disabled })}`;
};
