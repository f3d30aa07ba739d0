// Python's vectors, and the folder for results that Python checks (see test_javascript.py).
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = process.env.VECTORS;
if (!FOLDER) throw new Error("run these tests by pytest tests/static/test_javascript.py");

export const vectors = JSON.parse(readFileSync(join(FOLDER, "vectors.json"), "utf8"));

// What theme.css says, which these tests have no page for.
globalThis.getComputedStyle = /** @type {any} */ (
  () => ({
    getPropertyValue: (/** @type {string} */ name) =>
      String(vectors.css[name.replace("--viz-", "")]),
  })
);

export const hand = (/** @type {string} */ name, /** @type {any} */ value) =>
  writeFileSync(join(FOLDER, `${name}.json`), JSON.stringify(value));

// The largest difference of two equally long rows of numbers; NaN agrees with null.
export const apart = (/** @type {any} */ found, /** @type {any} */ wanted) => {
  if (found.length !== wanted.length) return Infinity;
  return Array.from(found).reduce((most, value, place) => {
    const other = wanted[place];
    if (Number.isNaN(value) || other === null) return Number.isNaN(value) ? most : Infinity;
    return Math.max(most, Math.abs(value - other));
  }, 0);
};
