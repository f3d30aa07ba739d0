// The button that copies the link to what is shown; its QR code: code.js.

import { html, useRef, useState } from "../../web/preact.js";
import { isOwn, page as shown } from "../../web/store.js";
import { isInHub, linkText } from "./link.js";
import { TOO_LONG } from "../../web/link_text.js";
import { say } from "../../web/messages.js";

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
