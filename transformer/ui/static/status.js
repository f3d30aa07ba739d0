// One line that says how it went: progress and results quietly, mistakes as an alert.

import { on } from "../../web/store.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props, watch }) {
  const quiet = element.querySelector(".status");
  const loud = element.querySelector(".problem");
  const show = (kind, text) => {
    const problem = kind === "error";
    loud.hidden = !problem;
    quiet.hidden = problem;
    (problem ? loud : quiet).querySelector("span").textContent = text;
    element.dataset.rev = String(Number(element.dataset.rev ?? 0) + 1);
  };
  const update = () => {
    const value = props.value;
    if (value && value.text !== undefined) show(value.kind, value.text);
  };
  on("waiting", (text) => show("busy", text));
  on("problem", (text) => show("error", text));
  update();
  watch("value", update);
}
