// Plotly, from this server; or from elsewhere, in a page that has none.

import { say } from "./messages.js";

let source = () => new URL("./vendor/plotly-cartesian.min.js", import.meta.url).href;
/** @type {any} */
let loading = null;
/** @type {any} */
let library = null;

// address(): where a page without a server has it.
export const takePlotlyFrom = (address) => (source = address);

// A private reference: other pictures on a page may bring a Plotly of their own.
export const loadPlotly = () => {
  loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = source();
    script.onload = () => done((library = /** @type {any} */ (window).Plotly));
    script.onerror = () => {
      loading = null;
      failed(new Error(say("The drawing library could not be loaded; reload the page.")));
    };
    document.head.append(script);
  });
  return loading;
};

// The library once it is loaded, else null.
export const plotlyIfLoaded = () => library;
