// Heads of queries that share one head of keys and values: which they are, in words.

import { say } from "../../ui/static/messages.js";

/**
 * The heads that share keys with one, itself left out: "9–15", "4, 6, 7".
 * @type {(head: number, share: number) => string}
 */
export const sharers = (head, share) => {
  const first = head - (head % share);
  const others = Array.from({ length: share }, (_, at) => first + at).filter((one) => one !== head);
  const inOneRow = others.length > 2 && others.length - 1 === others[others.length - 1] - others[0];
  return inOneRow ? `${others[0]}–${others[others.length - 1]}` : others.join(", ");
};

/** @type {(head: number, share: number) => string} */
export const sharedKeys = (head, share) => {
  if (!(share > 1)) return "";
  const heads = sharers(head, share);
  return share === 2
    ? say("shares its keys with head {heads}", { heads })
    : say("shares its keys with heads {heads}", { heads });
};
