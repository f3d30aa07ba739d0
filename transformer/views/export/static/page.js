// The page of one run.

import { startWith } from "./own_data.js";
import { byId, drawAgainWhenNeeded, mountRun } from "./run_page.js";

startWith((data) => {
  byId("model").textContent = data.model;
  byId("summary").textContent = data.summary;
  drawAgainWhenNeeded(mountRun(data).draw);
});
