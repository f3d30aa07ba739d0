// Edits of a mask as sets of cells "query,key", where * stands for all of them: what they make of a
// mask, how a click changes them, and how they become interventions. As in the network, cells are
// first allowed and then forbidden.
(() => {
  "use strict";
  const viz = window.viz;
  const has = (cells, query, key) =>
    cells.has(`${query},${key}`) || cells.has(`${query},*`) || cells.has(`*,${key}`);
  const remove = (cells, matches) => {
    for (const cell of [...cells]) if (matches(cell.split(","))) cells.delete(cell);
  };

  viz.noEdits = () => ({ without: new Set(), allow: new Set(), forbid: new Set() });
  viz.isEdited = ({ without, allow, forbid }) => without.size + allow.size + forbid.size > 0;

  // "allow" or "forbid" where the edits say something of a cell, else null.
  viz.editOf = ({ allow, forbid }, query, key) => {
    if (has(forbid, query, key)) return "forbid";
    return has(allow, query, key) ? "allow" : null;
  };

  // Forbid an allowed cell, allow a forbidden one. before: whether it is allowed without these
  // edits. counts: {queries, keys} of the mask.
  viz.editCell = ({ allow, forbid }, query, key, before, counts) => {
    const cell = `${query},${key}`;
    const said = viz.editOf({ allow, forbid }, query, key);
    const isAllowed = said === null ? before : said === "allow";
    if (isAllowed) {
      allow.delete(cell);
      if (before || has(allow, query, key)) forbid.add(cell);
      return;
    }
    const open = (line, cells) => { // a line becomes its cells, so that one of them can go
      if (forbid.delete(line)) cells.forEach((one) => forbid.add(one));
    };
    const all = (count, name) => Array.from({ length: count }, (_, place) => name(place));
    open(`${query},*`, all(counts.keys, (place) => `${query},${place}`));
    open(`*,${key}`, all(counts.queries, (place) => `${place},${key}`));
    forbid.delete(cell);
    if (!before) allow.add(cell);
  };

  // A whole row or column, "query,*" or "*,key": forbidden, then allowed, then as it was before.
  viz.editLine = ({ allow, forbid }, line) => {
    const [query, key] = line.split(",");
    const inLine = (cell) => (query === "*" ? cell[1] === key : cell[0] === query) && !cell.includes("*");
    const next = forbid.has(line) ? allow : allow.has(line) ? null : forbid;
    for (const cells of [allow, forbid]) {
      cells.delete(line);
      remove(cells, inLine);
    }
    next?.add(line);
  };

  const plain = (cells) =>
    [...cells].map((cell) => cell.split(",").map((place) => (place === "*" ? null : Number(place))));
  const named = (cells = []) => new Set(cells.map((cell) => cell.map((place) => place ?? "*").join(",")));

  // Edits of one attention, layer null for every layer, as the plain value of an EditMask, and back.
  viz.maskOf = ({ stack, kind, layer }, { without, allow, forbid }) => ({
    type: "mask", stack, kind, layer,
    without: [...without], allow: plain(allow), forbid: plain(forbid),
  });
  viz.editsOf = ({ without = [], allow, forbid }) =>
    ({ without: new Set(without), allow: named(allow), forbid: named(forbid) });
})();
