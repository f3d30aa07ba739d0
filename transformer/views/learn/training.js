// The training that Learn shows: what is planned, how far it is, and which of its steps is looked at.

import { ask, storage, takeLeft } from "../../web/ask.js";
import { isStill } from "../../web/controls.js";
import { bindField, fields, followLinks } from "../../web/fields.js";
import { fieldsOf } from "../../web/declared.js";
import { useLayoutEffect, useMemo, useRef, useState } from "../../web/preact.js";
import { trying } from "../../web/part.js";
import { reactive, showProblem } from "../../web/store.js";
import { cardState } from "../../web/card.js";

export const RECORDED = "recorded-"; // see server/learn/learning.py
const STEP_FIELD = "learn.at"; // the field of the step that is looked at
const STORAGE_KEY = "viz-training"; // in sessionStorage: the visitor's training, for a reload
const [SOON_MS, SLOWLY_MS, OUT_OF_SIGHT_MS] = [400, 1500, 5000];

/**
 * @typedef {import("./types").Training} Training
 * @typedef {import("./types").ShownTraining} ShownTraining
 * @typedef {import("../../web/part.js").Part} Part
 */

/**
 * @param {Training | null} facts
 * @returns {facts is Training}
 */
export const isLive = (facts) =>
  facts !== null && ["waiting", "running", "paused"].includes(facts.state);

// ---- what is to be trained, and what is shown ----

// The shown step of a lesson, "" for none.
const stepShown = () => {
  const { deck, place } = cardState;
  return deck.name && place !== null ? `${deck.name}.${place}` : "";
};

// declared: the fields, by name, with plan(), their values. shown: the shown training: its id, a step of it (at,
// null for the last one), its question (null for the default), and whether a link set the fields, which otherwise
// follow a recorded training.
export const useTraining = () =>
  useMemo(() => {
    /** @type {import("./types").Field[]} */
    const declared = Object.entries(fieldsOf("learn")).filter(([field]) => field !== STEP_FIELD);
    const [[task, { default: first }]] = declared;
    let before = first;
    const linked = fields[STEP_FIELD]; // by a link, before this view was on the page
    /** @type {ShownTraining} */
    const shown = reactive({ id: "", at: linked, question: null, given: false });
    bindField(
      STEP_FIELD,
      () => shown.at,
      (step) => (shown.at = step),
    );
    /** @type {(id: string, more?: Partial<ShownTraining>) => void} */
    const show = (id, more = {}) => {
      Object.assign(shown, { id, at: null, question: null, given: false, ...more });
      if (!id.startsWith(RECORDED)) storage?.setItem(STORAGE_KEY, id);
    };
    const showRecorded = () => show(RECORDED + (before = fields[task]));
    let step = stepShown();
    // A link's plan for a training of the visitor's own opens the section for it; another step of a lesson speaks of
    // the recorded one.
    followLinks("learn", () => {
      const { at } = shown;
      const isNext = step !== (step = stepShown()) && step !== "";
      if (fields[task] !== before || isNext)
        show(RECORDED + (before = fields[task]), { given: true, at });
      shown.given = declared.some(
        ([field, one]) => field !== task && fields[field] !== one.default,
      );
    });
    if (!shown.id) show(RECORDED + before, { at: linked, given: shown.given });
    const own = takeLeft(STORAGE_KEY);
    const showOwn = async () => {
      const { plan: planned } = await ask("learned", { id: own });
      take(planned);
      before = fields[task];
      show(String(own), { given: true });
    };
    if (own) trying(showOwn)();
    const follow = (/** @type {string} */ name) => name === task && showRecorded();
    const plan = () => Object.fromEntries(declared.map(([name, one]) => [one.name, fields[name]]));
    const take = (/** @type {import("../../web/types").PlainValues} */ values) =>
      declared.forEach(([name, one]) => (fields[name] = values[one.name]));
    return { declared, plan, take, shown, show, showRecorded, follow };
  }, []);

// Request all of a training again, by again(), while it goes on.
/** @type {(part: Part, facts: Training | null, again: () => void) => void} */
export const useProgress = (part, facts, again) => {
  const [looks, setLooks] = useState(0);
  const { seen } = part;
  const look = () => {
    if (seen) return again();
    const asked = ask("learned", { id: facts?.id }); // a training that nobody asks for is ended
    return asked.then(
      () => setLooks(looks + 1),
      ({ message }) => showProblem(message),
    );
  };
  useLayoutEffect(() => {
    if (!isLive(facts)) return undefined;
    const pause = facts.state === "paused" || facts.before ? SLOWLY_MS : SOON_MS;
    const timer = setTimeout(look, seen ? pause : OUT_OF_SIGHT_MS);
    return () => clearTimeout(timer);
  }, [facts, looks, seen]);
};

// ---- its steps as a film ----

const MAX_FRAMES = 24; // of a recorded training, at most
const FRAME_MS = 130;

// Play a recorded training: {isPlaying, play, stop}. It plays by itself as it is first seen, unless the visitor
// wants no motion, is in a lesson, or has come by a link to it.
/** @type {(part: Part, facts: Training | null, shown: ShownTraining) => import("./types").Playing} */
export const usePlaying = (part, facts, shown) => {
  const [isPlaying, setPlaying] = useState(false);
  const isNew = useRef(true);
  const { kept = /** @type {number[]} */ ([]), at } = facts ?? {};
  const play = () => {
    shown.at = kept[0];
    setPlaying(true);
  };
  useLayoutEffect(() => {
    if (!isNew.current || !facts || !part.seen) return;
    isNew.current = false;
    const isFree = cardState.place === null && !shown.given && shown.at === null && !isStill();
    if (isFree && shown.id.startsWith(RECORDED)) play();
  }, [facts, part.seen]);
  useLayoutEffect(() => {
    if (!isPlaying || at === undefined || !kept.includes(at) || shown.at !== at) return undefined;
    const next = kept[kept.indexOf(at) + Math.ceil(kept.length / MAX_FRAMES)];
    if (next === undefined) {
      shown.at = null;
      return setPlaying(false);
    }
    const timer = setTimeout(() => (shown.at = next), FRAME_MS);
    return () => clearTimeout(timer);
  }, [isPlaying, at]);
  return { isPlaying, play, stop: () => setPlaying(false) };
};
