// The list of lessons, where their card will stand: each with its minutes and what is solved of it, of
// this visit, and on request in this browser alone.

import { useAnswer, usePart } from "../../web/part.js";
import { html, useLayoutEffect, useRef } from "../../web/preact.js";
import { reactive, showProblem } from "../../web/store.js";
import { say, sayN } from "./messages.js";
import { goToLesson, touring } from "./touring.js";

const KEY = "solved-lessons";

/** @type {() => Set<string> | null} null where nothing is kept, or can be */
const kept = () => {
  try {
    const found = JSON.parse(window.localStorage.getItem(KEY) ?? "null"); // not to be had in some frames
    return Array.isArray(found) ? new Set(found.filter((one) => typeof one === "string")) : null;
  } catch {
    return null;
  }
};
// solved: "LESSON.STEP"; isKept: whether this browser remembers them.
const progress = reactive({ solved: kept() ?? new Set(), isKept: kept() !== null });
/** @type {(isKept: boolean) => void} */
const keep = (isKept) => {
  progress.isKept = isKept;
  try {
    if (isKept) window.localStorage.setItem(KEY, JSON.stringify([...progress.solved]));
    else window.localStorage.removeItem(KEY);
  } catch {
    progress.isKept = false; // the browser keeps nothing here
  }
};
/** @type {(lesson: string, step: number) => void} */
export const setSolved = (lesson, step) => {
  progress.solved = new Set([...progress.solved, `${lesson}.${step}`]);
  keep(progress.isKept);
};
/** @type {(lesson: string) => number} */
const solvedSteps = (lesson) =>
  [...progress.solved].filter((one) => one.slice(0, one.lastIndexOf(".")) === lesson).length;

const Lesson = ({ name, title, about, minutes, checks }) => {
  const done = solvedSteps(name);
  const facts = [sayN("{n} minute", "{n} minutes", minutes)];
  if (done) facts.push(say("{done} of {all} solved", { done, all: checks }));
  const open = () => goToLesson(name).catch(({ message }) => showProblem(message));
  return html`<li class=${done >= checks ? "solved" : ""}>
    <button type="button" class="lesson" onClick=${open}>${title}</button>
    <span class="lesson-facts">${facts.join(" · ")}</span><p>${about}</p>
  </li>`;
};

// close(): it was put away by its own button.
export const LessonList = ({ server, close }) => {
  const part = usePart();
  const title = useRef(/** @type {any} */ (null));
  const isOpen = touring.isChoosing;
  const { answer } = useAnswer(part, server.lessons, isOpen && {});
  useLayoutEffect(() => {
    document.body.classList.toggle("choosing-lesson", isOpen);
    if (isOpen) title.current.focus({ preventScroll: true });
  }, [isOpen]);
  return html`<section class="lesson-list" aria-label=${say("Lessons")} hidden=${!isOpen} ...${part.shows({})}>
    <h2 tabindex="-1" ref=${title}>${say("Lessons")}</h2>
    <p>${say("Each asks you something, and your own run of the network decides.")}</p>
    <ol class="lessons">${(answer?.lessons ?? []).map((one) => html`<${Lesson} ...${one} />`)}</ol>
    <label class="lessons-keep"><input type="checkbox" checked=${progress.isKept}
      onChange=${({ target }) => keep(target.checked)} /> ${say("Remember in this browser what I solved")}</label>
    <button type="button" class="lessons-end" onClick=${close}>${say("Close")}</button>
  </section>`;
};
