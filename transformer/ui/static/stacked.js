// Whether the text stands above the pictures, and not beside them: on narrow screens, projected, and
// inside another page.

import { isEmbedded } from "./link_text.js";
import { on, page } from "../../web/store.js";

const embedded = isEmbedded(window.location.search);

const narrow = window.matchMedia("(max-width: 1160px)");
const draw = () =>
  document.body.classList.toggle("stacked", embedded || narrow.matches || page.projector);
narrow.addEventListener("change", draw);
on("projector", draw);
draw();
