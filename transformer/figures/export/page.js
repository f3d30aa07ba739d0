// Draws the page from the JSON in #data. Token text goes to the page through textContent only.
(() => {
  'use strict';
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId('data').textContent);
  const darkness = window.matchMedia('(prefers-color-scheme: dark)');
  const mode = () => (darkness.matches ? 'dark' : 'light');
  const NARROW = 520; // px
  const options = {
    displaylogo: false, responsive: true,
    showSendToCloud: false, showEditInChartStudio: false, plotlyServerURL: '', // nothing leaves
  };
  if (window.innerWidth < NARROW) options.displayModeBar = false; // it would cover the titles
  const state = { kind: 0, layer: 0, head: 0, query: null, revision: 0 };

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const floats = (text) => new Float32Array(bytes(text).buffer);

  function element(tag, properties = {}, children = []) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  // --- numbers ---------------------------------------------------------------------------------

  const cache = new Map();

  /** Scores, mask and weights of a head; weights by the masked softmax, row by row. */
  function numbers(kind, layer, head) {
    const name = `${kind}.${layer}.${head}`;
    if (!cache.has(name)) {
      if (cache.size > 8) cache.clear();
      const part = data.attention[kind];
      part.mask ??= bytes(part.allowed);
      const scores = floats(part.scores[layer][head]);
      cache.set(name, { scores, allowed: part.mask, weights: softmax(scores, part.mask, part.key_labels.length) });
    }
    return cache.get(name);
  }

  function softmax(scores, allowed, nKeys) {
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
  }

  const rescale = {
    linear: (weight) => weight,
    sqrt: Math.sqrt,
    log: (weight) => 1 + Math.log10(Math.max(weight, 1e-4)) / 4,
  };

  // --- the large heatmap -----------------------------------------------------------------------

  function drawHeatmap() {
    const part = data.attention[state.kind];
    const found = numbers(state.kind, state.layer, state.head);
    const stage = byId('stage').value;
    const scale = byId('scale').value;
    const values = stage === 'weights' ? found.weights.map(rescale[scale]) : found.scores.slice();
    if (stage !== 'scores') found.allowed.forEach((may, cell) => { if (!may) values[cell] = NaN; });
    const trace = {
      type: 'heatmap', z: rows(values, part.key_labels.length), hoverinfo: 'none', hoverongaps: true,
      ...colours(stage, scale, found.scores),
    };
    byId('scale').disabled = stage !== 'weights';
    const layout = structuredClone(part.layout[mode()]);
    layout.title = {
      text: `${part.stack} ${part.kind}-attention, layer ${state.layer}, head ${state.head}: ${stage}`,
      x: 0, xref: 'paper', xanchor: 'left', font: { size: 17 },
    };
    layout.margin.t = 48;
    if (byId('heatmap').clientWidth < NARROW) slim([trace], layout);
    if (state.query !== null) layout.shapes.push(rowMark(state.query, part.key_labels.length));
    const picture = byId('heatmap');
    const first = !picture.on;
    Plotly.react(picture, [trace], layout, options).then(() => {
      picture.dataset.rev = String(++state.revision);
    });
    if (first) {
      picture.on('plotly_hover', ({ points }) => readOut(points[0].y, points[0].x));
      picture.on('plotly_click', ({ points }) => chooseQuery(points[0].y));
    }
  }

  /** On a phone the cells get the room: no colour bar, short titles, fewer labels. */
  function slim(traces, layout) {
    traces.forEach((trace) => { if (trace.type === 'heatmap') trace.showscale = false; });
    Object.assign(layout.title, { font: { size: 14 }, xref: 'container' });
    delete layout.title.subtitle;
    Object.assign(layout.margin, { l: 8, r: 8, b: 8, t: 40 });
    for (const axis of [layout.xaxis, layout.yaxis]) {
      axis.title.text = axis.title.text.split(' (')[0];
      if (!axis.ticktext) continue;
      const stride = Math.ceil(axis.ticktext.length / 12);
      axis.tickvals = axis.tickvals.filter((_, place) => place % stride === 0);
      axis.ticktext = axis.ticktext.filter((_, place) => place % stride === 0);
    }
  }

  function rows(values, width) {
    const result = [];
    for (let start = 0; start < values.length; start += width) result.push(values.subarray(start, start + width));
    return result;
  }

  function colours(stage, scale, scores) {
    if (stage === 'weights') return data.styles[mode()][scale];
    const bound = scores.reduce((most, score) => Math.max(most, Math.abs(score)), 0) || 1;
    return { ...data.styles[mode()].score, zmin: -bound, zmax: bound };
  }

  function rowMark(query, nKeys) {
    const color = getComputedStyle(document.body).color;
    return { type: 'rect', x0: -0.5, x1: nKeys - 0.5, y0: query - 0.5, y1: query + 0.5, line: { color, width: 2 } };
  }

  function readOut(query, key) {
    const part = data.attention[state.kind];
    const { scores, weights, allowed } = numbers(state.kind, state.layer, state.head);
    const cell = query * part.key_labels.length + key;
    const may = allowed[cell];
    byId('readout').replaceChildren(
      `query ${query} `, element('bdi', { textContent: part.query_labels[query] }),
      ` reads key ${key} `, element('bdi', { textContent: part.key_labels[key] }), ': ',
      `score ${scores[cell].toFixed(4)}, ${may ? 'allowed' : 'hidden by the mask'}, `,
      `weight ${weights[cell].toFixed(4)}; its row sums to 1`,
    );
  }

  // --- choices ---------------------------------------------------------------------------------

  function fill(select, texts) {
    select.replaceChildren(...texts.map((text, value) => element('option', { textContent: text, value })));
  }

  function chooseKind(kind) {
    Object.assign(state, { kind, query: null });
    const [nLayers, nHeads] = data.attention[kind].thumbnails.shape;
    fill(byId('layer'), Array.from({ length: nLayers }, (_, layer) => layer));
    fill(byId('head'), Array.from({ length: nHeads }, (_, head) => head));
    drawGrid();
    chooseHead(Math.min(state.layer, nLayers - 1), Math.min(state.head, nHeads - 1));
  }

  function chooseHead(layer, head) {
    Object.assign(state, { layer, head });
    byId('layer').value = layer;
    byId('head').value = head;
    for (const button of byId('grid').querySelectorAll('button')) {
      const same = button.dataset.layer === String(layer) && button.dataset.head === String(head);
      button.setAttribute('aria-pressed', same);
    }
    drawHeatmap();
  }

  function chooseQuery(query) {
    state.query = query;
    drawHeatmap();
  }

  // --- the grid of heads -----------------------------------------------------------------------

  function drawGrid() {
    const { stack, kind, thumbnails } = data.attention[state.kind];
    const [nLayers, nHeads, height, width] = thumbnails.shape;
    const pixels = bytes(thumbnails.pixels);
    const masked = bytes(thumbnails.masked);
    const palette = bytes(data.palette);
    const cells = [element('span'), ...Array.from({ length: nHeads }, (_, head) => element('span', { textContent: head }))];
    for (let layer = 0; layer < nLayers; layer++) {
      cells.push(element('span', { textContent: layer }));
      for (let head = 0; head < nHeads; head++) {
        const canvas = element('canvas', { width, height, className: Math.max(width, height) < 32 ? 'few' : '' });
        const start = (layer * nHeads + head) * height * width;
        paint(canvas, pixels.subarray(start, start + height * width), masked, palette);
        const button = element('button', { type: 'button', title: `layer ${layer}, head ${head}` }, [canvas]);
        button.setAttribute('aria-label', `${stack} ${kind}-attention, layer ${layer}, head ${head}`);
        Object.assign(button.dataset, { layer, head });
        button.addEventListener('click', () => chooseHead(layer, head));
        cells.push(button);
      }
    }
    byId('grid').style.gridTemplateColumns = `1.5em repeat(${nHeads}, minmax(0, 1fr))`;
    byId('grid').replaceChildren(...cells);
  }

  function paint(canvas, pixels, masked, palette) {
    const context = canvas.getContext('2d');
    const image = context.createImageData(canvas.width, canvas.height);
    pixels.forEach((pixel, place) => {
      const colour = palette.subarray(3 * pixel, 3 * pixel + 3);
      image.data.set([...colour, masked[place] ? 0 : 255], 4 * place);
    });
    context.putImageData(image, 0, 0);
  }

  // --- text and candidates ---------------------------------------------------------------------

  function drawTokens() {
    byId('source').replaceChildren(...data.source.map((label) => element('bdi', { textContent: label })));
    byId('source').hidden = !data.source.length;
    const buttons = data.tokens.map((token, place) => {
      const button = element('button', { type: 'button', textContent: token.label, title: `token ${place}` });
      if (token.step !== null) {
        button.className = 'generated';
        button.style.setProperty('--p', token.probability);
        button.title += `, probability ${token.probability.toFixed(4)}`;
      }
      button.addEventListener('click', () => chooseToken(place));
      return button;
    });
    byId('tokens').replaceChildren(...buttons);
  }

  function chooseToken(place) {
    [...byId('tokens').children].forEach((button, at) => button.setAttribute('aria-pressed', at === place));
    const { step } = data.tokens[place];
    if (step !== null) drawStep(step);
    const query = place - data.trace_start;
    if (data.attention[state.kind].stack === 'decoder' || !data.source.length) chooseQuery(query < 0 ? null : query);
  }

  function drawStep(index) {
    const step = data.steps[index];
    byId('step').value = index;
    byId('step-note').textContent =
      `It saw tokens ${step.window[0]} to ${step.window[1] - 1}; ${step.n_kept} tokens could be drawn.`;
    const most = Math.max(...step.candidates.flatMap((c) => [c.probability, c.sampling_probability]));
    byId('candidates').replaceChildren(...step.candidates.map((candidate) => {
      const chosen = candidate.id === step.token;
      const cut = candidate.sampling_probability === 0;
      const label = element('td', {}, [chosen ? '▶ ' : '', element('bdi', { textContent: candidate.label }), chosen ? ' (chosen)' : '']);
      const after = cut ? element('td', { textContent: '✕ cut' }) : bar(candidate.sampling_probability, most, 'bar after');
      const row = element('tr', {}, [label, bar(candidate.probability, most, 'bar'), after]);
      row.classList.toggle('chosen', chosen);
      row.classList.toggle('cut', cut);
      return row;
    }));
  }

  function bar(probability, most, className) {
    const line = element('span', { className });
    line.style.width = `${(70 * probability) / most}%`;
    return element('td', {}, [line, `${(100 * probability).toFixed(2)}%`]);
  }

  // --- masks and positions ---------------------------------------------------------------------

  function drawFigures(id) {
    const place = byId(id);
    // All places first: each one that is added changes the width of the others.
    while (place.children.length < data[id].length) place.append(element('div', { className: 'figure' }));
    data[id].forEach((figure, index) => drawFigure(place.children[index], figure));
  }

  function drawFigure(target, figure) {
    const traces = figure.data.map((trace, at) => (mode() === 'dark' ? { ...trace, ...figure.dark[at] } : { ...trace }));
    const layout = structuredClone(figure.layout[mode()]);
    if (target.clientWidth < NARROW) slim(traces, layout);
    target.style.height = layout.height ? `${layout.height}px` : '';
    Plotly.react(target, traces, layout, options);
  }

  // --- the rest, each drawn when it is opened ---------------------------------------------------

  function listMore() {
    byId('more').replaceChildren(...data.more.map((one) => {
      const target = element('div', { className: 'figure' });
      const wide = element('div', { className: 'wide', tabIndex: 0 }, [target]);
      const summary = element('summary', { textContent: one.title });
      const box = element('details', {}, [summary, element('p', { className: 'note', textContent: one.help }), wide]);
      box.addEventListener('toggle', () => box.open && drawFigure(target, one));
      return box;
    }));
  }

  function redrawMore() {
    [...byId('more').children].forEach((box, at) => box.open && drawFigure(box.querySelector('.figure'), data.more[at]));
  }

  // --- start -----------------------------------------------------------------------------------

  byId('model').textContent = data.model;
  byId('summary').textContent = data.summary;
  fill(byId('kind'), data.attention.map(({ stack, kind }) => `${stack} ${kind}`));
  fill(byId('step'), data.steps.map((step, index) => index + 1));
  byId('prediction').hidden = !data.steps.length;
  byId('kind').addEventListener('change', (event) => chooseKind(Number(event.target.value)));
  byId('step').addEventListener('change', (event) => drawStep(Number(event.target.value)));
  for (const id of ['layer', 'head']) {
    byId(id).addEventListener('change', () => chooseHead(Number(byId('layer').value), Number(byId('head').value)));
  }
  for (const id of ['stage', 'scale']) byId(id).addEventListener('change', drawHeatmap);
  darkness.addEventListener('change', () => {
    drawHeatmap();
    drawFigures('masks');
    drawFigures('positions');
    redrawMore();
  });
  drawTokens();
  chooseKind(0);
  if (data.steps.length) drawStep(0);
  drawFigures('masks');
  drawFigures('positions');
  listMore();
})();
