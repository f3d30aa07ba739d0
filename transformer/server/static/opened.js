// Scripts that come when a button is first pressed: those in the page's second file.

import { showProblem } from "../../web/store.js";

const LATER = "later"; // see modules.py

// Take what a module of that file exports; where it cannot be loaded, the page says so.
/** @type {(name: string, take: (exported: any) => void) => Promise<void>} */
export const opened = (name, take) =>
  import(LATER)
    .then(({ modules }) => take(modules[name]))
    .catch(({ message }) => showProblem(message));
