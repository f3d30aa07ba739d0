// The buttons that copy the link to what is shown and show it as a QR code; and the opening of a link, which needs the server.

import { mounted } from "../../web/part.js";
import { html, useLayoutEffect, useRef, useState } from "../../web/preact.js";
import { isOwn, on, page as shown } from "../../web/store.js";
import { isInHub, linkText, opened, setRequest } from "./link.js";
import { TOO_LONG } from "./link_text.js";
import { say } from "./messages.js";
import { QrCode } from "./qr_code.js";

const SAID_MS = 6000;
const OWN = say(
  "Copied; but this network belongs to your visit alone: the link shows it to nobody else, and is " +
    "of no use once you have left.",
);

// One question at a time: what is asked for meanwhile (Back, pressed twice) waits, and only the last
// of it. The framework gives an answer more than once: it is told apart by its time.
const oneAtATime = (submit) => {
  /** @type {object | null} */
  let next = null;
  let [isAsking, heard] = [false, 0];
  const ask = (wanted) => {
    isAsking = wanted !== null;
    next = null;
    if (wanted) submit(wanted);
  };
  on("problem", () => ask(next));
  setRequest((wanted) => (isAsking ? (next = wanted) : ask(wanted)));
  return (answer) => {
    if (!answer?.view || answer.at === heard) return;
    heard = answer.at;
    if (next) return ask(next);
    isAsking = false;
    opened(answer);
  };
};

const Share = ({ props, value, submit, server }) => {
  const [said, setSaid] = useState("");
  const [address, setAddress] = useState(""); // to be copied by hand
  const timer = useRef(0);
  useLayoutEffect(() => value.subscribe(oneAtATime(submit)), []);

  // In a Space's own page the link is to that page.
  const pageAddress = () => {
    const { origin, pathname } = window.location;
    const inHub = isInHub() && props.space;
    return inHub ? `https://huggingface.co/spaces/${props.space}` : origin + pathname;
  };
  const tell = (text, passes = false) => {
    setSaid(text);
    clearTimeout(timer.current);
    if (passes) timer.current = window.setTimeout(() => setSaid(""), SAID_MS);
  };
  const copy = async () => {
    const query = await linkText();
    setAddress("");
    if (query === null) return tell(TOO_LONG);
    const link = query ? `${pageAddress()}#${query}` : pageAddress();
    try {
      await navigator.clipboard.writeText(link);
      const own = shown.run && isOwn(shown.run.model);
      return tell(own ? OWN : say("Copied. Whoever opens the link sees the same."), !own);
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
  return html`<div class="share">
    <button type="button" class="copy-link" onClick=${copy}>${say("Copy link")}</button>
    <${QrCode} question=${server.code} page=${pageAddress}>
      ${address && byHand}<span class="share-says" role="status">${said}</span>
    <//>
  </div>`;
};
export const mount = mounted(Share);
