// Whether the text stands above the pictures, and not beside them: on narrow screens and projected.

import { on, page } from "./state.js";

const narrow = window.matchMedia("(max-width: 1160px)");
const draw = () => document.body.classList.toggle("stacked", narrow.matches || page.projector);
narrow.addEventListener("change", draw);
on("projector", draw);
draw();
