// The page inside a course's page, at an address with "?embed": one view or one card, without what
// stands around it, and a line that leads to the whole page.

import { html, useState } from "../../web/preact.js";
import { isEmbedded, withoutEmbed } from "./link_text.js";
import { say } from "./messages.js";

const whole = () => {
  const { pathname, search, hash } = window.location;
  return pathname + withoutEmbed(search) + hash;
};
export const EmbedLine = () => {
  const [address, set] = useState(whole);
  const follow = () => set(whole());
  if (!isEmbedded(window.location.search)) return null;
  const near = { onPointerDown: follow, onFocus: follow };
  return html`<p class="embed-line"><a target="_blank" rel="noopener" href=${address} ...${near}>${say("Open the whole page")}</a></p>`;
};
