// The dimensions of which a visitor wants to see curves.

import { say } from "../../web/messages.js";

const MOST = 12;

// "0, 1, 8" as [0, 1, 8]; size: how many dimensions there are. Throws an Error with a sentence.
/** @type {(text: string, size: number) => number[]} */
export const parseDimensions = (text, size) => {
  const numbers = text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(Number);
  /** @type {(n: number) => boolean} */
  const fits = (n) => Number.isInteger(n) && n >= 0 && n < size;
  const different = new Set(numbers).size === numbers.length;
  if (numbers.length >= 1 && numbers.length <= MOST && different && numbers.every(fits)) {
    return numbers;
  }
  const got = text.trim().slice(0, 40) || say("nothing");
  throw new Error(
    say("dimensions must be 1 to {most} different whole numbers from 0 to {last}; got {got}", {
      most: MOST,
      last: size - 1,
      got,
    }),
  );
};
