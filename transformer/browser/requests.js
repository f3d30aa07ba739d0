// A request of the page: its settings, checked and as the engine names them, and how tokens are chosen in words; as
// server/fields.py and runs/request.py.

import { numeral, say, sayList } from "../web/messages.js";

/** @typedef {import("../web/types").PlainValues} Data */

export const LIMITS = { text: 2000, new_tokens: 200, texts: 8 }; // as server/http/limits.py
/** @type {() => Record<string, [string, number, number]>} their words, the least and the most */
const NUMBERS = () => ({
  temperature: [say("Temperature (0 = greedy)"), 0, 100],
  top_k: [say("Top-k (0 = off)"), 0, 1_000_000],
  top_p: [say("Top-p (1 = off)"), 0, 1],
  beams: [say("Beams"), 1, 16],
  length_penalty: [say("Length penalty"), 0, 5],
  max_new_tokens: [say("New tokens"), 1, LIMITS.new_tokens],
  seed: [say("Seed"), 0, 2 ** 32 - 1],
});
const WHOLE = ["top_k", "beams", "max_new_tokens", "seed"];
/** @type {Record<string, string[]>} the numbers that each method reads */
const READ = {
  greedy: ["max_new_tokens"],
  sample: ["max_new_tokens", "temperature", "top_k", "top_p", "seed"],
  beam: ["max_new_tokens", "beams", "length_penalty"],
};

/** @type {(name: string, got: number | null | undefined) => number} */
const checked = (name, got) => {
  const [title, lowest, highest] = NUMBERS()[name];
  if (got === null || got === undefined || Number.isNaN(got))
    throw new Error(say("{name} is empty: give a number", { name: title }));
  const isWhole = WHOLE.includes(name);
  if (got >= lowest && got <= highest && (!isWhole || Number.isInteger(got))) return got;
  const values = { name: title, lowest, highest, got };
  throw new Error(
    isWhole
      ? say("{name} must be a whole number from {lowest} to {highest}; got {got}", values)
      : say("{name} must be a number from {lowest} to {highest}; got {got}", values),
  );
};
/** @type {(text: string) => string} */
const checkedText = (text) => {
  if (!text.trim()) throw new Error(say("the text is empty: write something in it first"));
  const got = Array.from(text).length; // as Python counts
  if (got <= LIMITS.text) return text;
  throw new Error(
    say("the text must have at most {most} characters; got {got}", {
      most: LIMITS.text,
      got,
    }),
  );
};

// What the engine is asked for, and the settings that it reads, checked, as the page names them. reads: nothing is generated.
/** @type {(data: Data, reads?: boolean) => { request: import("./types.d.ts").Request, asked: Data }} */
export const requestOf = (
  { text, interventions = [], forced_tokens: forced = [], ...data },
  reads,
) => {
  if (data.read_as === "chat")
    throw new Error(say("a message is read by the model's chat template, which needs a server"));
  if (reads) return { request: { text: checkedText(text), max_new_tokens: 0 }, asked: { text } };
  const isGreedy =
    (data.method === "beam" && (interventions.length || forced.length)) ||
    (data.method === "sample" && data.temperature === 0);
  const method = isGreedy ? "greedy" : (data.method ?? "greedy");
  const numbers = Object.fromEntries(READ[method].map((name) => [name, checked(name, data[name])]));
  const { temperature, top_k: topK, top_p: topP, beams, length_penalty, seed } = numbers;
  const sampling = method === "sample" && {
    ...{ temperature, top_k: topK || null, top_p: topP === 1 ? null : topP, seed },
  };
  const request = {
    ...{
      text: checkedText(text),
      max_new_tokens: numbers.max_new_tokens,
      interventions,
      forced_tokens: forced,
    },
    ...(sampling || { temperature: 0 }),
    ...(method === "beam" && { beams, length_penalty }),
  };
  const made = {
    ...(interventions.length && { interventions }),
    ...(forced.length && { forced_tokens: forced }),
    ...(data.read_as && { read_as: data.read_as }),
  };
  return { request, asked: { text, method, ...numbers, ...made } };
};

// How tokens are chosen, in as few words as tell two runs apart.
/** @type {(asked: Data) => string} */
export const methodWords = ({
  method,
  temperature,
  top_k: topK,
  top_p: topP,
  seed,
  beams,
  length_penalty: penalty,
}) => {
  const short = (/** @type {number} */ number) => numeral(String(number));
  if (method === "beam") {
    const words = say("beam search with {beams} beams", { beams });
    if (penalty === 1) return words;
    return say("{words}, length penalty {number}", { words, number: short(penalty) });
  }
  if (method !== "sample" || temperature === 0) return say("greedy");
  const parts = [`${say("temperature")} ${short(temperature)}`];
  if (topK) parts.push(`top-k ${short(topK)}`);
  if (topP !== 1) parts.push(`top-p ${short(topP)}`);
  const words = say("sampled: {settings}", { settings: sayList(parts) });
  return say("{words}, seed {seed}", { words, seed });
};
