// From the queries and keys of a head to its scores and weights, and from those to small pictures.
(() => {
  'use strict';
  const viz = window.viz;
  const SIDE = 64; // px of a small picture
  const KEPT = 8; // heads whose numbers are kept
  const cache = new Map();

  /** A head's {scores, weights, allowed}: flat arrays of query x key. */
  viz.numbers = (kind, layer, head) => {
    const name = [kind.stack, kind.kind, layer, head].join('.');
    if (!cache.has(name)) {
      if (cache.size >= KEPT) cache.delete(cache.keys().next().value);
      cache.set(name, workOut(kind, kind.layers[layer], head));
    }
    return cache.get(name);
  };

  const workOut = (kind, record, head) => {
    const cells = kind.query_labels.length * kind.key_labels.length;
    const allowed = viz.values(kind.allowed);
    const scores = record.scores
      ? viz.values(record.scores).subarray(head * cells, (head + 1) * cells)
      : products(record, head);
    const weights = record.weights
      ? viz.values(record.weights).subarray(head * cells, (head + 1) * cells)
      : softmax(scores, allowed, kind.key_labels.length);
    return { scores, weights, allowed };
  };

  /** q·k / √D of one head, for every query and key. */
  const products = ({ queries, keys }, head) => {
    const [, nQueries, size] = queries.shape;
    const nKeys = keys.shape[1];
    const q = viz.values(queries).subarray(head * nQueries * size);
    const k = viz.values(keys).subarray(head * nKeys * size);
    const root = Math.sqrt(size);
    const scores = new Float32Array(nQueries * nKeys);
    for (let row = 0; row < nQueries; row++) {
      for (let column = 0; column < nKeys; column++) {
        let sum = 0;
        for (let at = 0; at < size; at++) sum += q[row * size + at] * k[column * size + at];
        scores[row * nKeys + column] = sum / root;
      }
    }
    return scores;
  };

  const softmax = (scores, allowed, nKeys) => {
    const weights = new Float32Array(scores.length);
    for (let start = 0; start < scores.length; start += nKeys) {
      const end = start + nKeys;
      let highest = -Infinity;
      for (let cell = start; cell < end; cell++) if (allowed[cell]) highest = Math.max(highest, scores[cell]);
      if (highest === -Infinity) { // as the network does it: a row with nothing allowed is uniform
        weights.fill(1 / nKeys, start, end);
        continue;
      }
      let total = 0;
      for (let cell = start; cell < end; cell++) if (allowed[cell]) total += Math.exp(scores[cell] - highest);
      for (let cell = start; cell < end; cell++) {
        if (allowed[cell]) weights[cell] = Math.exp(scores[cell] - highest) / total;
      }
    }
    return weights;
  };

  viz.rescale = {
    linear: (weight) => weight,
    sqrt: Math.sqrt,
    log: (weight) => 1 + Math.log10(Math.max(weight, 1e-4)) / 4,
  };

  /** What the cells' colours stand for, NaN where nothing is drawn. */
  viz.coloured = ({ scores, weights, allowed }, stage, scale) => {
    const values = stage === 'weights' ? weights.map(viz.rescale[scale]) : scores.slice();
    if (stage !== 'scores') allowed.forEach((may, cell) => { if (!may) values[cell] = NaN; });
    return values;
  };

  /** A head small, coloured by the square root; of cells that share a pixel the largest counts. */
  viz.thumbnail = (canvas, { weights, allowed }, [nQueries, nKeys], colours) => {
    const [height, width] = [Math.min(nQueries, SIDE), Math.min(nKeys, SIDE)];
    const best = new Float32Array(height * width).fill(-1);
    for (let row = 0; row < nQueries; row++) {
      const line = Math.floor((row * height) / nQueries) * width;
      for (let column = 0; column < nKeys; column++) {
        const cell = row * nKeys + column;
        const pixel = line + Math.floor((column * width) / nKeys);
        if (allowed[cell]) best[pixel] = Math.max(best[pixel], weights[cell]);
      }
    }
    Object.assign(canvas, { width, height, className: Math.max(width, height) < 32 ? 'few' : '' });
    const image = new ImageData(width, height);
    const words = new Uint32Array(image.data.buffer);
    best.forEach((weight, at) => { words[at] = weight < 0 ? 0 : colours[Math.round(255 * Math.sqrt(weight))]; });
    canvas.getContext('2d').putImageData(image, 0, 0);
  };
})();
