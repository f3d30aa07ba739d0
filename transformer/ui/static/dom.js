// Small helpers for building the page. Text from visitors and models reaches it through textContent
// only.

/**
 * Finds the parts of a component by selector. Of what kind each is, only its template knows.
 * @param {Element} root
 * @returns {(selector: string) => any}
 */
export const finder = (root) => (selector) => root.querySelector(selector);

/**
 * A new element.
 * @param {string} tag
 * @param {string} [className]
 * @param {string | number} [text]
 * @returns {any}
 */
export const el = (tag, className, text) => {
  const made = document.createElement(tag);
  if (made instanceof HTMLButtonElement) made.type = "button";
  if (className) made.className = className;
  if (text !== undefined) made.textContent = String(text);
  return made;
};

// Fill a select with options [[value, text], ...].
/** @type {(select: any, values: any[][], chosen: any) => void} */
export const fillSelect = (select, values, chosen) =>
  select.replaceChildren(
    ...values.map(([value, text]) => {
      const option = el("option", "", text);
      return Object.assign(option, { value, selected: String(value) === String(chosen) });
    }),
  );

// A token with its marks for space, newline and tab set back, so that the word stands out.
/** @type {(label: string) => HTMLElement} */
export const tokenElement = (label) => {
  const made = el("bdi");
  for (const part of String(label).split(/([␣⏎⇥]+)/u)) {
    if (part) made.append(/^[␣⏎⇥]/u.test(part) ? el("span", "mark", part) : part);
  }
  return made;
};

// Until what has been changed is painted.
export const nextPaint = () =>
  new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));

// Arrow keys move among the buttons of `root`, of which one is in the tab order.
// step(key, here, count): the place of the button to go to, or null.
/** @type {(root: any, step: (key: string, here: number, count: number) => number | null) => void} */
export const onArrowKeys = (root, step) => {
  root.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const buttons = [...root.querySelectorAll("button")];
    const here = buttons.indexOf(document.activeElement);
    const to = here < 0 ? null : step(event.key, here, buttons.length);
    if (to === null || to < 0 || to >= buttons.length) return;
    event.preventDefault();
    buttons[to].focus();
    buttons[to].click();
  });
};
/** @type {(buttons: HTMLElement[], index: number) => void} */
export const setTabStop = (buttons, index) => {
  buttons.forEach((button, place) => (button.tabIndex = place === index ? 0 : -1));
};
