// What both doors of a page without a server do: put its parts where its scripts look for them.

/** @type {(kind: string, of: Record<string, string>) => void} */
export const addElement = (kind, of) =>
  document.head.append(Object.assign(document.createElement(kind), of));
// The address of a script that has come as bytes.
/** @type {(script: BlobPart) => string} */
export const scriptAddress = (script) =>
  URL.createObjectURL(new Blob([script], { type: "text/javascript" }));

// site: the door, as start.js reads it. words: JSON of a language; imports: addresses of scripts by name.
/** @type {(site: object, words: string, imports: Record<string, string>) => void} */
export const prepare = (site, words, imports) => {
  const spoken = JSON.parse(words);
  Object.assign(globalThis, { site, spoken });
  const glossary = JSON.stringify(spoken.glossary);
  addElement("script", { type: "application/json", id: "glossary", textContent: glossary });
  addElement("script", { type: "importmap", textContent: JSON.stringify({ imports }) });
};
