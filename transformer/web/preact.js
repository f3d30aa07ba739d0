// Preact with its hooks, signals and htm, as published, from vendor/; under a browser's translation, too.

import htm from "./vendor/htm.js";
import { h, options } from "./vendor/preact.js";

export { render } from "./vendor/preact.js";
export { useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { batch, computed, effect, signal, untracked, useSignalEffect } from "./vendor/signals.js";

// A disabled button keeps the focus, and its place in the tab order; a press does nothing.
const focusable = ({ disabled, onClick, ...props }) => ({
  ...props,
  "aria-disabled": Boolean(disabled),
  onClick: disabled ? null : onClick,
});

// An element whose text is only numbers is not translated.
const element = (type, given, ...children) => {
  const props = type === "button" && given && "disabled" in given ? focusable(given) : given;
  const text = children.filter((one) => ["string", "number"].includes(typeof one)).join("");
  const isNumber = typeof type === "string" && /\d/.test(text) && !/\p{L}/u.test(text);
  return h(type, isNumber ? { translate: false, ...props } : props, ...children);
};

// html`<p class="hint">${text}</p>`: an element of Preact's; a text in it is shown as text.
export const html = htm.bind(element);

// ---- under a browser's translation ----

// A browser's page translation replaces texts with <font> elements. Changing, removing or inserting before
// such a text would change a detached node, leave its translation, or fail.

/** @type {WeakMap<Node, ChildNode>} */
const translations = new WeakMap(); // replaced text -> its replacement

// Show the original text again.
/** @type {(text: Text) => void} */
const restore = (text) => {
  const shown = standIn(text);
  translations.delete(text);
  shown?.replaceWith(text);
};

/** @type {(records: MutationRecord[]) => void} */
const take = (records) => {
  for (const { type, target, removedNodes, addedNodes, previousSibling, nextSibling } of records) {
    if (type === "characterData") restore(target);
    for (const text of removedNodes) {
      const neighbours = [...addedNodes, previousSibling, nextSibling];
      const font =
        text.nodeType === Node.TEXT_NODE && neighbours.find((one) => one?.nodeName === "FONT");
      if (!font) continue;
      translations.set(text, /** @type {ChildNode} */ (font));
      observer.observe(text, { characterData: true });
    }
  }
};
const observer = globalThis.MutationObserver && new MutationObserver(take);

// The element that replaces a text; undefined if it is not translated.
/** @type {(text: Node) => ChildNode | undefined} */
export const standIn = (text) => {
  take(observer.takeRecords());
  return translations.get(text);
};

const { unmount } = options;
const { insertBefore } = globalThis.Node?.prototype ?? {};
const watch = () => {
  observer.observe(document, { childList: true, subtree: true });
  options.unmount = (/** @type {{ type: unknown, __e: Text }} */ vnode) => {
    if (vnode.type === null) restore(vnode.__e);
    unmount?.(vnode);
  };
  /** @type {{ insertBefore: unknown }} */ (Node.prototype).insertBefore = function (
    /** @type {Node} */ node,
    /** @type {Node | null} */ before,
  ) {
    const isGone = before && before.parentNode !== this;
    return insertBefore.call(this, node, isGone ? (standIn(before) ?? before) : before);
  };
};
if (observer) watch();
