// The page: fills it from the data in #data. Token text goes to it through textContent only.
(async () => {
  'use strict';
  const viz = window.viz;
  const byId = (id) => document.getElementById(id);
  const say = (text) => {
    byId('problem').textContent = text;
    byId('problem').hidden = false;
    document.querySelector('main').hidden = true;
  };
  if (!viz.canUnpack) {
    say('This browser cannot unpack the page’s data: it has no DecompressionStream. Browsers made since 2023 have.');
    return;
  }
  const data = await viz.unpack(byId('data').textContent).catch(() => null);
  if (!data) {
    say('The page’s data is damaged; save the page again.');
    return;
  }
  const darkness = window.matchMedia('(prefers-color-scheme: dark)');
  const state = { kind: 0, layer: 0, head: 0, query: null, cell: null };
  const kind = () => data.attention[state.kind];
  const numbers = () => viz.numbers(kind(), state.layer, state.head);
  const { element } = viz;

  // --- the large heatmap -----------------------------------------------------------------------

  function drawHeatmap() {
    const { stack, kind: sort, figure, query_labels: queries, key_labels: keys } = kind();
    const stage = byId('stage').value;
    const scale = byId('scale').value;
    const values = viz.coloured(numbers(), stage, scale);
    byId('scale').disabled = stage !== 'weights';
    const cells = {
      type: 'heatmap', hoverinfo: 'none', z: Object.assign(values, { shape: [queries.length, keys.length] }),
      ...colours(stage, scale),
    };
    const shapes = [...figure.layout.shapes];
    if (state.query !== null) shapes.push(rowMark(state.query, keys.length));
    const title = `${stack} ${sort}-attention, layer ${state.layer}, head ${state.head}: ${stage}`;
    byId('heatmap-title').textContent = title;
    viz.draw(byId('heatmap'), { data: [cells], layout: { ...figure.layout, shapes } }, {
      label: `${title}; heatmap of query by key`,
      point: (found) => found && readOut(found),
      choose: (found) => found && chooseQuery(found.row),
    });
  }

  function colours(stage, scale) {
    if (stage === 'weights') return data.styles[scale];
    const bound = numbers().scores.reduce((most, score) => Math.max(most, Math.abs(score)), 0) || 1;
    return { ...data.styles.score, zmin: -bound, zmax: bound };
  }

  function rowMark(query, nKeys) {
    return { type: 'rect', x0: -0.5, x1: nKeys - 0.5, y0: query - 0.5, y1: query + 0.5, line: { width: 2 } };
  }

  function readOut({ row, column }) {
    state.cell = { row, column };
    const { query_labels: queries, key_labels: keys } = kind();
    const { scores, weights, allowed } = numbers();
    const cell = row * keys.length + column;
    byId('readout').replaceChildren(
      `query ${row} `, element('bdi', { textContent: queries[row] }),
      ` reads key ${column} `, element('bdi', { textContent: keys[column] }), ': ',
      `score ${scores[cell].toFixed(4)}, ${allowed[cell] ? 'allowed' : 'hidden by the mask'}, `,
      `weight ${weights[cell].toFixed(4)}; its row sums to 1`,
    );
  }

  /** With the picture in focus, arrow keys walk from cell to cell and Enter marks the row. */
  function walk(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === 'Enter' && state.cell) chooseQuery(state.cell.row);
    if (!moves[event.key]) return;
    event.preventDefault();
    const { query_labels: queries, key_labels: keys } = kind();
    const from = state.cell ?? { row: (state.query ?? 0) - moves[event.key][0], column: -moves[event.key][1] };
    const within = (value, count) => Math.min(count - 1, Math.max(0, value));
    readOut({
      row: within(from.row + moves[event.key][0], queries.length),
      column: within(from.column + moves[event.key][1], keys.length),
    });
  }

  // --- choices ---------------------------------------------------------------------------------

  function fill(select, texts) {
    select.replaceChildren(...texts.map((text, value) => element('option', { textContent: text, value })));
  }

  function chooseKind(kind) {
    Object.assign(state, { kind, query: null, cell: null });
    const { layers: { length: nLayers }, n_heads: nHeads } = data.attention[kind];
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

  let drawing = 0;

  async function drawGrid() {
    const { stack, kind: sort, layers, n_heads: nHeads } = kind();
    const numbered = (count) => Array.from({ length: count }, (_, at) => element('span', { textContent: at }));
    const cells = [element('span'), ...numbered(nHeads)];
    for (let layer = 0; layer < layers.length; layer++) {
      cells.push(element('span', { textContent: layer }));
      for (let head = 0; head < nHeads; head++) {
        const button = element('button', { type: 'button', title: `layer ${layer}, head ${head}` }, [element('canvas')]);
        button.setAttribute('aria-label', `${stack} ${sort}-attention, layer ${layer}, head ${head}`);
        Object.assign(button.dataset, { layer, head });
        button.addEventListener('click', () => chooseHead(layer, head));
        cells.push(button);
      }
    }
    byId('grid').style.gridTemplateColumns = `1.5em repeat(${nHeads}, minmax(0, 1fr))`;
    byId('grid').replaceChildren(...cells);
    await paintGrid(++drawing);
  }

  /** A layer at a time: a long text has millions of weights to work out. */
  async function paintGrid(mine) {
    const { query_labels: queries, key_labels: keys } = kind();
    const palette = viz.palette(data.styles.sqrt.colorscale);
    for (const button of byId('grid').querySelectorAll('button')) {
      const { layer, head } = button.dataset;
      const found = viz.numbers(kind(), Number(layer), Number(head));
      viz.thumbnail(button.firstElementChild, found, [queries.length, keys.length], palette);
      if (Number(head) === kind().n_heads - 1) await new Promise((done) => setTimeout(done));
      if (mine !== drawing) return;
    }
    byId('grid').dataset.rev = String(mine);
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
    byId('candidates').replaceChildren(...viz.candidateRows(step));
  }

  // --- masks, positions and the rest -----------------------------------------------------------

  function drawFigures() {
    for (const id of ['masks', 'positions']) viz.drawAll(byId(id), data[id]);
  }

  function drawAgain() {
    viz.setColours(data.colours, darkness.matches);
    drawHeatmap();
    drawFigures();
    viz.drawOpen(byId('more'), data.more);
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
  byId('heatmap').addEventListener('keydown', walk);
  darkness.addEventListener('change', drawAgain);
  let width = window.innerWidth;
  window.addEventListener('resize', () => {
    if (Math.abs(window.innerWidth - width) < 8) return;
    width = window.innerWidth;
    drawAgain();
  });
  viz.setColours(data.colours, darkness.matches);
  drawTokens();
  chooseKind(0);
  if (data.steps.length) drawStep(0);
  viz.listClosed(byId('more'), data.more);
  drawFigures();
})();
