// A link as a QR code, in a window above the page. The server draws it, and knows an address that
// others can open.

import { ask } from "../../web/ask.js";
import { cardState } from "../../web/card.js";
import { shortQueryOf } from "../../web/link_text.js";
import { say } from "../../web/messages.js";
import { html, useLayoutEffect, useRef, useState } from "../../web/preact.js";
import { isOwn, page as shown } from "../../web/store.js";
import { snapshot } from "./link.js";
import { OWN } from "./header.js";

/** @import { CodePicture } from "./types" */

// draw(): {picture, address, says} of the code, or an Error that says why there is none. close():
// it was closed. children: shown below the address.
/** @param {{ title: string, draw: () => Promise<CodePicture>, close: () => void, children?: import("preact").ComponentChild }} props */
export const CodeWindow = ({ title, draw, close, children }) => {
  /** @type {{ current: HTMLDialogElement }} */
  const box = useRef(null);
  const card = useRef(cardState.place);
  const [code, setCode] = useState(/** @type {CodePicture | null} */ (null));
  useLayoutEffect(() => {
    box.current.showModal();
    draw().then(setCode, ({ message }) => setCode({ says: message }));
  }, []);
  const shut = () => box.current.close();
  useLayoutEffect(() => void (cardState.place !== card.current && shut()), [cardState.place]);
  const { picture, says, address } = code ?? {};
  const outside = (/** @type {Event} */ { target }) => target === box.current && shut();
  return html`<dialog class="code-window" aria-label=${title} data-rev=${code ? 1 : undefined}
    ref=${box} onClick=${outside} onClose=${close}>
      <div class="code-box">
        <img class="code-picture" hidden=${!picture} src=${picture} alt=${say("QR code")} />
        <div class="code-words">
          <h2 class="code-title">${title}</h2>
          <p class="code-says" role="status">${says}</p>
          <p class="code-address">${address}</p>
          ${children}
          <button type="button" class="code-close" onClick=${shut}>${say("Close")}</button>
        </div>
      </div>
    </dialog>`;
};

// The code of what is shown. page(): the page's own address.
/** @param {{ page: () => string, close: () => void }} props */
export const PageCode = ({ page, close }) => {
  const draw = async () => {
    if (shown.run && isOwn(shown.run.model)) throw new Error(OWN);
    const state = snapshot();
    delete state.projector; // a phone is none
    const query = await shortQueryOf(state);
    const { picture, address } = await ask("code", { page: page(), query });
    const says = say("Point a phone's camera at the code: it opens what is shown here.");
    return { picture, says, address: address.split("#")[0] };
  };
  return html`<${CodeWindow} title=${say("This page on another device")} draw=${draw}
    close=${close} />`;
};
