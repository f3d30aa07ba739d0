// The head and the token that are chosen as a new text is read, unless another was by a press, a link or a card.

import { askOnce } from "../../web/ask.js";
import { cardState } from "../../web/card.js";
import { siteNamed } from "../../web/declared.js";
import { fields } from "../../web/fields.js";
import { batch, effect, useLayoutEffect } from "../../web/preact.js";
import {
  isOpeningLink,
  on,
  page,
  predicts,
  reactive,
  sameHead,
  setHead,
  setQuery,
} from "../../web/store.js";
import { shared } from "./next_words.js";

/** @import { Head } from "../../web/types" */
/** @import { JourneyAnswer, Telling } from "./types" */

// head: the last that was chosen so; text: whose, "" until one is; isLinked: whether a link has been opened since;
// surprising: the place of a text in which no head leads.
const automatic = reactive({
  head: /** @type {Head | null} */ (null),
  text: "",
  isLinked: false,
  surprising: /** @type {{ run: string, place: number | null } | null} */ (null),
});
effect(() => void (isOpeningLink() && (automatic.isLinked = true)));

// Whether no head leads in the shown text, and this place of it was chosen for that.
/** @type {(place: number | undefined) => boolean} */
export const isSurprise = (place) => {
  const { surprising } = automatic;
  return surprising?.run === page.run.run && surprising.place === place;
};

// Whether the chosen head is the one that the model opens on.
const isUsual = () => {
  const { kinds, opening } = page.run;
  const at = opening.site ? siteNamed("site", opening.site, page.run) : { ...kinds[0], layer: 0 };
  return sameHead(page.head, { ...at, head: Number(opening.head ?? 0) });
};
// Whether the head and token of the shown text are to be chosen: asked once for a text. What is switched off stays
// in sight.
const isFree = () => {
  const { model, text: prompt, example, interventions: altered } = page.run;
  const text = JSON.stringify([model, prompt]);
  const isNew = text !== automatic.text && !example && !altered.length && !page.forward;
  const free = isNew && !automatic.isLinked && cardState.place === null;
  Object.assign(automatic, { text, isLinked: isOpeningLink() });
  return free && page.query === null && (page.head === automatic.head || isUsual());
};

// Of a text that the network wrote, the place where one head leads, before anything is shown of it; of any other the
// head that adds most at its end: `named`, where it is known. Nothing is chosen if something was meanwhile.
const choose = async (named = /** @type {Head | null} */ (null)) => {
  const { run, stack, labels, n_prompt: start } = page.run;
  const { head } = page;
  const isWritten = stack === "decoder" && labels.length > start;
  shared.isChoosing = isWritten;
  try {
    /** @type {Telling} */
    const telling = isWritten ? await askOnce("telling", { run }) : {};
    const { position: index = null, head: leading = named, leads } = telling;
    if (page.run.run !== run || page.head !== head || page.query || page.forward) return;
    if (!leading) automatic.text = ""; // until the journey names one
    batch(() => {
      if (index !== null) setQuery({ stack, index });
      if (leading) setHead(leading);
      automatic.surprising = leads === false ? { run, place: index } : null;
    });
    automatic.head = page.head;
  } finally {
    if (page.run.run === run) shared.isChoosing = false;
  }
};
on("run", ({ stack, labels, n_prompt: start }) => {
  shared.isChoosing = false;
  const isWritten = stack === "decoder" && labels.length > start && predicts();
  if (isWritten && fields.tab === "journey" && isFree()) choose().catch(() => {});
});

// The same for a text that was written out of sight. answer: of the server, see journey.py; null before there is one.
/** @type {(answer: JourneyAnswer | null) => void} */
export const useLeadingHead = (answer) =>
  useLayoutEffect(() => {
    if (!answer || shared.isChoosing) return;
    const { named } = answer;
    if (isFree()) choose(named).catch(() => {});
    else if (named && sameHead(page.head, named)) automatic.head = page.head;
  }, [answer]);
