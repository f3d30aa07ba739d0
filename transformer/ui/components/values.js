// From one head's scores and mask to its weights, and to what the cells' colours stand for.
// The same arithmetic as transformer/figures/attention.py, so that a head travels as its scores
// alone and a change of stage or scale asks the server for nothing.
(() => {
  "use strict";
  const viz = window.viz;

  // One bit a cell, first cell in the highest bit, as numpy.packbits has it.
  const unpack = (bits, count) => {
    const found = new Uint8Array(count);
    for (let at = 0; at < count; at += 1) found[at] = (bits[at >> 3] >> (7 - (at & 7))) & 1;
    return found;
  };

  // softmax over the allowed keys of a row; a row that may read nothing is uniform, as in the network
  const softmaxRow = (scores, allowed, weights, start, count) => {
    let highest = -Infinity;
    for (let at = start; at < start + count; at += 1) {
      if (allowed[at] && scores[at] > highest) highest = scores[at];
    }
    if (highest === -Infinity) return weights.fill(1 / count, start, start + count);
    let sum = 0;
    for (let at = start; at < start + count; at += 1) {
      if (allowed[at]) sum += Math.exp(scores[at] - highest);
    }
    for (let at = start; at < start + count; at += 1) {
      weights[at] = allowed[at] ? Math.exp(scores[at] - highest) / sum : 0;
    }
    return weights;
  };

  // The server's answer for one head as {scores, weights, allowed}, flat arrays of query x key.
  viz.headNumbers = (answer) => {
    const [nQueries, nKeys] = answer.shape;
    const scores = viz.floats(answer.scores);
    const allowed = unpack(viz.bytes(answer.allowed), nQueries * nKeys);
    const weights = new Float32Array(nQueries * nKeys);
    for (let row = 0; row < nQueries; row += 1) softmaxRow(scores, allowed, weights, row * nKeys, nKeys);
    return { scores, weights, allowed };
  };

  const RESCALE = {
    linear: (weight) => weight,
    sqrt: Math.sqrt,
    log: (weight, floor) => 1 - Math.log10(Math.max(weight, floor)) / Math.log10(floor),
  };

  // Rows of what is coloured; NaN where nothing is drawn.
  viz.cellValues = ({ scores, weights, allowed }, nKeys, stage, scale, floor) => {
    const from = stage === "weights" ? weights : scores;
    const rescale = stage === "weights" ? RESCALE[scale] : RESCALE.linear;
    const every = stage === "scores";
    const cells = new Float32Array(from.length);
    for (let at = 0; at < cells.length; at += 1) {
      cells[at] = every || allowed[at] ? rescale(from[at], floor) : NaN;
    }
    return Array.from({ length: cells.length / nKeys }, (_, row) =>
      cells.subarray(row * nKeys, (row + 1) * nKeys));
  };
})();
