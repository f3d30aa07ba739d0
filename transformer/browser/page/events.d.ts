// What transformer/static.py writes in its place, see layout.js.
export const events: any[];
