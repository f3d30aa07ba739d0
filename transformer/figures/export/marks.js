// The traces of a figure: cells, bars, lines and points.
(() => {
  'use strict';
  const viz = window.viz;
  const { write, stroke } = viz;
  const WHITE_BELOW = 118; // of a cell's brightness, 0 to 255: there, text is white

  /** What holds for one mark: a property may be one value, or a list with one for each. */
  const at = (value, place) => (Array.isArray(value) || value?.array !== undefined ? viz.values(value)[place] : value);

  const heatmap = (pen, frame, trace) => {
    const [rows, columns] = viz.shape(trace.z);
    const values = viz.values(trace.z);
    const finite = values.filter((value) => Number.isFinite(value));
    const low = trace.zmin ?? finite.reduce((a, b) => Math.min(a, b), Infinity);
    const high = trace.zmax ?? finite.reduce((a, b) => Math.max(a, b), -Infinity);
    const colours = viz.palette(trace.colorscale);
    const image = new ImageData(columns, rows);
    const words = new Uint32Array(image.data.buffer);
    values.forEach((value, cell) => {
      if (value === null || Number.isNaN(value)) return;
      words[cell] = colours[Math.round(255 * Math.min(1, Math.max(0, (value - low) / (high - low || 1))))];
    });
    const [x, y] = [trace.xaxis ?? 'x', trace.yaxis ?? 'y'];
    const [left, right] = [frame.x(x, -0.5), frame.x(x, columns - 0.5)];
    const [start, end] = [frame.y(y, -0.5), frame.y(y, rows - 0.5)];
    const made = document.createElement('canvas');
    Object.assign(made, { width: columns, height: rows });
    made.getContext('2d').putImageData(image, 0, 0);
    pen.save();
    pen.imageSmoothingEnabled = right - left < columns;
    pen.translate(left, start);
    pen.scale((right - left) / columns, (end - start) / rows); // row 0 is at the bottom unless the axis is reversed
    pen.drawImage(made, 0, 0);
    pen.restore();
    if (trace.xgap) gaps(pen, trace.xgap, [left, right, columns], [start, end, rows]);
    if (trace.texttemplate) cellTexts(pen, frame, trace, words, [rows, columns]);
  };
  /** Lines of the paper between cells. */
  const gaps = (pen, size, [left, right, columns], [start, end, rows]) => {
    pen.fillStyle = pen.vizPaper;
    const across = (right - left) / columns;
    for (let column = 0; column <= columns; column++) pen.fillRect(left + column * across - size / 2, Math.min(start, end), size, Math.abs(end - start));
    for (let row = 0; row <= rows; row++) pen.fillRect(left, start + (row * (end - start)) / rows - size / 2, right - left, size);
  };
  const cellTexts = (pen, frame, trace, words, [rows, columns]) => {
    for (let cell = 0; cell < rows * columns; cell++) {
      const [row, column] = [Math.floor(cell / columns), cell % columns];
      const [r, g, b] = [words[cell] & 255, (words[cell] >> 8) & 255, (words[cell] >> 16) & 255];
      const text = viz.filled(trace.texttemplate, trace, cell, columns);
      const colour = 0.3 * r + 0.59 * g + 0.11 * b < WHITE_BELOW ? '#ffffff' : '#000000';
      write(pen, text, frame.x(trace.xaxis, column), frame.y(trace.yaxis, row), { align: 'center', colour });
    }
  };

  /** The rectangles of a bar trace, {left, top, width, height} of each bar. */
  viz.barBoxes = (frame, trace) => {
    const flat = trace.orientation === 'h';
    const [x, y] = [trace.xaxis ?? 'x', trace.yaxis ?? 'y'];
    const places = viz.values(flat ? trace.y : trace.x);
    return Array.from(viz.values(flat ? trace.x : trace.y), (size, place) => {
      const base = at(trace.base, place) ?? 0;
      const half = (at(trace.width, place) ?? 0.8) / 2;
      const ends = flat
        ? [frame.x(x, base), frame.x(x, base + size), frame.y(y, places[place] - half), frame.y(y, places[place] + half)]
        : [frame.x(x, places[place] - half), frame.x(x, places[place] + half), frame.y(y, base), frame.y(y, base + size)];
      const [a, b, c, d] = ends;
      return { left: Math.min(a, b), top: Math.min(c, d), width: Math.abs(b - a), height: Math.abs(d - c) };
    });
  };
  const bars = (pen, frame, trace) => {
    const { marker } = trace;
    viz.barBoxes(frame, trace).forEach(({ left, top, width, height }, place) => {
      pen.beginPath();
      pen.roundRect(left, top, width, height, Math.min(marker.cornerradius ?? 0, width / 2, height / 2));
      pen.fillStyle = viz.colour(at(marker.color, place));
      if (at(marker.pattern?.shape, place)) hatch(pen, { left, top, width, height });
      else pen.fill();
      if (marker.line) stroke(pen, { color: at(marker.line.color, place), width: at(marker.line.width, place) });
      if (trace.text && trace.textposition !== 'none') {
        write(pen, at(trace.text, place), left + width / 2, top + height / 2, { align: 'center', colour: trace.insidetextfont?.color });
      }
    });
  };
  const hatch = (pen, { left, top, width, height }) => {
    pen.save();
    pen.clip();
    pen.strokeStyle = pen.fillStyle;
    pen.lineWidth = 1;
    pen.beginPath();
    for (let x = left - height; x < left + width; x += 6) {
      pen.moveTo(x, top + height);
      pen.lineTo(x + height, top);
    }
    pen.stroke();
    pen.restore();
  };

  const scatter = (pen, frame, trace) => {
    const [xs, ys] = [viz.values(trace.x), viz.values(trace.y)];
    const points = Array.from(xs, (x, place) => (x === null || ys[place] === null ? null
      : [frame.x(trace.xaxis, x), frame.y(trace.yaxis, ys[place])]));
    const mode = trace.mode ?? 'lines';
    pen.save();
    pen.globalAlpha = trace.opacity ?? 1;
    if (mode.includes('lines')) {
      pen.beginPath();
      let down = false;
      for (const point of points) {
        if (point) pen[down ? 'lineTo' : 'moveTo'](...point);
        down = Boolean(point);
      }
      stroke(pen, trace.line);
    }
    points.forEach((point, place) => {
      if (!point) return;
      if (mode.includes('markers')) viz.symbol(pen, point, trace.marker, place);
      if (mode.includes('text')) beside(pen, point, trace, place);
    });
    pen.restore();
  };
  viz.symbol = (pen, [x, y], marker, place) => {
    const half = (at(marker.size, place) ?? 6) / 2;
    pen.fillStyle = pen.strokeStyle = viz.colour(at(marker.color, place));
    pen.lineWidth = 2;
    pen.beginPath();
    const shape = at(marker.symbol, place) ?? 'circle';
    if (shape === 'square') pen.rect(x - half, y - half, 2 * half, 2 * half);
    else if (shape === 'diamond') [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]].forEach(([a, b]) => pen.lineTo(x + a * half, y + b * half));
    else if (shape === 'x') {
      for (const sign of [1, -1]) {
        pen.moveTo(x - half, y - sign * half);
        pen.lineTo(x + half, y + sign * half);
      }
      return pen.stroke();
    } else pen.arc(x, y, half, 0, 7);
    return pen.fill();
  };
  const beside = (pen, [x, y], trace, place) => {
    const [vertical, side] = (at(trace.textposition, place) ?? 'middle center').split(' ');
    const size = trace.mode.includes('markers') ? (at(trace.marker?.size, place) ?? 6) / 2 + 3 : 0;
    write(pen, at(trace.text, place), x + { left: -size, right: size, center: 0 }[side], y + { top: -size, bottom: size, middle: 0 }[vertical], {
      align: { left: 'right', right: 'left', center: 'center' }[side],
      middle: { top: 'bottom', bottom: 'top', middle: 'middle' }[vertical],
      colour: at(trace.textfont?.color, place),
    });
  };
  viz.TRACES = { heatmap, bar: bars, scatter };
})();
