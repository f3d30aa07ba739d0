// What transformer/server/page/static_page.py writes in its place, see layout.js.
export const events: import("./layout.js").Event[];
