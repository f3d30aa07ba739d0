// The order of the table of heads.

/** @type {(a: any, b: any) => number} */
const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);

// by: "head", "label" or the name of a metric. Numbers that are missing go last whichever way; equal
// ones keep the order of the network.
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
