// Preact with its hooks, signals and htm, from the files that lie in vendor/ as they were published.

import htm from "./vendor/htm.js";
import { h } from "./vendor/preact.js";

export { render } from "./vendor/preact.js";
export { useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { batch, computed, effect, signal, untracked, useSignalEffect } from "./vendor/signals.js";

// html`<p class="hint">${text}</p>`: an element of Preact's; a text in it is shown as text.
export const html = htm.bind(h);
