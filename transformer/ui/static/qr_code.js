// What is shown as a QR code, in a window above the page. The server draws it, and knows an address
// that others can open.

import { html, useRef, useState } from "../../web/preact.js";
import { isOwn, page as shown } from "../../web/store.js";
import { ask } from "./ask.js";
import { snapshot } from "./link.js";
import { shortQueryOf } from "./link_text.js";
import { say } from "./messages.js";

const OWN = say(
  "This network belongs to your visit alone: a link shows it to nobody else, so there is no code.",
);

// What another device is to show: a phone is no projector.
/** @type {(state: Record<string, string>) => Record<string, string>} */
export const forOthers = (state) =>
  Object.fromEntries(Object.entries(state).filter(([name]) => name !== "projector"));

const draw = async (question, page) => {
  if (shown.run && isOwn(shown.run.model)) throw new Error(OWN);
  const query = await shortQueryOf(forOthers(snapshot()));
  const { picture, address } = await ask(question, { page: page(), query });
  const says = say("Point a phone's camera at the code: it opens what is shown here.");
  return { picture, says, address: address.split("#")[0] };
};

// The window in `box`; its shows tells the button how to open it. question: asks the server for a code;
// page(): the page's own address.
export const useCode = (question, page) => {
  const box = useRef(/** @type {any} */ (null));
  const [{ picture, says, address, rev }, setCode] = useState(/** @type {any} */ ({ rev: 0 }));
  const show = async () => {
    setCode({ rev });
    box.current.showModal();
    const code = await draw(question, page).catch(({ message }) => ({ says: message }));
    setCode({ ...code, rev: rev + 1 });
  };
  const close = () => box.current.close();
  const title = say("This page on another device");
  const outside = ({ target }) => target === box.current && close();
  const code = html`<dialog class="code-window" aria-label=${title} data-rev=${rev || undefined} ref=${box} onClick=${outside}>
      <div class="code-box">
        <img class="code-picture" hidden=${!picture} src=${picture} alt=${say("QR code of a link to what is shown")} />
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
