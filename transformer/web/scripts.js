// Scripts that come later, with those of other tabs: what a press opens.

import { trying } from "./part.js";
import { html, useLayoutEffect, useState } from "./preact.js";

const LATER = "later"; // see server/modules.py

// What a module of that file exports.
/** @type {(name: string) => Promise<any>} */
export const laterModule = async (name) => (await import(LATER)).modules[name];
// Take it; where it cannot be loaded, the page says so.
/** @type {(name: string, take: (exported: any) => void) => Promise<void>} */
export const loadLater = trying(async (name, take) => take(await laterModule(name)));

/**
 * A component of that file. of: its module and its name there. waiting: what is in its place until it has come.
 * @param {Record<string, any>} props
 */
export const Later = ({ of: [module, name], waiting = null, ...props }) => {
  const [Component, setComponent] = useState(/** @type {any} */ (null));
  useLayoutEffect(() => void loadLater(module, (found) => setComponent(() => found[name])), []);
  return Component ? html`<${Component} ...${props} />` : waiting;
};
