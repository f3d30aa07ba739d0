// The text token by token: play, pause, one on, one back. What is not written yet is not shown.

import { say } from "./messages.js";
import { useEvent } from "./part.js";
import { html, useLayoutEffect, useRef } from "./preact.js";
import { page, setQuery } from "./store.js";

const PAUSE_MS = 1200; // long enough to read what each token reads

// At a token the network chooses the next one, so that the walk begins at the last given token and
// ends before the last of all.
const first = () => Math.max(0, page.run.n_prompt - 1);
const last = () => page.run.labels.length - 2;
const here = () => (page.query?.stack === page.run.stack ? page.query.index : -1);

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// show(place): how far the text is written. Without motion, each press is a step.
export const Player = ({ show }) => {
  const isPlaying = page.playing;
  const setPlaying = (now) => (page.playing = now);
  const isMine = useRef(false); // whether this sets the chosen token
  const goTo = (place) => {
    isMine.current = true;
    setQuery({ stack: page.run.stack, index: place });
    isMine.current = false;
    show(place);
  };
  const stop = () => {
    setPlaying(false);
    show(Infinity);
  };
  const step = (by) => {
    const fits = here() >= first() && here() <= last();
    goTo(Math.min(last(), Math.max(first(), fits ? here() + by : first())));
  };
  const leaf = (by) => {
    setPlaying(false);
    if (last() >= first()) step(by);
  };
  const play = () => {
    if (isPlaying || last() < first()) return setPlaying(false);
    goTo(here() < first() || here() >= last() ? first() : here());
    return setPlaying(true);
  };
  const press = () => (isStill() ? leaf(1) : play());
  useLayoutEffect(() => {
    if (!isPlaying) return undefined;
    const on = () => (here() < 0 || here() >= last() ? stop() : step(1));
    const timer = setInterval(on, PAUSE_MS);
    return () => clearInterval(timer);
  }, [isPlaying]);
  useEvent("run", stop);
  useEvent("query", () => isMine.current || stop());
  const { labels = [], n_prompt: start = 0 } = page.run ?? {};
  return html`<p class="player" hidden=${labels.length - start < 1}>
    <button type="button" class="play-back" aria-label=${say("One token back")} onClick=${() => leaf(-1)}>‹</button>
    <button type="button" class="play" onClick=${press}>${isPlaying ? say("Pause") : say("Play")}</button>
    <button type="button" class="play-on" aria-label=${say("One token on")} onClick=${() => leaf(1)}>›</button>
  </p>`;
};
