// What stands in the tab of masks with the padding mask in place, and with it taken away.

import { say } from "../../ui/static/messages.js";

// find: of the tab's parts; hidden: whether padding is hidden; causal: whether a causal mask acts too.
export const drawPaddingNotes = (find, hidden, causal) => {
  const toggle = document.getElementById("without-padding");
  if (toggle) toggle.ariaPressed = String(!hidden);
  const left = causal
    ? say("Only the causal mask is left. This is what the network used.")
    : say("No mask is left. This is what the network used.");
  find(".padding-note").textContent = hidden
    ? say("Hides the keys that are not text, from every query. It depends on the sentence.")
    : say("Taken away: padding is read like text.");
  find(".combined-note").textContent = hidden
    ? say("A key may be read only if both masks allow it. This is what the network used.")
    : left;
  find(".removal-heading").textContent = hidden
    ? say("What changes when a mask is taken away")
    : say("What changes when another mask is taken away too");
};
