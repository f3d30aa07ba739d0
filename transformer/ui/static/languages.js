// The menu of languages, each by its own name. What is chosen is kept in this browser alone; no link
// carries it. The page comes anew in it, with all that stands on it.

import { moveTo } from "./connection.js";
import { el, finder } from "./dom.js";
import { linkText } from "./link.js";
import { ASKED, askedIn, LANGUAGE } from "./language.js";

const KEPT = "viz-language"; // as in first_language.js

/** @type {(language: string) => boolean} */
const keep = (language) => {
  try {
    localStorage.setItem(KEPT, language);
    return true;
  } catch {
    return false; // a page inside another one may have no storage: the address then says it
  }
};

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props }) {
  const find = finder(element);
  const menu = find(".language-menu");
  for (const [value, name] of props.languages) {
    const option = Object.assign(el("option", "", name), { value, lang: value });
    option.selected = value === LANGUAGE;
    menu.append(option);
  }
  find(".languages").hidden = props.languages.length < 2;
  menu.addEventListener("change", async () => {
    keep(menu.value);
    const shown = await linkText(); // the address says it only after a while
    moveTo(
      askedIn(window.location.search, menu.value) + (shown ? `#${shown}` : window.location.hash),
    );
  });
  // Once it is kept here, the address need not say it any more, and nobody copies it from there.
  const { pathname, search, hash } = window.location;
  if (new URLSearchParams(search).has(ASKED) && keep(LANGUAGE))
    history.replaceState(history.state, "", pathname + askedIn(search, null) + hash);
}
