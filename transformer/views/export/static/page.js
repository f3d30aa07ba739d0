// The page of one run.

import { sayWith } from "../../../web/messages.js";
import { html, render } from "../../../web/preact.js";
import { setRun } from "../../../web/store.js";
import { startWith, RunPage } from "./run_page.js";

const Page = ({ data }) => {
  const model = html`<span id="model">${data.model}</span>`;
  return html`<header>
      <h1>${sayWith("What the model “{model}” read and wrote", { model })}</h1>
      <p id="summary">${data.summary}</p>
    </header>
    <${RunPage} data=${data} at=${data.at} />`;
};

startWith((data, place) => {
  setRun(data.run);
  render(html`<${Page} data=${data} />`, place);
});
