// The runs of one prompt as a tree, as plain data.

/** @typedef {{entry: any, leaves: number, children: Node[], parent: Node | null}} Node */

// How many items two lists begin with in common.
/** @type {<T>(a: T[], b: T[]) => number} */
export const sharedLength = (a, b) => {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at += 1;
  return at;
};
// Runs of one prompt, each below the earlier one with which it shares most tokens; leaves: the place of
// the first token that it does not share.
/** @type {(entries: {facts: {ids: number[], n_prompt: number}}[]) => Node[]} */
export const runTree = (entries) => {
  /** @type {Node[]} */
  const nodes = [];
  for (const entry of entries) {
    const shares = nodes.map((node) => sharedLength(node.entry.facts.ids, entry.facts.ids));
    const best = shares.indexOf(Math.max(...shares));
    /** @type {Node} */
    const node = {
      entry,
      leaves: nodes.length ? shares[best] : entry.facts.n_prompt,
      children: [],
      parent: nodes[best] ?? null,
    };
    node.parent?.children.push(node);
    nodes.push(node);
  }
  return nodes;
};
