// The language of what this page asks the server: the page's own, whatever the browser's is.

// As first_language.js made it: Gradio writes another one to the document where it has no words.
export const LANGUAGE = globalThis.navigator?.language ?? "en";
export const ASKED = "__lang"; // in a query string; what begins so is no part of a link

// The query string, asking for a language; null: for none.
/** @type {(search: string, language: string | null) => string} */
export const askedIn = (search, language) => {
  const query = new URLSearchParams(search);
  query.delete(ASKED);
  if (language) query.set(ASKED, language);
  return query.size ? `?${query}` : "";
};
