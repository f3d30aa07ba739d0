// The top of the page: the models, where to begin (the tour's cards, the lessons), and a menu of all else that
// is done with the page as a whole.

import { computed, html, useLayoutEffect, useRef, useState } from "../../web/preact.js";
import { connectControls } from "./gradio.js";
import { ASKED, askedIn, LANGUAGE, lasting } from "../../web/ask.js";
import { chooseModel, isInHub, linkText } from "./link.js";
import { declared } from "../../web/declared.js";
import { TOO_LONG } from "../../web/link_text.js";
import { say } from "../../web/messages.js";
import { isOwn, page as look } from "../../web/store.js";
import { mounted, useDocument } from "../../web/part.js";
import { loadLater } from "../../web/scripts.js";
import { moveTo } from "./main.js";
import { cardState } from "../../web/card.js";
import { endTour, goToTour, opener } from "./tour.js";

// ---- the models: bundled ones by what they do; Gradio's list has all, and is shown where there are others ----

/** @type {Record<string, string>} */
const DOES = {
  stories: say("writes stories"),
  "translate-en-fr": say("translates"),
  "fill-in": say("fills gaps"),
};

const modelShown = computed(() => look.run?.model);
/** @param {{ props: { models: string[] } }} props */
const Models = ({ props: { models } }) => {
  const named = models.filter((name) => name in DOES);
  const shown = modelShown.value ?? models[0];
  useLayoutEffect(() => void (look.models = models), []);
  const hasOthers = useRef(models.length > named.length);
  hasOthers.current ||= !named.includes(shown);
  useLayoutEffect(() => void document.body.classList.toggle("more-models", hasOthers.current));
  const button = (
    /** @type {string} */ name,
  ) => html`<button type="button" aria-pressed=${String(name === shown)}
    data-model=${name} onClick=${() => chooseModel(name)}>${DOES[name]}</button>`;
  return html`<div class="does" role="group" aria-label=${say("Model")} hidden=${!named.length}>${named.map(button)}</div>`;
};

// ---- the link to what is shown, copied; its QR code: code.js ----

const SAID_MS = 6000;
export const OWN = say(
  "This network belongs to your visit alone: a link shows it to nobody else, and is of no use once you have left.",
);

// In a Space's own page the link is to that page.
/** @type {(space: string | null) => string} */
export const pageAddress = (space) => {
  const { origin, pathname } = window.location;
  return isInHub() && space ? `https://huggingface.co/spaces/${space}` : origin + pathname;
};

/** @param {{ page: () => string }} props */
const CopyLink = ({ page }) => {
  const [said, setSaid] = useState("");
  const [address, setAddress] = useState(""); // to be copied by hand
  const timer = useRef(0);
  /** @type {(text: string, passes?: boolean) => void} */
  const tell = (text, passes = false) => {
    setSaid(text);
    clearTimeout(timer.current);
    if (passes) timer.current = window.setTimeout(() => setSaid(""), SAID_MS);
  };
  const copy = async () => {
    const query = await linkText();
    setAddress("");
    if (query === null) return tell(TOO_LONG);
    const link = query ? `${page()}#${query}` : page();
    try {
      await navigator.clipboard.writeText(link);
      const own = look.run && isOwn(look.run.model);
      return tell(own ? OWN : say("Copied. Anyone with the link sees the same."), !own);
    } catch {
      // the browser does not let the page write there
      setAddress(link);
      return tell(say("Copy the link from here: Ctrl+C or ⌘C."));
    }
  };
  const select = (/** @type {HTMLInputElement | null} */ input) => {
    input?.focus();
    input?.select();
  };
  const byHand = html`<input class="share-address" type="text" readonly value=${address}
    aria-label=${say("Link to what is shown")} ref=${select} />`;
  return html`<button type="button" class="copy-link" onClick=${copy}>${say("Copy link")}</button>
    ${address && byHand}<span class="share-says" role="status">${said}</span>`;
};

// ---- the menu of languages, each by its own name ----

const STORAGE_KEY = "viz-language"; // as in page.html

/** @type {(language: string) => boolean} */
const keep = (language) => {
  lasting?.setItem(STORAGE_KEY, language);
  return lasting !== null; // without, the address says it
};

