// The grid of all heads: layers down, heads across, one small canvas each.
(() => {
  "use strict";
  const viz = window.viz;

  viz.headName = (layer, head) => `Layer ${layer}, head ${head}`;

  // Colour stops [r, g, b] as 256 words of RGBA, little-endian.
  const palette = (stops) =>
    Uint32Array.from({ length: 256 }, (_, value) => {
      const at = (value / 255) * (stops.length - 1);
      const low = Math.min(Math.floor(at), stops.length - 2);
      const [from, to] = [stops[low], stops[low + 1]];
      const mix = (channel) => Math.round(from[channel] + (at - low) * (to[channel] - from[channel]));
      return ((255 << 24) | (mix(2) << 16) | (mix(1) << 8) | mix(0)) >>> 0;
    });

  const arrows = (grid) => (key, here, count) => {
    const across = Number(grid.dataset.heads);
    const column = here % across;
    if (key === "ArrowRight") return column + 1 < across ? here + 1 : null;
    if (key === "ArrowLeft") return column > 0 ? here - 1 : null;
    if (key === "ArrowDown") return here + across < count ? here + across : null;
    return key === "ArrowUp" && here >= across ? here - across : null;
  };

  // Returns draw(atlas) and mark(layer, head); choose(layer, head) is called on a click.
  viz.headGrid = (grid, stops, choose) => {
    const colours = palette(stops);

    const makeButton = (layer, head) => {
      const button = viz.el("button", "head");
      button.setAttribute("aria-label", viz.headName(layer, head));
      button.title = viz.headName(layer, head);
      button.append(viz.el("canvas"));
      button.addEventListener("click", () => choose(layer, head));
      return button;
    };

    const makeButtons = (nLayers, nHeads) => {
      const { layers, heads } = grid.dataset;
      if (Number(layers) === nLayers && Number(heads) === nHeads) return;
      Object.assign(grid.dataset, { layers: nLayers, heads: nHeads });
      grid.style.setProperty("--heads", nHeads);
      const parts = [viz.el("span", "corner")];
      for (let head = 0; head < nHeads; head += 1) parts.push(viz.el("span", "number", head));
      for (let layer = 0; layer < nLayers; layer += 1) {
        parts.push(viz.el("span", "number", layer));
        for (let head = 0; head < nHeads; head += 1) parts.push(makeButton(layer, head));
      }
      grid.replaceChildren(...parts);
    };

    const draw = (atlas) => {
      const [nLayers, nHeads, height, width] = atlas.shape;
      const pixels = viz.bytes(atlas.pixels);
      const masked = viz.bytes(atlas.masked);
      makeButtons(nLayers, nHeads);
      const size = height * width;
      [...grid.querySelectorAll("canvas")].forEach((canvas, place) => {
        Object.assign(canvas, { width, height });
        const image = new ImageData(width, height);
        const words = new Uint32Array(image.data.buffer);
        for (let i = 0; i < size; i += 1) {
          words[i] = masked[i] ? 0 : colours[pixels[place * size + i]];
        }
        canvas.getContext("2d").putImageData(image, 0, 0);
      });
      grid.dataset.rev = String(Number(grid.dataset.rev ?? 0) + 1);
    };

    const mark = (layer, head) => {
      const buttons = [...grid.querySelectorAll("button")];
      const chosen = layer * Number(grid.dataset.heads) + head;
      buttons.forEach((button, place) => button.setAttribute("aria-pressed", place === chosen));
      viz.rove(buttons, chosen);
    };

    viz.arrowKeys(grid, arrows(grid));
    return { draw, mark };
  };
})();
