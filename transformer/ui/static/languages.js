// The menu of languages, each by its own name. What is chosen is kept in this browser alone; no link
// carries it. The page comes anew in it, with all that stands on it.

import { html, useLayoutEffect } from "../../web/preact.js";
import { moveTo } from "./connection.js";
import { ASKED, askedIn, LANGUAGE } from "./language.js";
import { linkText } from "./link.js";
import { say } from "./messages.js";

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

const choose = async ({ target }) => {
  keep(target.value);
  const shown = await linkText(); // the address says it only after a while
  moveTo(
    askedIn(window.location.search, target.value) + (shown ? `#${shown}` : window.location.hash),
  );
};
// Once it is kept here, the address need not say it any more, and nobody copies it from there.
const tidy = () => {
  const { pathname, search, hash } = window.location;
  if (new URLSearchParams(search).has(ASKED) && keep(LANGUAGE))
    history.replaceState(history.state, "", pathname + askedIn(search, null) + hash);
};

const option = ([value, name]) =>
  html`<option value=${value} lang=${value} selected=${value === LANGUAGE}>${name}</option>`;

export const Languages = ({ languages }) => {
  useLayoutEffect(tidy, []);
  return html`<label class="languages" hidden=${languages.length < 2}>${say("Language")}${" "}
    <select class="language-menu" onChange=${choose}>${languages.map(option)}</select>
  </label>`;
};
