// Requests of the journey and the next-word bars, each once per run for both, and the hovered head.

import { cardState } from "../../web/card.js";
import { askOnce } from "../../web/ask.js";
import { useAnswer } from "../../web/part.js";
import { effect, useLayoutEffect, useRef } from "../../web/preact.js";
import { chosenRow, on, page, predicts, reactive } from "../../web/store.js";

const FILL_MS = 500;

/** @typedef {import("../../web/store.js").Head} Head */

// preview: the hovered head; the bars are also shown without it, else without the chosen one. isLarge: whether
// the chosen head is also shown large.
export const shared = reactive({ preview: /** @type {Head | null} */ (null), isLarge: false });
const letGo = () => (shared.preview = null);
on("escape", letGo);
effect(() => {
  if (cardState.place !== null) letGo();
});

export const withoutHead = (data) => askOnce("without_head", data);

// The last token read: the chosen one; null for the server's default.
const placeChosen = () =>
  page.run && chosenRow(page.run.stack) !== null ? page.query.index : null;

// The server's answer, {answer, asked}; that of another run of the same network until this one's arrives.
/** @type {(part: import("../../web/part.js").Part) => {answer: any, asked: any}} */
export const useJourney = (part) => {
  const model = useRef("");
  const position = placeChosen();
  const wanted = predicts() && { run: page.run.run, ...(position === null ? {} : { position }) };
  const found = useAnswer(part, (data) => askOnce("journey", data), wanted);
  if (found.asked && found.asked.run === page.run?.run) model.current = page.run.model;
  return model.current === page.run?.model ? found : { answer: null, asked: null };
};

// Fill an element from the left at each step of the played text; delay: in ms. Without motion the player only
// steps, see web/controls.js.
/** @type {(place: number | undefined, delay: number) => { current: any }} */
export const useFilling = (place, delay) => {
  const filled = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    if (!page.playing) return;
    const frames = { clipPath: ["inset(-20px 100% -20px 0)", "inset(-20px -20px -20px 0)"] };
    filled.current?.animate(frames, { duration: FILL_MS, delay, fill: "backwards" });
  }, [place]);
  return filled;
};
