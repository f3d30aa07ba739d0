// All heads small and one large, for a notebook. Token text is written by textContent only.
(async () => {
  'use strict';
  const viz = window.viz;
  const SIDE = 330; // px of the large picture
  const byId = (id) => document.getElementById(id);
  if (!viz.canUnpack) {
    byId('title').textContent = 'This browser cannot unpack the picture’s data: it has no DecompressionStream.';
    return;
  }
  const data = await viz.unpack(byId('data').textContent);
  const palette = viz.values(data.palette);
  const state = { kind: data.kinds.length - 1, layer: 0, head: 0, cell: null };
  const kind = () => data.kinds[state.kind];

  const pixelsOf = (layer, head) => {
    const [, nHeads, height, width] = kind().pixels.shape;
    const size = height * width;
    const start = (layer * nHeads + head) * size;
    return viz.values(kind().pixels).subarray(start, start + size);
  };

  const paint = (canvas, layer, head) => {
    const [, , height, width] = kind().pixels.shape;
    Object.assign(canvas, { width, height });
    const image = new ImageData(width, height);
    const allowed = viz.values(kind().allowed);
    pixelsOf(layer, head).forEach((pixel, place) => {
      if (allowed[place]) image.data.set([...palette.subarray(3 * pixel, 3 * pixel + 3), 255], 4 * place);
    });
    canvas.getContext('2d').putImageData(image, 0, 0);
  };

  const bold = (text) => Object.assign(document.createElement('bdi'), { textContent: text });

  const readOut = (row, column) => {
    state.cell = [row, column];
    const { query_labels: queries, key_labels: keys, queries_before: q0, keys_before: k0, allowed } = kind();
    const place = row * keys.length + column;
    const weight = (pixelsOf(state.layer, state.head)[place] / 255) ** 2;
    const may = viz.values(allowed)[place];
    byId('readout').replaceChildren(
      `query ${q0 + row} `, bold(queries[row]), ` reads key ${k0 + column} `, bold(keys[column]),
      may ? `: weight ${weight.toFixed(2)}` : ': hidden by the mask',
    );
  };

  const choose = (layer, head) => {
    Object.assign(state, { layer, head });
    for (const button of byId('grid').querySelectorAll('button')) {
      const same = Number(button.dataset.layer) === layer && Number(button.dataset.head) === head;
      button.setAttribute('aria-pressed', same);
    }
    const { stack, kind: sort, queries_before: q0, keys_before: k0, query_labels: queries } = kind();
    const cut = q0 || k0 ? `, the last ${queries.length} of ${q0 + queries.length} queries` : '';
    byId('title').textContent = `layer ${layer}, head ${head}${cut}`;
    byId('large').setAttribute('aria-label', `${stack} ${sort}-attention, layer ${layer}, head ${head}`);
    const large = byId('large');
    paint(large, layer, head);
    large.style.width = `${SIDE * Math.min(1, large.width / large.height)}px`;
    large.style.height = `${SIDE * Math.min(1, large.height / large.width)}px`;
    byId('readout').textContent = 'Point at a cell, or walk with the arrow keys.';
    if (state.cell) readOut(...state.cell);
  };

  const drawGrid = () => {
    const [nLayers, nHeads] = kind().pixels.shape;
    const number = (text) => Object.assign(document.createElement('span'), { textContent: text });
    const parts = [number(''), ...Array.from({ length: nHeads }, (_, head) => number(head))];
    for (let layer = 0; layer < nLayers; layer++) {
      parts.push(number(layer));
      for (let head = 0; head < nHeads; head++) {
        const button = document.createElement('button');
        button.setAttribute('aria-label', `layer ${layer}, head ${head}`);
        Object.assign(button.dataset, { layer, head });
        button.append(document.createElement('canvas'));
        paint(button.firstElementChild, layer, head);
        button.addEventListener('click', () => choose(layer, head));
        parts.push(button);
      }
    }
    byId('grid').style.gridTemplateColumns = `1.2em repeat(${nHeads}, 36px)`;
    byId('grid').replaceChildren(...parts);
    state.cell = null;
    choose(0, 0);
  };

  byId('kind').replaceChildren(...data.kinds.map(({ stack, kind: sort }, value) =>
    Object.assign(document.createElement('option'), { textContent: `${stack} ${sort}`, value })));
  byId('kind').value = state.kind;
  byId('kind').addEventListener('change', (event) => {
    state.kind = Number(event.target.value);
    drawGrid();
  });
  byId('large').addEventListener('pointermove', (event) => {
    const { width, height } = event.target;
    const at = (offset, count, room) => Math.min(count - 1, Math.max(0, Math.floor((offset / room) * count)));
    readOut(at(event.offsetY, height, event.target.clientHeight), at(event.offsetX, width, event.target.clientWidth));
  });
  byId('large').addEventListener('keydown', (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const { width, height } = event.target;
    const [row, column] = state.cell ?? [0, 0];
    readOut(Math.min(height - 1, Math.max(0, row + move[0])), Math.min(width - 1, Math.max(0, column + move[1])));
  });
  drawGrid();
})();
