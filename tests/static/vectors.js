// What Python worked out, and where results go that Python is to check (see test_javascript.py).
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = process.env.VECTORS;
if (!FOLDER) throw new Error("run these tests by pytest tests/static/test_javascript.py");

export const vectors = JSON.parse(readFileSync(join(FOLDER, "vectors.json"), "utf8"));

// What theme.css says, which these tests have no page for.
globalThis.getComputedStyle = /** @type {any} */ (
  () => ({ getPropertyValue: (name) => String(vectors.css[name.replace("--viz-", "")]) })
);

export const hand = (name, value) =>
  writeFileSync(join(FOLDER, `${name}.json`), JSON.stringify(value));

// The largest difference of two equally long rows of numbers; NaN agrees with null.
export const apart = (mine, theirs) => {
  if (mine.length !== theirs.length) return Infinity;
  return Array.from(mine).reduce((most, value, place) => {
    const wanted = theirs[place];
    if (Number.isNaN(value) || wanted === null) return Number.isNaN(value) ? most : Infinity;
    return Math.max(most, Math.abs(value - wanted));
  }, 0);
};
