// Beam search: the likeliest translations rather than the likeliest next token; inference/beam.py for one text.

import { largest } from "./sampling.js";

/** @import { Text } from "./text.js" */
/** @import { Search, BeamNode, Hypothesis } from "./types.d.ts" */
/**
 * @typedef {{ids: number[], score: number, node: number, text: Text}} Live
 */

/**
 * The likeliest next tokens with their log-probabilities, best first, as float32.
 * @param {Float32Array} logits
 * @param {number} count
 * @param {number | null} never
 */
const extensionsOf = (logits, count, never) => {
  const places = largest(logits, count + 1);
  const most = logits[places[0]];
  let sum = 0;
  for (let id = 0; id < logits.length; id += 1) sum += Math.exp(logits[id] - most);
  return places
    .filter((id) => id !== never)
    .slice(0, count)
    .map((token) => ({ token, gain: Math.fround(logits[token] - most - Math.log(sum)) }));
};

/**
 * At each step every live hypothesis is extended and the `beams` best continue; one that takes the end token
 * is finished. It stops when `beams` are finished, or isCancelled() says so.
 * @param {Text} text with the start read
 * @param {{beams: number, nSteps: number, end: number, lengthPenalty: number, never: number | null, pause: () => Promise<void>, isCancelled: () => boolean}} options
 * @returns {Promise<Search>}
 */
export const beamSearch = async (text, options) => {
  const { beams, nSteps, end, lengthPenalty, never, pause, isCancelled } = options;
  /** @type {Hypothesis[]} */
  const hypotheses = [];
  /** @type {BeamNode[][]} */
  const steps = [];
  /** @type {(ids: number[], score: number, ended: boolean) => void} */
  const finish = (ids, score, ended) => {
    const normalised = score / Math.max(1, ids.length) ** lengthPenalty;
    hypotheses.push({ ids, score, normalised, ended });
  };
  /** @type {Live[]} */
  let alive = [{ ids: [], score: 0, node: -1, text }];
  while (steps.length < nSteps && alive.length && !isCancelled()) {
    const choices = alive.flatMap((live, parent) =>
      extensionsOf(/** @type {Float32Array} */ (live.text.logits), 2 * beams, never).map(
        ({ token, gain }) => ({
          ...{ token, parent, score: live.score + gain },
        }),
      ),
    );
    choices.sort((a, b) => b.score - a.score);
    /** @type {{ids: number[], score: number, node: number, parent: number}[]} */
    const next = [];
    const nodes = choices.slice(0, 2 * beams).map(({ token, parent, score }, rank) => {
      /** @type {BeamNode} */
      const node = { token, parent: alive[parent].node, score, state: "cut" };
      const ids = [...alive[parent].ids, token];
      if (token === end) {
        if (rank < beams) {
          node.state = "ended";
          finish(ids, score, true);
        }
      } else if (next.length < beams) {
        node.state = "alive";
        next.push({ ids, score, node: rank, parent });
      }
      return node;
    });
    steps.push(nodes);
    const isLast = steps.length === nSteps;
    const goesOn = isLast || hypotheses.length < beams;
    const texts = next.map(({ parent }) => alive[parent].text);
    alive = !goesOn ? [] : next.map(({ ids, score, node }, at) => ({
      ...{ ids, score, node },
      text: texts.indexOf(texts[at], at + 1) < 0 ? texts[at] : texts[at].copy(), // the last child takes it
    })); // prettier-ignore
    if (!isLast) for (const live of alive) live.text.read(live.ids.slice(-1));
    await pause();
  }
  for (const { ids, score } of alive) finish(ids, score, false);
  hypotheses.sort((a, b) => b.normalised - a.normalised);
  hypotheses.splice(beams);
  return { hypotheses, steps };
};
