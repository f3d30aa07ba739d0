// What the page needs before any of its parts: the address, the connection, the runs of the visit.
// It runs before Gradio's own scripts, whose questions to the server it reads along.

import "./link.js";
import "./connection.js";
import "./page_fields.js";
import "./looked_at.js";
import "./more.js";
import "./embed.js";
import "./presenting.js";
import "./stacked.js";
import "./history.js";
import "./terms.js";
import { emit, setDark, setQuery } from "../../web/store.js";

const follow = () => setDark(document.body.classList.contains("dark"));
new MutationObserver(follow).observe(document.body, { attributeFilter: ["class"] });
follow();

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  emit("escape");
  setQuery(null);
});
