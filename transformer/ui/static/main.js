// What the page needs before any of its parts: the address, the connection, the runs of the visit.
// It runs before Gradio's own scripts, whose questions to the server it reads along.

import "./link.js";
import "./connection.js";
import "./page_fields.js";
import "./looked_at.js";
import "./history.js";
import { html, render } from "../../web/preact.js";
import { useDocument } from "../../web/part.js";
import { emit, setDark, setQuery } from "../../web/store.js";
import { EmbedLine } from "./embed.js";
import { TermTip } from "./terms.js";

// Escape lets go of what is chosen.
const letGo = ({ key }) => {
  if (key !== "Escape") return;
  emit("escape");
  setQuery(null);
};
// What stands over the page.
const Over = () => {
  useDocument(["keydown"], letGo);
  return html`<${TermTip} /><${EmbedLine} />`;
};
render(html`<${Over} />`, document.body.appendChild(document.createElement("div")));

const follow = () => setDark(document.body.classList.contains("dark"));
new MutationObserver(follow).observe(document.body, { attributeFilter: ["class"] });
follow();
