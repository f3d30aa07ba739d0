// The text token by token: play, pause, one on, one back. What is not written yet is not shown.

import { say } from "./messages.js";
import { on, page, setQuery } from "../../web/store.js";

const PAUSE_MS = 1200; // long enough to read what each token reads

// find: in the text's component; tokens(): the text's buttons. At a token the network chooses the
// next one, so that the walk begins at the last given token and ends before the last of all.
export const connectPlay = (find, tokens) => {
  const [button, back, forth] = [".play", ".play-back", ".play-on"].map(find);
  let timer = 0;
  let mine = false; // whether this sets the chosen token
  const first = () => Math.max(0, page.run.n_prompt - 1);
  const last = () => page.run.labels.length - 2;

  const hideFrom = (place) =>
    tokens().forEach((token, at) => token.classList.toggle("unwritten", at > place));
  const pause = () => {
    clearInterval(timer);
    timer = 0;
    button.textContent = say("Play");
  };
  const stop = () => {
    pause();
    hideFrom(Infinity);
  };
  const show = (place) => {
    mine = true;
    setQuery({ stack: page.run.stack, index: place });
    mine = false;
    hideFrom(place);
  };
  const here = () => (page.query?.stack === page.run.stack ? page.query.index : null);
  const step = (by) => {
    if (!page.run || last() < first()) return;
    const at = here();
    const fits = at !== null && at >= first() && at <= last();
    show(Math.min(last(), Math.max(first(), fits ? at + by : first())));
  };
  const tick = () => {
    const at = here();
    if (at === null || at >= last()) stop();
    else step(1);
  };

  button.addEventListener("click", () => {
    if (timer) return pause();
    if (!page.run || last() < first()) return undefined;
    const at = here();
    show(at === null || at < first() || at >= last() ? first() : at);
    timer = window.setInterval(tick, PAUSE_MS);
    button.textContent = say("Pause");
    return undefined;
  });
  forth.addEventListener("click", () => {
    pause();
    step(1);
  });
  back.addEventListener("click", () => {
    pause();
    step(-1);
  });
  on("run", () => {
    stop();
    find(".player").hidden = page.run.labels.length - page.run.n_prompt < 1;
  });
  on("query", () => mine || stop());
};
