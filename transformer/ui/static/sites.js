// The places of attention in a network.

/**
 * @typedef {import("../../web/store.js").Site} Site
 * @typedef {{kinds: import("../../web/store.js").Kind[]}} Item a run or a batch
 */

// Every one of a run or a batch, {stack, layer, kind}, in the network's order.
/** @type {(item: Item) => Site[]} */
export const sitesOf = ({ kinds }) =>
  kinds.flatMap(({ stack, kind, n_layers: count }) =>
    Array.from({ length: count }, (_, layer) => ({ stack, layer, kind })),
  );

// Its name, "decoder.0.self" for one.
/** @type {(site: Site) => string} */
export const siteName = ({ stack, layer, kind }) => `${stack}.${layer}.${kind}`;
