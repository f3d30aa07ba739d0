// A light figure's colours in the dark.

/** @typedef {Record<string, string>} Table what each colour becomes, see drawing/style.py */

/** @type {(colour: string, table: Table) => string} */
const changed = (colour, table) => {
  const end = colour.lastIndexOf(",") + 1;
  const start = colour.slice(0, end);
  return table[colour] ?? (table[start] ? table[start] + colour.slice(end) : colour);
};

// The same figure in other colours. Only what is called a colour changes: a token may read "#ffffff".
/** @type {(value: any, table: Table, isColour?: boolean) => any} */
export const recoloured = (value, table, isColour = false) => {
  if (typeof value === "string") return isColour ? changed(value, table) : value;
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((one) => recoloured(one, table, isColour));
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [
      key,
      recoloured(part, table, isColour || /color/.test(key)),
    ]),
  );
};
