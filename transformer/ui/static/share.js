// The buttons that copy the link to what is shown and show it as a QR code; and the opening of a link, which needs the server.

import { finder } from "./dom.js";
import { isInHub, linkText, opened, setRequest } from "./link.js";
import { TOO_LONG } from "./link_text.js";
import { say } from "./messages.js";
import { qrCode } from "./qr_code.js";
import { isOwn, on, page as shown } from "../../web/store.js";

const OWN = say(
  "Copied; but this network belongs to your visit alone: the link shows it to nobody else, and is " +
    "of no use once you have left.",
);

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props, trigger, watch, server }) {
  const find = finder(element);
  const [button, address, says] = [".copy-link", ".share-address", ".share-says"].map(find);
  const SAID_MS = 6000;
  let timer = 0;

  const tell = (text, passes = false) => {
    says.textContent = text;
    clearTimeout(timer);
    if (passes) timer = window.setTimeout(() => (says.textContent = ""), SAID_MS);
  };

  // In a Space's own page the link is to that page.
  const pageAddress = () => {
    const { origin, pathname } = window.location;
    const inHub = isInHub() && props.space;
    return inHub ? `https://huggingface.co/spaces/${props.space}` : origin + pathname;
  };
  const linkTo = (query) => (query ? `${pageAddress()}#${query}` : pageAddress());
  qrCode(element, server, pageAddress);

  button.addEventListener("click", async () => {
    const query = await linkText();
    address.hidden = true;
    if (query === null) return tell(TOO_LONG);
    address.value = linkTo(query);
    try {
      await navigator.clipboard.writeText(address.value);
      const own = shown.run && isOwn(shown.run.model);
      return tell(own ? OWN : say("Copied. Whoever opens the link sees the same."), !own);
    } catch {
      // the browser does not let the page write there
      address.hidden = false;
      address.focus();
      address.select();
      return tell(say("Copy the link from here: Ctrl+C or ⌘C."));
    }
  });

  // One question at a time: what is asked for meanwhile (Back, pressed twice) waits, and only the last
  // of it. The framework gives an answer more than once: it is told apart by its time.
  /** @type {object | null} */
  let next = null;
  let [isAsking, heard] = [false, 0];
  const ask = (wanted) => {
    isAsking = wanted !== null;
    next = null;
    if (wanted) trigger("submit", wanted);
  };
  watch("value", () => {
    const answer = props.value;
    if (!answer?.view || answer.at === heard) return;
    heard = answer.at;
    if (next) ask(next);
    else {
      isAsking = false;
      opened(answer);
    }
  });
  on("problem", () => ask(next));
  setRequest((wanted) => (isAsking ? (next = wanted) : ask(wanted)));
}
