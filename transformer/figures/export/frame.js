// Where things of a figure stand on the canvas: margins, axes, and from numbers to pixels.
(() => {
  'use strict';
  const viz = window.viz;
  const LINE = 17; // px of a line of labels
  const HEIGHT = 420; // px of a figure that does not say
  const TALLEST = 640; // px of a square picture
  const TITLES = 60; // px that a figure leaves for its title, which stands in the page here
  viz.FONT = '14px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

  /** Text for Plotly as plain lines: entities and line breaks read, other tags left out. */
  viz.lines = (text) => String(text).split(/<br\s*\/?>/).map((line) =>
    line.replace(/<\/?[a-z]+>/g, '').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'));

  const keyOf = (name) => name.replace('axis', '');
  const span = (axis) => Math.abs(axis.range[1] - axis.range[0]);

  /** All axes by the name that traces use ("x", "y2"), each with its range, domain and ticks. */
  const axesOf = ({ data, layout }) => {
    const found = { x: {}, y: {} };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(name)) found[keyOf(name)] = { ...layout[name] };
    }
    for (const [key, axis] of Object.entries(found)) {
      axis.key = key;
      axis.domain ??= [0, 1];
      axis.range ??= layout[`${axis.matches?.[0]}axis${axis.matches?.slice(1) ?? ''}`]?.range ?? rangeOf(key, axis, data);
    }
    return found;
  };

  const rangeOf = (key, axis, data) => {
    let [low, high] = [Infinity, -Infinity];
    const take = (value) => {
      if (value === null || Number.isNaN(value)) return;
      low = Math.min(low, value);
      high = Math.max(high, value);
    };
    const side = key[0];
    for (const trace of data.filter((one) => (one[`${side}axis`] ?? side) === key)) {
      if (trace.type === 'heatmap') [0, viz.shape(trace.z)[side === 'x' ? 1 : 0] - 1].forEach((at) => { take(at - 0.5); take(at + 0.5); });
      else if (trace.type === 'bar' && (trace.orientation === 'h') === (side === 'y')) viz.values(trace[side]).forEach((at) => { take(at - 0.5); take(at + 0.5); });
      else if (trace.type === 'bar') [0, ...viz.values(trace[side])].forEach(take);
      else viz.values(trace[side]).forEach(take);
    }
    if (low === Infinity) return [0, 1];
    if (axis.rangemode === 'tozero') low = Math.min(low, 0);
    const room = 0.05 * (high - low || 1);
    return side === 'x' && low >= 0 ? [low, high] : [low === 0 ? 0 : low - room, high + room];
  };

  const ticksOf = (axis, pixels) => {
    if (axis.visible === false || axis.showticklabels === false) return [];
    if (axis.tickvals) {
      return axis.tickvals.map((value, at) => ({ value, text: viz.lines(axis.ticktext?.[at] ?? value)[0] }));
    }
    const [low, high] = [Math.min(...axis.range), Math.max(...axis.range)];
    const least = axis.dtick ?? (axis.tickformat === 'd' ? 1 : 0);
    const wanted = (high - low) / Math.min(axis.nticks ?? 8, Math.max(2, pixels / 48));
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = Math.max(least, power * [1, 2, 5, 10].find((times) => times * power >= wanted * 0.999));
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const found = [];
    for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * step; value += step) {
      found.push({ value, text: value.toFixed(digits) });
    }
    return found;
  };

  /** Labels that would lie on each other are left out, but for every so many. */
  const thinned = (ticks, pixelOf, room) => {
    if (ticks.length < 2) return ticks;
    const gap = Math.abs(pixelOf(ticks[1].value) - pixelOf(ticks[0].value));
    const every = Math.max(1, Math.ceil(room / gap));
    return ticks.filter((_, at) => at % every === 0);
  };

  /** The frame of a figure on a canvas `width` px wide: its size, axes and pixels of numbers. */
  viz.frame = (figure, width, pen) => {
    const { layout } = figure;
    pen.font = viz.FONT;
    const axes = axesOf(figure);
    const widest = (axis) => Math.max(0, ...ticksOf(axis, HEIGHT).map(({ text }) => pen.measureText(text).width));
    const list = Object.values(axes).filter((axis) => axis.visible !== false);
    const tops = list.filter((axis) => axis.side === 'top');
    const bottoms = list.filter((axis) => axis.key[0] === 'x' && axis.side !== 'top');
    const lefts = list.filter((axis) => axis.key[0] === 'y');
    const tall = (axis) => (axis.tickangle === -90 ? widest(axis) : LINE) + (axis.title?.text ? LINE + 8 : 0) + 8;
    const wide = (axis) => widest(axis) + (axis.title?.text ? LINE + 6 : 0) + 10;
    const narrow = width < 520;
    const bar = !narrow && figure.data.find((trace) => trace.colorbar && trace.showscale !== false);
    const box = {
      left: Math.max(8, ...lefts.map(wide)),
      right: bar ? 96 : 14,
      top: Math.max(10, (layout.margin?.t ?? 72) - TITLES, ...tops.map(tall)),
      bottom: Math.max(10, ...bottoms.map(tall)),
    };
    const legend = layout.showlegend ? figure.data.filter((trace) => trace.showlegend !== false && trace.name) : [];
    if (legend.length) box.bottom += LINE * Math.ceil(legend.length / Math.max(1, Math.floor(width / 170))) + 8;
    width = Math.max(width, layout.width ?? 0);
    let across = width - box.left - box.right;
    let height = (layout.height ?? HEIGHT) - TITLES;
    let down = Math.max(60, height - box.top - box.bottom);
    if (layout.yaxis?.scaleanchor) {
      const cell = Math.min(across / span(axes.x), TALLEST / span(axes.y), 60);
      [across, down] = [cell * span(axes.x), cell * span(axes.y)];
      width = box.left + across + box.right;
    }
    height = box.top + down + box.bottom;

    const place = (axis, value) => {
      const [from, to] = axis.range;
      return axis.domain[0] + ((value - from) / (to - from)) * (axis.domain[1] - axis.domain[0]);
    };
    const x = (ref, value) => box.left + across * fraction('x', ref, value);
    const y = (ref, value) => box.top + down * (1 - fraction('y', ref, value));
    const fraction = (side, ref, value) => {
      if (ref === 'paper') return value;
      const [key, domain] = (ref ?? side).split(' ');
      const axis = axes[key];
      return domain ? axis.domain[0] + value * (axis.domain[1] - axis.domain[0]) : place(axis, value);
    };
    for (const axis of Object.values(axes)) {
      const sideways = axis.key[0] === 'x';
      const pixelOf = (value) => (sideways ? x : y)(axis.key, value);
      const length = (sideways ? across : down) * (axis.domain[1] - axis.domain[0]);
      const ticks = ticksOf(axis, length);
      const room = sideways && axis.tickangle !== -90 ? Math.max(LINE, ...ticks.map(({ text }) => pen.measureText(text).width + 8)) : LINE;
      axis.ticks = thinned(ticks, pixelOf, room);
    }
    return { width, height, across, down, ...box, axes, x, y, bar, legend };
  };
})();
