// All heads of the exercise's example, small, of each kind of attention that the network has.

import { decodeBytes } from "../../ui/static/bytes.js";
import { el } from "../../ui/static/dom.js";
import { attentionOf } from "../../ui/static/site_words.js";
import { siteName } from "../../ui/static/sites.js";
import { headGrid } from "../attention/grid.js";

// Returns draw(pictures, best) into `box`, and chosen(), the head {site, head} that was clicked; null
// as long as none was. best: {site, head, label} of the head that is to carry a sign, or null.
export const learnedHeads = (box, stops) => {
  /** @type {Map<string, any>} */
  const grids = new Map();
  /** @type {any} */
  let picked = null;

  const mark = () => {
    for (const [name, { grid, heads, stack, kind }] of grids) {
      const here = picked && picked.kind === name;
      heads.mark(here ? picked.layer : -1, here ? picked.head : -1);
      if (here) picked.site = siteName({ stack, kind, layer: picked.layer });
      else grid.querySelector("button").tabIndex = 0;
    }
  };
  const gridOf = (name) => {
    const [stack, kind] = name.split(".");
    const part = el("div", "learn-kind");
    part.append(el("p", "", attentionOf({ stack, kind })));
    const grid = part.appendChild(el("div", "head-grid"));
    const heads = headGrid(grid, stops, (layer, head) => {
      picked = { kind: name, layer, head };
      mark();
    });
    return { part, grid, heads, stack, kind };
  };

  const draw = (pictures, best) => {
    const names = Object.keys(pictures);
    if (names.join() !== [...grids.keys()].join()) {
      grids.clear();
      picked = null;
      for (const name of names) grids.set(name, gridOf(name));
      box.replaceChildren(...[...grids.values()].map(({ part }) => part));
    }
    for (const [name, { heads, stack, kind }] of grids) {
      const { shape, pixels, masked } = pictures[name];
      const of = { stack, kind };
      heads.label(of, bestOf(best, stack, kind));
      heads.draw({ shape, pixels: decodeBytes(pixels), masked: decodeBytes(masked) }, of);
    }
    mark();
  };
  const bestOf = (best, stack, kind) => {
    const [here, layer, sort] = best?.site.split(".") ?? [];
    if (here !== stack || sort !== kind) return [];
    return [{ layer: Number(layer), head: best.head, sign: "★", label: best.label }];
  };
  return { draw, chosen: () => picked && { site: picked.site, head: picked.head } };
};
