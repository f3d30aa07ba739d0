// Preact with its hooks, signals and htm, as published, from vendor/.

import htm from "./vendor/htm.js";
import { h } from "./vendor/preact.js";

export { options, render } from "./vendor/preact.js";
export { useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { batch, computed, effect, signal, untracked, useSignalEffect } from "./vendor/signals.js";

// An element whose text is only numbers is not translated.
const element = (type, props, ...children) => {
  const text = children.filter((one) => ["string", "number"].includes(typeof one)).join("");
  const isNumber = typeof type === "string" && /\d/.test(text) && !/\p{L}/u.test(text);
  return h(type, isNumber ? { translate: false, ...props } : props, ...children);
};

// html`<p class="hint">${text}</p>`: an element of Preact's; a text in it is shown as text.
export const html = htm.bind(element);
