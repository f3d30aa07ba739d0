// What is shown as a QR code, in a window above the page. The server draws it, and knows an address
// that others can open.

import { ask } from "./ask.js";
import { finder } from "./dom.js";
import { snapshot } from "./link.js";
import { shortQueryOf } from "./link_text.js";
import { say } from "./messages.js";
import { isOwn, page as shown } from "../../web/store.js";

const OWN = say(
  "This network belongs to your visit alone: a link shows it to nobody else, so there is no code.",
);

// What another device is to show: a phone is no projector.
/** @type {(state: Record<string, string>) => Record<string, string>} */
export const forOthers = (state) =>
  Object.fromEntries(Object.entries(state).filter(([name]) => name !== "projector"));

/** @type {(element: Element, server: Record<string, (data: any) => Promise<any>>, page: () => string) => void} */
export const qrCode = (element, server, page) => {
  const find = finder(element);
  const [window, picture, says, address] = [
    ".code-window", ".code-picture", ".code-says", ".code-address",
  ].map(find); // prettier-ignore

  const draw = async () => {
    if (shown.run && isOwn(shown.run.model)) throw new Error(OWN);
    const query = await shortQueryOf(forOthers(snapshot()));
    const made = await ask(server.code, { page: page(), query });
    picture.src = made.picture;
    picture.hidden = false;
    says.textContent = say("Point a phone's camera at the code: it opens what is shown here.");
    address.textContent = made.address.split("#")[0];
  };
  find(".show-code").addEventListener("click", async () => {
    picture.hidden = true;
    says.textContent = address.textContent = "";
    window.showModal();
    await draw().catch((error) => (says.textContent = error.message));
    window.dataset.rev = String(Number(window.dataset.rev ?? 0) + 1);
  });
  find(".code-close").addEventListener("click", () => window.close());
  window.addEventListener("click", ({ target }) => target === window && window.close());
};
