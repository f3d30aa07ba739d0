// The seed that the shown text was drawn with, and a new one in one click.

import { finder } from "./dom.js";
import { say } from "./messages.js";
import { on, page } from "../../web/store.js";

const MOST = 10_000; // seeds that are short to read

// What makes two runs the same text.
const essence = ({ model, text, how, interventions, ids }) =>
  JSON.stringify([model, text, how, interventions, ids]);

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props, trigger }) {
  const find = finder(element);
  /** @type {any} */
  let before = null;

  const draw = () => {
    if (!page.run) return;
    const now = { run: page.run.run, is: essence(page.run) };
    const again = before && before.run !== now.run && before.is === now.is;
    before = now;
    const { seed } = page.run;
    find(".seed").hidden = seed === null && !again;
    find(".new-seed").hidden = seed === null;
    const once = seed === null ? "" : say("Seed {seed}", { seed });
    const twice =
      seed === null
        ? say("Nothing is drawn at random: the same text again.")
        : say("Seed {seed} again: the same text.", { seed });
    find(".seed-says").textContent = again ? twice : once;
  };
  find(".new-seed").addEventListener("click", () => {
    const other = Math.floor(Math.random() * (MOST - 1));
    props.value = other < (page.run.seed ?? MOST) ? other : other + 1;
    trigger("submit");
  });
  on("run", draw);
  draw();
}
