// What the page knows of its heads: the numbers of each kind of attention, asked for once a run.

import { ask } from "../../ui/static/ask.js";
import { emit, on, page } from "../../web/store.js";

let kept = new Map(); // the server's answers about the shown run
on("run", () => (kept = new Map()));

/** @type {(question: (data: any) => Promise<any>, data: any) => Promise<any>} */
export const askOnce = async (question, data) => {
  const [table, key] = [kept, JSON.stringify(data)];
  if (!table.has(key)) table.set(key, await ask(question, data));
  return table.get(key);
};

// The chosen head's kind of attention, else the run's first, as the server is asked for it.
export const kindShown = () => {
  const { stack, kind } =
    page.run.kinds.find((one) => one.stack === page.head?.stack && one.kind === page.head.kind) ??
    page.run.kinds[0];
  return { run: page.run.run, stack, kind };
};

/** @type {any} */
let metrics = null; // one part's function for all, so that two that ask at once ask one question
// The metrics of the heads of one kind; "labels" tells when new ones are there.
/** @type {(server: Record<string, any>, data: {run: string, stack: string, kind: string}) => Promise<any>} */
export const metricsOf = async (server, data) => {
  const isNew = !kept.has(JSON.stringify(data));
  metrics ??= server.metrics;
  const found = await askOnce(metrics, data);
  if (isNew) emit("labels");
  return found;
};

// The label of a head of the run, if its metrics are known and it has one.
/** @type {(run: string, site: string, index: number) => string | null} */
export const headLabel = (run, site, index) => {
  const [stack, layer, kind] = site.split(".");
  const found = kept.get(JSON.stringify({ run, stack, kind }));
  const one = found?.heads.find(
    (/** @type {any} */ each) => each.layer === Number(layer) && each.head === index,
  );
  return one?.label ?? null;
};
