// How a generation went, in sentences: as `outcome` of server/kept/page_runs.py.

import { numeral, say, sayN } from "../web/messages.js";
import { doubtsOf, readingOf, sentencesOf } from "./doubts.js";

/**
 * @typedef {import("./item.js").Model} Model
 * @typedef {import("./types.d.ts").Generation} Generation
 * @typedef {import("../web/types").PlainValues} Data
 */

/** @type {Record<string, () => string>} */
const STOPPED = {
  end: () => say("The model ended its text."),
  cancelled: () => say("You stopped it."),
  read: () => say("It was read; nothing was generated."),
};
// asked: as the page names its settings; together: a translation of each sentence by itself, if there are several.
/** @type {(model: Model, asked: Data, written: Generation, took: number, together: string | null) => string} */
export const outcome = (model, { text, interventions = [] }, written, took, together) => {
  const { steps, search, stopped, ids, nPrompt } = written;
  const doubts = doubtsOf(model, text, interventions, ids, nPrompt);
  if (stopped === "read") return [STOPPED.read(), ...doubts].join(" ");
  const n = search ? ids.length - nPrompt : steps.length;
  const time =
    took < 1000
      ? say("{seconds} ms", { seconds: took.toFixed(0) })
      : `${numeral((took / 1000).toFixed(1))} s`;
  const tokens = sayN("{n} token", "{n} tokens", n);
  const went = say("{tokens} in {took}.", { tokens, took: time });
  const alone = say("Translated one sentence at a time, as in training: {text}", {
    text: together ?? "",
  });
  const read = readingOf(model, text, ids, nPrompt);
  const parts = [went, STOPPED[stopped]?.(), ...doubts, ...read, together !== null && alone];
  return parts.filter(Boolean).join(" ");
};

// A text's sentences, each translated alone, joined; null for one sentence.
/** @type {(model: Model, request: import("./types.d.ts").Request) => Promise<string | null>} */
export const oneByOne = async (model, request) => {
  const sentences = sentencesOf(model, request.text);
  if (sentences.length < 2) return null;
  const texts = [];
  for (const text of sentences) {
    const { ids, nPrompt } = await model.generate({ ...request, text, forced_tokens: [] });
    texts.push(model.textOf({ text }, ids.slice(nPrompt)));
  }
  return texts.join(" ");
};
