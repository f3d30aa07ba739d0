// The page inside a course's page, at an address with "?embed": one view or one card, without what
// stands around it, and a line that leads to the whole page.

import { el } from "./dom.js";
import { isEmbedded, withoutEmbed } from "./link_text.js";
import { say } from "./messages.js";

const embed = () => {
  const line = el("p", "embed-line");
  const whole = el("a", "", say("Open the whole page"));
  Object.assign(whole, { target: "_blank", rel: "noopener" });
  const follow = () => {
    const { pathname, search, hash } = window.location;
    whole.href = pathname + withoutEmbed(search) + hash;
  };
  for (const name of ["pointerdown", "focus", "click", "contextmenu"])
    whole.addEventListener(name, follow);
  follow();
  line.append(whole);
  document.body.classList.add("embedded");
  document.body.append(line);
};
if (isEmbedded(window.location.search)) embed();
