// What stands around the traces: shapes, notes, axes, the colour bar and the legend.
(() => {
  'use strict';
  const viz = window.viz;
  const { write, stroke } = viz;

  viz.shapeOn = (pen, frame, shape) => {
    const { xref = 'x', yref = 'y', type } = shape;
    const [x, y] = [(value) => frame.x(xref, value), (value) => frame.y(yref, value)];
    pen.save();
    pen.globalAlpha = shape.opacity ?? 1;
    pen.beginPath();
    if (type === 'path') {
      for (const [, letter, numbers] of shape.path.matchAll(/([MLZ])([^MLZ]*)/g)) {
        if (letter === 'Z') pen.closePath();
        else pen[letter === 'M' ? 'moveTo' : 'lineTo'](x(Number(numbers.split(',')[0])), y(Number(numbers.split(',')[1])));
      }
    } else {
      const [left, right, top, bottom] = [x(shape.x0), x(shape.x1), y(shape.y0), y(shape.y1)];
      if (type === 'line') {
        pen.moveTo(left, top);
        pen.lineTo(right, bottom);
      } else if (type === 'circle') {
        pen.ellipse((left + right) / 2, (top + bottom) / 2, Math.abs(right - left) / 2, Math.abs(bottom - top) / 2, 0, 0, 7);
      } else pen.rect(left, top, right - left, bottom - top);
      if (shape.label?.text) write(pen, shape.label.text, right, top, { align: 'right', middle: 'bottom' });
    }
    if (shape.fillcolor) {
      pen.fillStyle = viz.colour(shape.fillcolor);
      pen.fill();
    }
    stroke(pen, shape.line);
    pen.restore();
  };

  viz.noteOn = (pen, frame, note) => {
    const [x, y] = [frame.x(note.xref, note.x), frame.y(note.yref, note.y)];
    if (note.showarrow) arrow(pen, [frame.x(note.axref, note.ax), frame.y(note.ayref, note.ay)], [x, y], note);
    if (!note.text) return;
    const align = { left: 'left', right: 'right' }[note.xanchor] ?? 'center';
    if (note.bgcolor) {
      const width = pen.measureText(viz.lines(note.text)[0]).width + 6;
      pen.fillStyle = viz.colour(note.bgcolor);
      const from = { left: 0, right: -width, center: -width / 2 }[align];
      pen.fillRect(x + from, { top: y, bottom: y - 20, middle: y - 10 }[note.yanchor ?? 'middle'], width, 20);
    }
    write(pen, note.text, x, y, { align, middle: note.yanchor ?? 'middle', colour: note.font?.color });
  };
  const arrow = (pen, [fromX, fromY], [x, y], note) => {
    const angle = Math.atan2(y - fromY, x - fromX);
    pen.beginPath();
    pen.moveTo(fromX, fromY);
    pen.lineTo(x, y);
    for (const turn of [2.6, -2.6]) {
      pen.moveTo(x, y);
      pen.lineTo(x + 8 * Math.cos(angle + turn), y + 8 * Math.sin(angle + turn));
    }
    stroke(pen, { color: note.arrowcolor, width: note.arrowwidth });
  };

  viz.axisOn = (pen, frame, axis) => {
    if (axis.visible === false) return;
    const sideways = axis.key[0] === 'x';
    const other = frame.axes[axis.anchor] ?? frame.axes[sideways ? 'y' : 'x'];
    const [low, high] = other.domain;
    const edge = sideways
      ? frame.top + frame.down * (1 - (axis.side === 'top' ? high : low)) + (axis.side === 'top' ? -6 : 6)
      : frame.left + frame.across * low - 8;
    let deepest = 0;
    for (const { value, text } of axis.ticks) {
      const pixel = sideways ? frame.x(axis.key, value) : frame.y(axis.key, value);
      if (axis.showgrid) grid(pen, frame, axis, pixel, sideways);
      if (!sideways) deepest = Math.max(deepest, write(pen, text, edge, pixel, { align: 'right' }));
      else if (axis.tickangle !== -90) write(pen, text, pixel, edge, { align: 'center', middle: 'top' });
      else deepest = Math.max(deepest, write(pen, text, pixel, edge, { turn: -Math.PI / 2, align: axis.side === 'top' ? 'left' : 'right' }));
    }
    const title = axis.title?.text;
    if (!title) return;
    const middle = (axis.domain[0] + axis.domain[1]) / 2;
    const away = (sideways && axis.tickangle !== -90 && axis.ticks.length ? 17 : deepest) + 16;
    if (sideways) write(pen, title, frame.left + frame.across * middle, edge + (axis.side === 'top' ? -away : away), { align: 'center' });
    else write(pen, title, edge - away + 2, frame.top + frame.down * (1 - middle), { align: 'center', turn: -Math.PI / 2 });
  };
  const grid = (pen, frame, axis, pixel, sideways) => {
    pen.beginPath();
    pen.moveTo(sideways ? pixel : frame.left, sideways ? frame.top : pixel);
    pen.lineTo(sideways ? pixel : frame.left + frame.across, sideways ? frame.top + frame.down : pixel);
    stroke(pen, { color: axis.gridcolor, width: 1 });
  };

  viz.colourBar = (pen, frame, trace) => {
    const left = frame.left + frame.across + 14;
    const colours = viz.palette(trace.colorscale);
    const image = new ImageData(1, 256);
    new Uint32Array(image.data.buffer).set(Array.from(colours).reverse());
    const made = document.createElement('canvas');
    Object.assign(made, { width: 1, height: 256 });
    made.getContext('2d').putImageData(image, 0, 0);
    pen.drawImage(made, left, frame.top, 14, frame.down);
    const bar = trace.colorbar;
    const [low, high] = [trace.zmin ?? 0, trace.zmax ?? 1];
    const places = bar.tickvals ?? [low, (low + high) / 2, high];
    const shown = places.map((value, place) => [value, bar.ticktext?.[place] ?? String(Number(value.toPrecision(2)))]);
    let last = Infinity;
    let widest = 0;
    for (const [value, text] of shown) {
      const y = frame.top + frame.down * (1 - (value - low) / (high - low || 1));
      if (last - y < 15) continue;
      last = y;
      widest = Math.max(widest, write(pen, text, left + 19, y));
    }
    if (bar.title?.text) {
      write(pen, bar.title.text, Math.min(left + 30 + widest, frame.width - 9), frame.top + frame.down / 2, { align: 'center', turn: Math.PI / 2 });
    }
  };

  viz.legendOn = (pen, frame) => {
    const columns = Math.max(1, Math.floor(frame.width / 170));
    const top = frame.height - 17 * Math.ceil(frame.legend.length / columns);
    frame.legend.forEach((trace, place) => {
      const [x, y] = [frame.left + 170 * (place % columns), top + 17 * Math.floor(place / columns) + 4];
      if ((trace.mode ?? 'lines').includes('lines') && trace.type === 'scatter') {
        pen.beginPath();
        pen.moveTo(x, y);
        pen.lineTo(x + 26, y);
        stroke(pen, trace.line);
      } else viz.symbol(pen, [x + 13, y], { size: 9, color: '#59636e', ...trace.marker }, 0);
      write(pen, trace.name, x + 32, y);
    });
  };
})();
