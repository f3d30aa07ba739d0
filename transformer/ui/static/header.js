// Where to begin, at the top of the page: the tour's cards, the lessons, and a menu of all else that is
// done with the page as a whole.

import { mounted } from "../../web/part.js";
import { html, useLayoutEffect, useMemo, useRef } from "../../web/preact.js";
import { Languages } from "./languages.js";
import { answered } from "./link.js";
import { say } from "./messages.js";
import { Projector } from "./projector.js";
import { useCode } from "./qr_code.js";
import { setSubmit } from "./questions.js";
import { CopyLink, pageAddress } from "./share.js";
import { endTour, goToTour, opener, setCards, touring } from "./touring.js";

const MENU = "page-menu";

const begin = ({ currentTarget }) => {
  opener.current = currentTarget;
  goToTour(0);
};
const chooseLesson = ({ currentTarget }) => {
  if (touring.place !== null) endTour();
  opener.current = touring.isChoosing ? null : currentTarget;
  touring.isChoosing = !touring.isChoosing;
};

const Menu = ({ languages, space, server }) => {
  const menu = useRef(/** @type {any} */ (null));
  const page = () => pageAddress(space);
  const { show, code } = useCode(server.code, page);
  // It goes as any menu does, and the page keeps what is chosen on it.
  const press = (event) => {
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
    ${code}
  </div>`;
};

const Header = ({ props, value, submit, server }) => {
  const { cards, lessons, languages, space } = props;
  useMemo(() => setCards(cards), []);
  useLayoutEffect(() => {
    setSubmit(submit); // what opens a link: it is asked of the server
    return value.subscribe(answered);
  }, []);
  return html`<div class="header">
    <button type="button" class="start" hidden=${!cards.length} onClick=${begin}>${say("Start here")}</button>
    <button type="button" class="lessons-button" hidden=${!lessons} onClick=${chooseLesson}>${say("Lessons")}</button>
    <${Menu} ...${{ languages, space, server }} />
  </div>`;
};
export const mount = mounted(Header);
