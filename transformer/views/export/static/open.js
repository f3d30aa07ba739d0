// Opens a saved page: unpacks its script, which does the rest.

import { canUnpack, gunzip } from "./pack.js";

/** @type {(id: string) => any} */
const byId = (id) => document.getElementById(id);

const open = async () => {
  if (!canUnpack) return (byId("old-browser").hidden = false);
  const script = await gunzip(byId("script").textContent).catch(() => null);
  if (!script) return (byId("damaged").hidden = false);
  return import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
};
open();
