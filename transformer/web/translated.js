// A browser that translates the page puts <font> elements in place of its texts. Whoever changes, removes or
// inserts before such a text would change one that is no longer shown, leave its translation, or fail.

import { options } from "./preact.js";

/** @type {WeakMap<Node, ChildNode>} */
const translations = new WeakMap(); // a text that was replaced: what is shown instead

// Shows a text itself again, in the page's own language.
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
      const beside = [...addedNodes, previousSibling, nextSibling];
      const font =
        text.nodeType === Node.TEXT_NODE && beside.find((one) => one?.nodeName === "FONT");
      if (!font) continue;
      translations.set(text, /** @type {ChildNode} */ (font));
      observer.observe(text, { characterData: true });
    }
  }
};
const observer = globalThis.MutationObserver && new MutationObserver(take);

// What the browser shows in place of a text; undefined for one that it has not translated.
/** @type {(text: Node) => ChildNode | undefined} */
export const standIn = (text) => {
  take(observer.takeRecords());
  return translations.get(text);
};

const { unmount } = options;
const { insertBefore } = globalThis.Node?.prototype ?? {};
const watch = () => {
  observer.observe(document, { childList: true, subtree: true });
  options.unmount = (vnode) => {
    if (vnode.type === null) restore(vnode.__e);
    unmount?.(vnode);
  };
  /** @type {any} */ (Node.prototype).insertBefore = function (node, before) {
    const isGone = before && before.parentNode !== this;
    return insertBefore.call(this, node, isGone ? (standIn(before) ?? before) : before);
  };
};
if (observer) watch();
