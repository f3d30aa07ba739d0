// Colours of the two modes, lines and text on a canvas.
(() => {
  'use strict';
  const viz = window.viz;
  const DASHES = { dash: [8, 5], dot: [2, 4], dashdot: [8, 4, 2, 4] };

  // --- colours -----------------------------------------------------------------------------------

  let dark = false;
  let table = {};
  viz.setColours = (pairs, isDark) => {
    table = pairs;
    dark = isDark;
  };
  /** A colour as it is in this mode: figures come in their light colours. */
  viz.colour = (name) => {
    if (!dark || typeof name !== 'string') return name;
    if (table[name]) return table[name];
    const [start, end] = [name.slice(0, name.lastIndexOf(',') + 1), name.slice(name.lastIndexOf(',') + 1)];
    return table[start] ? table[start] + end : name;
  };
  const channels = (colour) => (colour[0] === '#'
    ? [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16))
    : colour.match(/[\d.]+/g).slice(0, 3).map(Number));
  /** 256 colours between the stops of a scale, as words of RGBA. */
  viz.palette = (stops) => {
    const known = stops.map(([at, colour]) => [at, channels(viz.colour(colour))]);
    return Uint32Array.from({ length: 256 }, (_, step) => {
      const value = step / 255;
      const high = Math.max(1, known.findIndex(([at]) => at >= value));
      const [[from, low], [to, top]] = [known[high - 1], known[high]];
      const mixed = low.map((one, c) => Math.round(one + ((value - from) / (to - from)) * (top[c] - one)));
      return ((255 << 24) | (mixed[2] << 16) | (mixed[1] << 8) | mixed[0]) >>> 0;
    });
  };

  // --- text --------------------------------------------------------------------------------------

  viz.write = (pen, text, x, y, { align = 'left', middle = 'middle', colour, turn = 0, font } = {}) => {
    pen.save();
    pen.translate(x, y);
    pen.rotate(turn);
    pen.font = font ?? (/^<b>/.test(text) ? `600 ${viz.FONT}` : viz.FONT);
    pen.fillStyle = viz.colour(colour ?? pen.vizText);
    pen.textAlign = align;
    pen.textBaseline = 'middle';
    const lines = viz.lines(text);
    const first = { top: 9, middle: -8.5 * (lines.length - 1), bottom: -9 - 17 * (lines.length - 1) }[middle];
    lines.forEach((line, at) => pen.fillText(line, 0, first + 17 * at));
    pen.restore();
    return Math.max(...lines.map((line) => pen.measureText(line).width));
  };
  viz.stroke = (pen, line = {}) => {
    pen.strokeStyle = viz.colour(line.color ?? pen.vizText);
    pen.lineWidth = line.width ?? 1;
    pen.setLineDash(DASHES[line.dash] ?? []);
    if (line.width !== 0) pen.stroke();
    pen.setLineDash([]);
  };
})();
