// A figure (what Plotly draws elsewhere) on a canvas, with the numbers under the pointer.
(() => {
  'use strict';
  const viz = window.viz;
  const NEAR = 14; // px: as far from a point the pointer still means it

  /** A template's fields filled in, once: what stands in a value is never read as a field. */
  viz.filled = (template, trace, place, columns) => {
    const [row, column] = columns ? [Math.floor(place / columns), place % columns] : [place, place];
    const read = (name, index) => {
      if (columns && name === 'x') return column;
      if (columns && name === 'y') return row;
      const from = trace[name];
      if (from?.array === undefined && Array.isArray(from?.[0]) && columns) return from[row][column];
      const found = viz.values(from);
      return index === undefined ? found[place] : found[place * (from.shape?.at(-1) ?? 1) + Number(index)];
    };
    return template.replace(/<extra>.*?<\/extra>/g, '').replace(
      /%\{(\w+)(?:\[(\d+)\])?(?::([^}]*))?\}/g, (_, name, index, format) => written(read(name, index), format));
  };
  const written = (value, format) => {
    if (typeof value !== 'number') return value ?? '';
    const digits = /^\.(\d)f$/.exec(format ?? '');
    if (digits) return value.toFixed(Number(digits[1]));
    return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
  };

  // --- what is under the pointer -----------------------------------------------------------------

  const cellUnder = (frame, trace, x, y) => {
    const [rows, columns] = viz.shape(trace.z);
    const find = (axis, pixel, count, toPixel) => {
      const [start, end] = [toPixel(axis, -0.5), toPixel(axis, count - 0.5)];
      return Math.floor(((pixel - start) / (end - start)) * count);
    };
    const row = find(trace.yaxis, y, rows, frame.y);
    const column = find(trace.xaxis, x, columns, frame.x);
    return row >= 0 && row < rows && column >= 0 && column < columns ? { row, column, place: row * columns + column, columns } : null;
  };
  const barUnder = (frame, trace, x, y) => {
    const place = viz.barBoxes(frame, trace).findIndex(({ left, top, width, height }) =>
      x >= left && x <= left + width && y >= top - 2 && y <= top + height + 2);
    return place < 0 ? null : { place };
  };
  const pointUnder = (frame, trace, x, y, alongX) => {
    const [xs, ys] = [viz.values(trace.x), viz.values(trace.y)];
    let best = null;
    let least = NEAR;
    xs.forEach((value, place) => {
      if (value === null) return;
      const [dx, dy] = [frame.x(trace.xaxis, value) - x, frame.y(trace.yaxis, ys[place]) - y];
      const far = alongX ? Math.abs(dx) : Math.hypot(dx, dy);
      if (far < least) [best, least] = [{ place }, far];
    });
    return best;
  };
  const speaks = (trace) => trace.hoverinfo !== 'skip';

  /** The last drawn thing at a pixel: {trace, place, ...}, or null. */
  const under = ({ frame, figure }, x, y) => {
    for (const trace of figure.data.filter(speaks).reverse()) {
      const alongX = String(figure.layout.hovermode ?? '').startsWith('x');
      const find = { heatmap: cellUnder, bar: barUnder, scatter: pointUnder }[trace.type];
      const found = find(frame, trace, x, y, alongX);
      if (found) return { trace, ...found };
    }
    return null;
  };
  /** What it says there, as lines of plain text. */
  const saying = ({ figure }, { trace, place, columns }) => {
    if (figure.layout.hovermode === 'x unified') {
      const lines = figure.data.filter((one) => one.name && speaks(one)).map((one) =>
        `${one.name}: ${viz.filled(one.hovertemplate ?? '%{y}', one, place)}`);
      return [`at ${viz.values(trace.x)[place]}`, ...lines];
    }
    if (!trace.hovertemplate) return [];
    return viz.lines(viz.filled(trace.hovertemplate, trace, place, columns));
  };

  // --- drawing -----------------------------------------------------------------------------------

  const paint = (canvas, figure, width) => {
    const pen = canvas.getContext('2d');
    const frame = viz.frame(figure, width, pen);
    const ratio = window.devicePixelRatio || 1;
    Object.assign(canvas, { width: Math.round(frame.width * ratio), height: Math.round(frame.height * ratio) });
    Object.assign(canvas.style, { width: `${frame.width}px`, height: `${frame.height}px` });
    pen.scale(ratio, ratio);
    pen.font = viz.FONT;
    const style = getComputedStyle(document.body);
    Object.assign(pen, { vizText: style.color, vizPaper: style.backgroundColor });
    const { shapes = [], annotations = [] } = figure.layout;
    for (const shape of shapes) if (shape.layer === 'below') viz.shapeOn(pen, frame, shape);
    for (const axis of Object.values(frame.axes)) viz.axisOn(pen, frame, axis);
    for (const trace of figure.data) if (trace.visible !== false) viz.TRACES[trace.type](pen, frame, trace);
    for (const shape of shapes) if (shape.layer !== 'below') viz.shapeOn(pen, frame, shape);
    for (const note of annotations) viz.noteOn(pen, frame, note);
    if (frame.bar) viz.colourBar(pen, frame, frame.bar);
    if (frame.legend.length) viz.legendOn(pen, frame);
    return frame;
  };

  const make = (box) => {
    const canvas = document.createElement('canvas');
    canvas.setAttribute('role', 'img');
    const tip = Object.assign(document.createElement('div'), { className: 'tip', hidden: true });
    box.replaceChildren(canvas, tip);
    box.classList.add('drawn');
    box.scene = { canvas, tip };
    const spot = (event) => {
      const edge = canvas.getBoundingClientRect();
      return [event.clientX - edge.left, event.clientY - edge.top];
    };
    const show = (event) => {
      const [x, y] = spot(event);
      const found = under(box.scene, x, y);
      box.scene.point?.(found);
      const lines = found ? saying(box.scene, found) : [];
      tip.hidden = !lines.length;
      if (!lines.length) return;
      tip.textContent = lines.join('\n');
      tip.style.top = `${y + 14}px`;
      tip.style.left = `${Math.max(0, Math.min(x + 14, canvas.clientWidth - tip.offsetWidth))}px`;
    };
    canvas.addEventListener('pointermove', show);
    canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
    canvas.addEventListener('click', (event) => box.scene.choose?.(under(box.scene, ...spot(event))));
  };

  /** Draw a figure in a box. label: for those who cannot see it; point, choose: told what is under
      the pointer, and clicked. */
  viz.draw = (box, figure, { label, point, choose } = {}) => {
    if (!box.scene) make(box);
    const { canvas } = box.scene;
    canvas.setAttribute('aria-label', label ?? '');
    const room = box.parentElement.clientWidth;
    Object.assign(box.scene, { figure, point, choose, frame: paint(canvas, figure, room) });
    box.dataset.rev = String(Number(box.dataset.rev ?? 0) + 1);
  };
})();
