// What the views declare of themselves in Python: each field of the state by its name in a link,
// {name, view, type, title, default, options?, least?, most?}.

const source = document.getElementById("view-schema");
/** @type {any[]} */
export const views = source ? JSON.parse(source.textContent) : [];

/** @type {(view: string) => Record<string, any>} */
export const fieldsOf = (view) => views.find((one) => one.name === view)?.controls ?? {};
