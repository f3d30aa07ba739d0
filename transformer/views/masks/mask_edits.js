// Edits of a mask as sets of cells "query,key", with * for all: their effect on a mask, the effect of a
// click, and their interventions. As in the network, cells are first allowed and then forbidden.
/**
 * @typedef {Set<string>} Cells
 * @typedef {{without: Cells, allow: Cells, forbid: Cells}} Edits without: whole masks by name
 * @typedef {"allow" | "forbid" | null} Said
 * @typedef {import("../../web/types").Change} Plain an intervention as plain values
 * @typedef {(query: number, key: number) => boolean} OfCell
 * @typedef {{edit: (query: number, key: number) => Said, before: OfCell, planned: OfCell,
 *   isRemoved: (name: string) => boolean}} MaskPlan
 */

/** @type {(cells: Cells, query: number, key: number) => boolean} */
const has = (cells, query, key) =>
  cells.has(`${query},${key}`) || cells.has(`${query},*`) || cells.has(`*,${key}`);

/** @type {() => Edits} */
export const noEdits = () => ({ without: new Set(), allow: new Set(), forbid: new Set() });
/** @type {(edits: Edits) => boolean} */
export const isEdited = ({ without, allow, forbid }) => without.size + allow.size + forbid.size > 0;

// "allow" or "forbid" if the edits contain a cell, else null.
/** @type {(edits: Omit<Edits, "without">, query: number, key: number) => Said} */
const editOf = ({ allow, forbid }, query, key) => {
  if (has(forbid, query, key)) return "forbid";
  return has(allow, query, key) ? "allow" : null;
};

// Forbid an allowed cell, allow a forbidden one. before: whether it is allowed without these
// edits. counts: {queries, keys} of the mask.
/** @type {(edits: Edits, query: number, key: number, before: boolean, counts: {queries: number, keys: number}) => void} */
export const editCell = ({ allow, forbid }, query, key, before, counts) => {
  const cell = `${query},${key}`;
  const said = editOf({ allow, forbid }, query, key);
  const isAllowed = said === null ? before : said === "allow";
  if (isAllowed) {
    allow.delete(cell);
    if (before || has(allow, query, key)) forbid.add(cell);
    return;
  }
  // a forbidden line becomes its cells, so that one of them can be removed
  const inRow = forbid.delete(`${query},*`) ? counts.keys : 0;
  const inColumn = forbid.delete(`*,${key}`) ? counts.queries : 0;
  for (let at = 0; at < inRow; at += 1) forbid.add(`${query},${at}`);
  for (let at = 0; at < inColumn; at += 1) forbid.add(`${at},${key}`);
  forbid.delete(cell);
  if (!before) allow.add(cell);
};

// Cycle a whole row or column, "query,*" or "*,key": forbidden, allowed, unedited.
/** @type {(edits: Edits, line: string) => void} */
export const editLine = ({ allow, forbid }, line) => {
  const [query, key] = line.split(",");
  const next = forbid.has(line) ? allow : allow.has(line) ? null : forbid;
  for (const cells of [allow, forbid]) {
    cells.delete(line);
    for (const cell of cells) {
      const [row, column] = cell.split(",");
      const inLine = query === "*" ? column === key : row === query;
      if (inLine && !cell.includes("*")) cells.delete(cell);
    }
  }
  next?.add(line);
};

/** @type {(cells: Cells) => [number | null, number | null][]} */
const plain = (cells) =>
  [...cells].map((cell) => {
    const [query, key] = cell.split(",").map((place) => (place === "*" ? null : Number(place)));
    return [query, key];
  });
/** @type {(cells?: (number | null)[][]) => Cells} */
const named = (cells = []) =>
  new Set(cells.map((cell) => cell.map((place) => place ?? "*").join(",")));

// Edits of one attention, layer null for every layer, as the plain value of an EditMask.
/** @type {(site: {stack: string, kind: string, layer: number | null}, edits: Edits) => Plain} */
export const maskOf = ({ stack, kind, layer }, { without, allow, forbid }) => ({
  type: "mask",
  stack,
  kind,
  layer,
  without: [...without],
  allow: plain(allow),
  forbid: plain(forbid),
});

// ---- the edits of a network's attentions, by "stack.layer.kind" with * for every layer ----

// The plain values of all nonempty edits, those of every layer first.
/** @type {(byPlace: Map<string, Edits>) => Plain[]} */
export const masksOf = (byPlace) =>
  [...byPlace]
    .filter(([, edits]) => isEdited(edits))
    .sort(([a], [b]) => a.localeCompare(b)) // "*" comes before the numbers
    .map(([place, edits]) => {
      const [stack, layer, kind] = place.split(".");
      return maskOf({ stack, kind, layer: layer === "*" ? null : Number(layer) }, edits);
    });
// The edits in a list of interventions.
/** @type {(interventions: Plain[]) => Map<string, Edits>} */
export const editsByPlace = (interventions) =>
  new Map(
    interventions
      .filter(({ type }) => type === "mask")
      .map(({ stack, kind = "self", layer = null, without = [], allow, forbid }) => [
        [stack, layer ?? "*", kind].join("."),
        { without: new Set(without), allow: named(allow), forbid: named(forbid) },
      ]),
  );

// Apply edits to a mask in order. Returns functions of a cell: edit: its edit; planned: whether it is allowed
// with the edits; before: without the last; and isRemoved(name): whether the mask "causal" or "padding" is
// removed as a whole. window: the tokens that a query reads back (in an encoder also ahead), itself included.
/** @type {(acting: Edits[], isCausal: boolean, window?: number | null) => MaskPlan} */
export const planOf = (acting, isCausal, window = null) => {
  /** @type {(name: string) => boolean} */
  const isRemoved = (name) => acting.some(({ without }) => without.has(name));
  /** @type {(some: Edits[]) => (query: number, key: number) => Said} */
  const said = (some) => (query, key) =>
    some.reduce((one, edits) => editOf(edits, query, key) ?? one, /** @type {Said} */ (null));
  /** @type {(some: Edits[]) => OfCell} */
  const allowed = (some) => {
    const edited = said(some);
    const isOpen = isRemoved("causal");
    /** @type {OfCell} */
    const mayRead = (query, key) =>
      (!isCausal || key <= query) && Math.abs(query - key) < (window ?? Infinity);
    return (query, key) => {
      const edit = edited(query, key);
      return edit ? edit === "allow" : isOpen || mayRead(query, key);
    };
  };
  return {
    edit: said(acting),
    before: allowed(acting.slice(0, -1)),
    planned: allowed(acting),
    isRemoved,
  };
};
