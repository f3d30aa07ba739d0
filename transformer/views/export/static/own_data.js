// A page that carries its own data, in #data, and Plotly.

import { say } from "../../../ui/static/messages.js";
import { takePlotlyFrom } from "../../../ui/static/plotly.js";
import { canUnpack, gunzip, unpack } from "./pack.js";

/** @type {(id: string) => any} */
const byId = (id) => document.getElementById(id);
const tell = (text) => {
  byId("problem").textContent = text;
  byId("problem").hidden = false;
  byId("content").hidden = true;
};

// show(data, place) fills the page.
export const startWith = async (show) => {
  if (!canUnpack) {
    return tell(
      say(
        "This browser cannot unpack the page’s data: it has no DecompressionStream. " +
          "Browsers made since 2023 have.",
      ),
    );
  }
  const texts = ["data", "plotly"].map((id) => byId(id).textContent);
  const parts = await Promise.all([unpack(texts[0]), gunzip(texts[1])]).catch(() => null);
  if (!parts) return tell(say("The page’s data is damaged; save the page again."));
  const [data, library] = parts;
  takePlotlyFrom(() => URL.createObjectURL(new Blob([library], { type: "text/javascript" })));
  return show(data, byId("content"));
};
