// What the page's first scripts import later, "later" of the page's import map, for tests: put what they are to find
// into `modules`.
import { registerHooks } from "node:module";

/** @type {Record<string, any>} */
export const modules = {};
registerHooks({
  resolve: (name, context, next) =>
    name === "later" ? { url: import.meta.url, shortCircuit: true } : next(name, context),
});