/** @type {(event: import("../../web/types").ChangeOf<HTMLSelectElement>) => Promise<void>} */
const chooseLanguage = async ({ target }) => {
  keep(target.value);
  const shown = await linkText(); // the address says it only after a while
  moveTo(
    askedIn(window.location.search, target.value) + (shown ? `#${shown}` : window.location.hash),
  );
};
// Once it is kept here, the address need not hold it any more, and it is not copied from there.
const tidy = () => {
  const { pathname, search, hash } = window.location;
  if (new URLSearchParams(search).has(ASKED) && keep(LANGUAGE))
    history.replaceState(history.state, "", pathname + askedIn(search, null) + hash);
};

/** @param {[value: string, name: string]} language */
const option = ([value, name]) =>
  html`<option value=${value} lang=${value} selected=${value === LANGUAGE}>${name}</option>`;

/** @param {{ languages: [string, string][] }} props */
const Languages = ({ languages }) => {
  useLayoutEffect(tidy, []);
  return html`<label class="languages" hidden=${languages.length < 2}>${say("Language")}${" "}
    <select class="language-menu" onChange=${chooseLanguage}>${languages.map(option)}</select>
  </label>`;
};

// ---- projector mode: larger type, pictures first, settings away; a field of the page's state ----

// In projector mode the buttons are in the line of the tabs, which leaves room for them.
/** @type {(line: HTMLElement) => () => void} */
const followLine = (line) => {
  const measure = () => {
    const parts = [...line.children].map((part) => part.getBoundingClientRect());
    const left = Math.min(...parts.filter(({ width }) => width).map((part) => part.left));
    const room = line.getBoundingClientRect().right - left + 8;
    document.body.style.setProperty("--top-width", `${room}px`);
  };
  const sizes = new ResizeObserver(measure);
  for (const part of line.children) sizes.observe(part);
  return () => sizes.disconnect();
};

const Projector = () => {
  /** @type {{ current: HTMLElement }} */
  const button = useRef(null);
  const [line, setLine] = useState(/** @type {HTMLElement | null} */ (null)); // until Gradio has come
  const { projector } = look;
  useDocument(["mounted"], () => setLine(button.current.closest("#top")));
  useLayoutEffect(() => (projector && line ? followLine(line) : undefined), [projector, line]);
  return html`<button type="button" class="projector-button" aria-pressed=${projector} ref=${button}
    onClick=${() => (look.projector = !projector)}>${say("Projector")}</button>`;
};

// ---- the header ----

const MENU = "page-menu";

/** @type {(event: { currentTarget: HTMLElement }) => void} */
const begin = ({ currentTarget }) => {
  opener.current = currentTarget;
  goToTour(0);
};
/** @type {(event: { currentTarget: HTMLElement }) => void} */
const chooseLesson = ({ currentTarget }) => {
  if (cardState.place !== null) endTour();
  opener.current = cardState.isChoosing ? null : currentTarget;
  cardState.isChoosing = !cardState.isChoosing;
};

/** @param {{ languages: [string, string][], space: string | null }} props */
const Menu = ({ languages, space }) => {
  /** @type {{ current: HTMLElement }} */
  const menu = useRef(null);
  const page = () => pageAddress(space);
  const [Code, setCode] = useState(
    /** @type {typeof import("./code.js").PageCode | null} */ (null),
  );
  const show = () => loadLater("server/static/code.js", ({ PageCode }) => setCode(() => PageCode));
  // It goes as any menu does, and the page keeps what is chosen on it.
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !menu.current.matches(":popover-open")) return;
    event.stopPropagation();
    menu.current.hidePopover();
  };
  return html`<div class="menu" onKeyDown=${press}>
    <button type="button" class="menu-button" popovertarget=${MENU} aria-label=${say("Menu")}>⋯</button>
    <div class="menu-list" id=${MENU} popover="auto" ref=${menu}>
      <${CopyLink} page=${page} />
      <button type="button" class="show-code" onClick=${show}>${say("QR code")}</button>
      <${Projector} /><${Languages} languages=${languages} />
    </div>
    ${Code && html`<${Code} page=${page} close=${() => setCode(null)} />`}
  </div>`;
};

/** @param {{ props: { languages: [string, string][], space: string | null }, submit: (value: unknown) => void }} props */
const Header = ({ props, submit }) => {
  const { languages, space } = props;
  useLayoutEffect(() => connectControls(submit), []);
  return html`<div class="header">
    <button type="button" class="start" hidden=${!declared.cards.length} onClick=${begin}>${say("Start here")}</button>
    <button type="button" class="lessons-button" hidden=${!declared.lessons.length} onClick=${chooseLesson}>${say("Lessons")}</button>
    <${Menu} languages=${languages} space=${space} />
  </div>`;
};
export const mount = { header: mounted(Header), models: mounted(Models) };
