// The fields of the state that belong to the whole page: the chosen head and token, and the open tab.

import { openTab, tabButtons } from "./gradio.js";
import { ownFields, showOpening } from "./fields.js";
import { oneOf, siteNamed, wholeNumber } from "./link_text.js";
import { siteName, sitesOf } from "./sites.js";
import { on, page, setHead, setQuery } from "../../web/store.js";

ownFields(
  { site: "", head: "0" },
  () => {
    if (!page.run || !page.head) return null;
    const site = siteName(page.head);
    return {
      site: site === siteName(sitesOf(page.run)[0]) ? "" : site,
      head: String(page.head.head),
    };
  },
  ({ site, head }) => {
    if (!page.run) return;
    const place = site === "" ? sitesOf(page.run)[0] : siteNamed("site", site, page.run);
    setHead({ ...place, head: wholeNumber("head", head, 0, page.run.n_heads - 1) });
  },
);

ownFields(
  { token: "" },
  () => {
    if (!page.query) return page.run && { token: "" };
    const { stack, index } = page.query;
    return { token: stack === page.run.stack ? String(index) : `${stack}.${index}` };
  },
  ({ token }) => {
    if (!page.run || token === "") return setQuery(null);
    const [stack, index] = token.includes(".") ? token.split(".") : [page.run.stack, token];
    const own = stack === page.run.stack;
    if (!own) oneOf("token's stack", stack, page.run.source_labels.length ? ["encoder"] : []);
    const labels = own ? page.run.labels : page.run.source_labels;
    return setQuery({ stack, index: wholeNumber("token", index, 0, labels.length - 1) });
  },
);

ownFields(
  { tab: "attention" },
  () => {
    for (const [tab, button] of tabButtons()) {
      if (button.getAttribute("aria-selected") === "true") return { tab };
    }
    return undefined;
  },
  ({ tab }) => {
    oneOf("tab", tab, [...tabButtons().keys()]);
    openTab(tab);
  },
);

// Another model's own example is shown as its opening says; so is the first one of the visit.
/** @type {string | null} */
let model = null;
on("run", (run) => {
  if (run.model !== model) showOpening();
  model = run.model;
});
