// A cache of head metrics: those of each kind of attention, requested once per run.

import { ask } from "../../web/ask.js";
import { signal } from "../../web/preact.js";
import { headShown, on, page } from "../../web/store.js";

const kept = signal(new Map()); // the server's answers about the shown run
on("run", () => (kept.value = new Map()));
/** @type {(name: string, data: any) => string} */
const keyOf = (name, data) => `${name} ${JSON.stringify(data)}`;

// Request an endpoint once per run; read: converts its answer.
/** @type {(name: string, read?: (answer: any) => any) => (data: any) => Promise<any>} */
export const once =
  (name, read = (answer) => answer) =>
  async (data) => {
    const key = keyOf(name, data);
    const known = kept.peek().get(key);
    if (known) return known;
    const answer = read(await ask(name, data));
    if (data.run === page.run?.run) kept.value = new Map([...kept.peek(), [key, answer]]);
    return answer;
  };

// Request data for the chosen head's kind of attention, else the run's first; null before there is a run.
export const kindShown = () => {
  const at = headShown();
  return at && { run: page.run.run, stack: at.stack, kind: at.kind };
};

export const headMetrics = once("metrics"); // of the heads of one kind

// The cached metrics of {run, stack, kind}; a component that reads them is drawn again once they arrive.
/** @type {(of: {run: string, stack: string, kind: string}) => any[] | undefined} */
export const knownHeads = ({ run, stack, kind }) =>
  kept.value.get(keyOf("metrics", { run, stack, kind }))?.heads;
// The label of a head of the run, if its metrics are known and it has one.
/** @type {(run: string, site: string, index: number) => string | null} */
export const headLabel = (run, site, index) => {
  const [stack, layer, kind] = site.split(".");
  const one = knownHeads({ run, stack, kind })?.find(
    (each) => each.layer === Number(layer) && each.head === index,
  );
  return one?.label ?? null;
};

// ---- the order of the table of heads ----

/** @type {(a: any, b: any) => number} */
const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);

// by: "head", "label" or the name of a metric. Missing numbers are last in either order; equal ones keep the
// network's order.
/** @type {(heads: any[], order: {by?: string, down?: boolean}) => any[]} */
export const sortHeads = (heads, { by, down }) => {
  if (by === "head") return down ? [...heads].reverse() : heads;
  /** @type {(one: any) => any} */
  const value = (one) => (by === "label" ? one.label : one.values[String(by)]);
  const sign = down ? -1 : 1;
  const has = heads.filter((one) => value(one) !== null);
  const lacks = heads.filter((one) => value(one) === null);
  return [...has.sort((a, b) => sign * compare(value(a), value(b))), ...lacks];
};
