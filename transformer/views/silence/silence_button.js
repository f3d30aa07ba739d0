// A button that silences the chosen head of the page, or lets it speak.

import { alter, generates, isSilent, withSilence } from "../../ui/static/interventions.js";
import { say } from "../../ui/static/messages.js";
import { on, page } from "../../web/store.js";

export const connectSilenceButton = (button) => {
  const draw = () => {
    if (!page.head || !page.run) return;
    button.disabled = !generates();
    button.textContent = isSilent(page.head)
      ? say("Let this head speak")
      : say("Silence this head");
  };
  button.addEventListener("click", () => alter(withSilence(page.head)));
  on("head", draw);
  on("run", draw);
  draw();
};
