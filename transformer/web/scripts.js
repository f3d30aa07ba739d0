// Scripts that come later, with those of other tabs: what a press opens.

import { trying } from "./part.js";
import { html, useLayoutEffect, useState } from "./preact.js";

/** @import { ComponentChild, FunctionComponent } from "preact" */
/** @import { PlainValues } from "./types" */

const LATER_SCRIPTS = "later"; // see server/page/modules.py

// What a module of that file exports.
/** @type {(name: string) => Promise<PlainValues>} */
export const laterModule = async (name) => (await import(LATER_SCRIPTS)).modules[name];
// Take it; where it cannot be loaded, the page says so.
export const loadLater = trying(
  async (/** @type {string} */ name, /** @type {(exported: PlainValues) => void} */ take) =>
    take(await laterModule(name)),
);

/**
 * A component of that file. of: its module and its name there. waiting: what is in its place until it has come.
 * @param {{ of: string[], waiting?: ComponentChild } & PlainValues} props
 */
export const Later = ({ of: [module, name], waiting = null, ...props }) => {
  const [Component, setComponent] = useState(/** @type {FunctionComponent | null} */ (null));
  useLayoutEffect(
    () => void loadLater(module, (exported) => setComponent(() => exported[name])),
    [],
  );
  return Component ? html`<${Component} ...${props} />` : waiting;
};
