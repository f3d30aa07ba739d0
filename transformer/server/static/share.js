// What a visitor takes along: the link to what is shown, its QR code in a window above the page (the server
// draws it, and knows an address that others can open).

import { cardState } from "../../web/card.js";
import { html, useLayoutEffect, useRef, useState } from "../../web/preact.js";
import { isOwn, page as shown } from "../../web/store.js";
import { isInHub, linkText, snapshot } from "./link.js";
import { TOO_LONG, shortQueryOf } from "../../web/link_text.js";
import { say } from "../../web/messages.js";
import { ask } from "../../web/ask.js";

// The button that copies the link to what is shown.

const SAID_MS = 6000;
const OWN = say(
  "Copied; but this network belongs to your visit alone: the link shows it to nobody else, and is " +
    "of no use once you have left.",
);

// In a Space's own page the link is to that page.
/** @type {(space: string | null) => string} */
export const pageAddress = (space) => {
  const { origin, pathname } = window.location;
  return isInHub() && space ? `https://huggingface.co/spaces/${space}` : origin + pathname;
};

export const CopyLink = ({ page }) => {
  const [said, setSaid] = useState("");
  const [address, setAddress] = useState(""); // to be copied by hand
  const timer = useRef(0);
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
      const own = shown.run && isOwn(shown.run.model);
      return tell(own ? OWN : say("Copied. Anyone with the link sees the same."), !own);
    } catch {
      // the browser does not let the page write there
      setAddress(link);
      return tell(say("Copy the link from here: Ctrl+C or ⌘C."));
    }
  };
  const select = (input) => {
    input?.focus();
    input?.select();
  };
  const byHand = html`<input class="share-address" type="text" readonly value=${address}
    aria-label=${say("Link to what is shown")} ref=${select} />`;
  return html`<button type="button" class="copy-link" onClick=${copy}>${say("Copy link")}</button>
    ${address && byHand}<span class="share-says" role="status">${said}</span>`;
};

// What is shown as a QR code, in a window above the page. The server draws it, and knows an address
// that others can open.

const NO_CODE = say(
  "This network belongs to your visit alone: a link shows it to nobody else, so there is no code.",
);

const draw = async (page) => {
  if (shown.run && isOwn(shown.run.model)) throw new Error(NO_CODE);
  const state = snapshot();
  delete state.projector; // a phone is none
  const query = await shortQueryOf(state);
  const { picture, address } = await ask("code", { page: page(), query });
  const says = say("Point a phone's camera at the code: it opens what is shown here.");
  return { picture, says, address: address.split("#")[0] };
};

// The window in `box`; its shows tells the button how to open it. page(): the page's own address.
export const useCode = (page) => {
  const box = useRef(/** @type {any} */ (null));
  const [{ picture, says, address, rev }, setCode] = useState(/** @type {any} */ ({ rev: 0 }));
  const show = async () => {
    setCode({ rev });
    box.current.showModal();
    const code = await draw(page).catch(({ message }) => ({ says: message }));
    setCode({ ...code, rev: rev + 1 });
  };
  const close = () => box.current?.close();
  useLayoutEffect(close, [cardState.place]);
  const title = say("This page on another device");
  const outside = ({ target }) => target === box.current && close();
  const code = html`<dialog class="code-window" aria-label=${title} data-rev=${rev || undefined} ref=${box} onClick=${outside}>
      <div class="code-box">
        <img class="code-picture" hidden=${!picture} src=${picture} alt=${say("QR code")} />
        <div class="code-words">
          <h2 class="code-title">${title}</h2>
          <p class="code-says" role="status">${says}</p>
          <p class="code-address">${address}</p>
          <button type="button" class="code-close" onClick=${close}>${say("Close")}</button>
        </div>
      </div>
    </dialog>`;
  return { show, code };
};
