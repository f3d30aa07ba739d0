// What the server tells of the shown run's heads, requested once: the numbers of a head or of many combined, all
// heads small, and their metrics; and what a token reads.

import { askOnce, keptAnswer } from "../../web/ask.js";
import { KindButtons } from "../../web/controls.js";
import { fields } from "../../web/fields.js";
import { atlasOf } from "../../web/head_grid.js";
import { headNumbers } from "../../web/head_numbers.js";
import { capital, say } from "../../web/messages.js";
import { useAnswer } from "../../web/part.js";
import { batch, html } from "../../web/preact.js";
import { firstHead, readStack, usualKind } from "../../web/selection.js";
import { headName, siteName } from "../../web/sites.js";
import { headShown, kindShown, page, setHead, tracedFrom } from "../../web/store.js";

/**
 * @typedef {import("./types").ShownHead} ShownHead
 * @typedef {import("./types").KindAsked} KindAsked
 * @typedef {import("./types").NumbersAsked} NumbersAsked
 * @typedef {import("../../web/types").Head} Head
 * @typedef {import("../../web/head_grid.js").Atlas} Atlas
 * @typedef {import("../../web/part.js").Part} Part
 */

// ---- the numbers of a head, or of many ----

/** @type {(name: "heatmap" | "flow", at: Head, of: object) => NumbersAsked} */
const asked = (name, at, of) => ({
  name,
  data: { run: page.run.run, ...of, numbers: true },
  stacks: { queries: at.stack, keys: readStack(at) },
});
/** @type {(at: Head) => NumbersAsked} */
export const headAsked = (at) => asked("heatmap", at, { site: siteName(at), head: at.head });
// Of the heads of a head's layer combined, or of all layers.
/** @type {(at: Head, which: string, depth: string) => NumbersAsked} */
const flowAsked = (at, which, depth) => {
  const { stack, kind, layer } = at;
  return asked("flow", at, { which, stack, kind, layer: depth === "all" ? null : layer });
};
// Ways of combining heads; rollout and joint attention are for self-attention only.
/** @type {(at: { kind: string }) => string} */
export const combined = ({ kind }) => (kind === "self" ? fields.which : "mean");
// What the large picture shows: "heatmap", "alignment", "lines", or how heads are combined.
/** @type {(at: { kind: string }) => string} */
export const shownAs = (at) => (fields.picture === "flow" ? combined(at) : fields.picture);
// A request for the numbers of the large picture.
/** @type {(at: Head) => NumbersAsked} */
export const pictureAsked = (at) => {
  const { picture, depth, over_heads: over } = fields;
  if (picture === "flow") return flowAsked(at, combined(at), depth);
  return picture === "alignment" && over !== "head" ? flowAsked(at, "mean", over) : headAsked(at);
};

/** @type {(wanted: NumbersAsked) => Promise<import("../../web/head_numbers.js").HeadNumbers>} */
export const numbersOf = ({ name, data }) => askOnce(name, data, headNumbers);
// On pointer down on a head, a tenth of a second before the click.
/** @type {(wanted: NumbersAsked) => void} */
export const prefetch = (wanted) => void numbersOf(wanted).catch(() => {});
// Set `shown` to the numbers that are wanted, once they arrive; null where they are refused. Returns them, and null
// while `shown` still holds those of another question.
/** @type {(part: Part, shown: import("./types").ShownNumbers, wanted: NumbersAsked | null) => import("../../web/head_numbers.js").HeadNumbers | null} */
export const useNumbers = (part, shown, wanted) => {
  /** @type {(numbers: import("../../web/head_numbers.js").HeadNumbers | null, asked: NumbersAsked) => void} */
  const take = (numbers, { stacks }) =>
    batch(() => {
      Object.assign(shown, { numbers, ...stacks });
      if (!numbers) shown.refusals += 1;
    });
  return useAnswer(part, numbersOf, wanted, take).current;
};

// ---- all heads of a kind of attention ----

// The kinds of attention as buttons: each leads to its first head. at: the chosen one.
/** @param {{ at: ShownHead | null }} props */
export const HeadKinds = ({ at }) => {
  const kinds = page.run?.kinds ?? [];
  const chosen = kinds.findIndex(({ stack, kind }) => stack === at?.stack && kind === at.kind);
  const choose = (/** @type {number} */ index) => setHead(firstHead(kinds[index]));
  return html`<${KindButtons} name=${say("Which attention")} kinds=${kinds} chosen=${chosen}
    choose=${choose} />`;
};

