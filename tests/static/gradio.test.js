// The page's tabs have names of their own, whatever is written on them.
import assert from "node:assert/strict";
import test from "node:test";

import { openTab, tabButtons } from "../../transformer/ui/static/gradio.js";

const button = (text, tabId, selected) => ({
  textContent: text,
  dataset: tabId ? { tabId } : {},
  getAttribute: () => selected,
  clicks: 0,
  click() {
    this.clicks += 1;
  },
});

test("tabs are known by their names, those in a narrow screen's menu too", () => {
  // Two of them are called alike in this language.
  const shown = [button("Lugar", "attention", "false"), button("Que?", "what-if", "true")];
  const inMenu = [button("Lugar"), button("Modelo")];
  globalThis.document = /** @type {any} */ ({
    querySelectorAll: (query) => (query.includes("overflow") ? inMenu : shown),
  });
  const names = ["attention", "positions", "what-if", "model"];
  globalThis.window = /** @type {any} */ ({
    gradio_config: {
      components: [
        { type: "tabs", props: {} },
        ...names.map((id) => ({ type: "tabitem", props: { id } })),
      ],
    },
  });
  const found = tabButtons();
  assert.deepEqual([...found.keys()].sort(), [...names].sort());
  assert.equal(found.get("positions"), inMenu[0]);
  assert.equal(found.get("model"), inMenu[1]);
  assert.equal(openTab("positions"), inMenu[0]);
  openTab("what-if"); // is open
  assert.equal(openTab("nowhere"), undefined);
  assert.deepEqual(
    [...shown, ...inMenu].map(({ clicks }) => clicks),
    [0, 0, 1, 0],
  );
});
