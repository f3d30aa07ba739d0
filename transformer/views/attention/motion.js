// From scores to weights as one short motion: the scores, those that the mask leaves, and softmax.

import { nextPaint } from "../../ui/static/dom.js";

const STAGES = ["scores", "masked", "weights"];
const SEEN_MS = 900; // of each stage

// draw(): draws the stage of `state`; root: of the view, whose data-stage says what is drawn.
export const connectMotion = (button, root, state, draw) => {
  let ticket = 0;
  const drawn = async (stage, mine) => {
    while (mine === ticket && (root.dataset.stage !== stage || root.ariaBusy)) await nextPaint();
  };
  const seen = () => new Promise((done) => setTimeout(done, SEEN_MS));
  button.addEventListener("click", async () => {
    const mine = ++ticket;
    for (const stage of STAGES) {
      root.classList.add("turning");
      state.stage = stage;
      draw();
      await drawn(stage, mine);
      root.classList.remove("turning");
      if (mine !== ticket) return;
      if (stage !== "weights") await seen();
      if (mine !== ticket || root.dataset.stage !== stage) return;
    }
  });
};