/** @type {(at: { stack: string, kind: string }) => KindAsked} */
export const kindAsked = ({ stack, kind }) => ({ run: page.run.run, stack, kind });
// Of the chosen head's kind of attention, else the run's first; null before there is a run.
const askedKind = () => {
  const kind = kindShown();
  return kind && kindAsked(kind);
};

// All heads small, {answer, asked}; of: see kindAsked.
/** @type {(part: Part, of: KindAsked | null | undefined) => { answer: Atlas | null, asked: KindAsked | null }} */
export const useAtlas = (part, of) =>
  useAnswer(part, (data) => askOnce("atlas", data, atlasOf), of);
// The same of a kind of attention, as far as it is known.
/** @type {(at: Head) => Atlas | undefined} */
export const knownAtlas = (at) =>
  /** @type {Atlas | undefined} */ (keptAnswer("atlas", kindAsked(at)).value); // as useAtlas reads it
// The metrics of a kind's heads, by default the shown one's, {answer, asked}; of: see kindAsked.
/** @type {(part: Part, of?: KindAsked | null) => { answer: import("./types").Metrics | null, asked: KindAsked | null }} */
export const useMetrics = (part, of = askedKind()) =>
  useAnswer(part, (data) => askOnce("metrics", data), of);
// The heads with their metrics, as far as these are known; of: see kindAsked.
/** @type {(of?: KindAsked | null) => import("./types").MeasuredHead[] | null} */
export const knownHeads = (of = askedKind()) =>
  (of && keptAnswer("metrics", of).value?.heads) ?? null;
// The metrics of a head, with its label and sign, if those of its kind are known.
/** @type {(at: Head) => import("./types").MeasuredHead | undefined} */
export const knownHead = (at) =>
  knownHeads(kindAsked(at))?.find(({ layer, head }) => layer === at.layer && head === at.head);
/** @type {(at: Head) => string | null | undefined} */
export const headLabel = (at) => knownHead(at)?.label;

// ---- what a token reads ----

/** @typedef {NumbersAsked & { whose: string }} WeightSource */
/** @type {(at: Head) => WeightSource} */
const ofHead = (at) => ({ ...headAsked(at), whose: capital(headName(at)) });
/** @type {(at: Head, depth: string) => WeightSource} */
const ofMean = (at, depth) => {
  const whose =
    depth === "all"
      ? say("the mean of all heads")
      : say("the mean of the heads of layer {layer}", { layer: at.layer });
  return { ...flowAsked(at, "mean", depth), whose: capital(whose) };
};
// As in the large picture.
/** @type {(at: Head) => WeightSource} */
const ofPicture = (at) => {
  const { over_heads: over, depth } = fields;
  const how = shownAs(at);
  if (how === "alignment" && over !== "head") return ofMean(at, over);
  if (how === "mean") return ofMean(at, depth);
  /** @type {Record<string, string>} */
  const names = {
    rollout: say("Attention through the layers"),
    joint: say("Joint attention"),
  };
  const whose = names[how];
  return whose ? { ...pictureAsked(at), whose } : ofHead(at);
};

// The numbers that hold a token's weights: of the large picture; if that is not visible, of the chosen head; for a
// token that is no query there, of the mean of all heads; null for a token without recorded attention.
/** @type {(isInSight: () => boolean) => (token: import("../../web/types").Query) => WeightSource | null} */
export const weightsOfToken = (isInSight) => (token) => {
  const at = headShown();
  const asks = token.stack === at?.stack;
  const of = /** @type {Head} */ (asks ? at : firstHead(usualKind(token.stack))); // a mean is of no head
  if (!of || token.index < tracedFrom(token.stack)) return null;
  return asks ? (isInSight() ? ofPicture : ofHead)(of) : ofMean(of, "all");
};

// Every head's weight on the second token; null without one.
/** @type {(part: Part) => import("./types").Readers | null} */
export const useReaders = (part) => {
  const { query, key, run } = page;
  const kind = query?.stack === key?.stack ? "self" : "cross";
  const isRead =
    query && key && [query, key].every(({ stack, index }) => index >= tracedFrom(stack));
  const wanted = isRead && {
    run: run.run,
    stack: query.stack,
    query: query.index,
    kind,
    key: key.index,
  };
  const readers = useAnswer(part, (data) => askOnce("readers", data), wanted);
  return wanted && JSON.stringify(readers.asked) === JSON.stringify(wanted) ? readers.answer : null;
};
