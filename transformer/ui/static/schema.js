// What a link may say and what the views declare, as Python wrote it into the page; see ui/link.py. A
// declared field is {name, type, title, default, use, optional, options?, least?, most?}.

const source = globalThis.document?.getElementById("view-schema");
const none = { settings: [], request: [], batch: [], renamed: {}, page: {}, views: [] };
/**
 * @typedef {object} Declared
 * @property {string[]} settings
 * @property {string[]} request all that makes a run again
 * @property {string[]} batch
 * @property {Record<string, string>} renamed fields of links of before
 * @property {Record<string, any>} page its own fields
 * @property {any[]} views
 */
/** @type {Declared} */
export const declared = source ? JSON.parse(source.textContent) : none;
export const views = declared.views;

// Of the page as it opens; a link that names none is of before there was another, see ui/link.py.
export const firstTab = Object.keys(declared.page.tab?.options ?? {})[0];

/** @type {(name: string) => any} */
export const pictureNamed = (name) =>
  views.flatMap(({ pictures }) => pictures).find((one) => one.name === name);

/** @type {(view: string) => Record<string, any>} */
export const fieldsOf = (view) => views.find((one) => one.name === view)?.controls ?? {};
