// The shown card of the tour or of a lesson, in place of the controls above the text, and what answers
// it: done on the page itself, graded on the visitor's own run; and the list of lessons.

import { mounted, trying, useAnswer, useDocument, usePart, whileSettling } from "../../web/part.js";
import { loadLater } from "../../web/scripts.js";
import { html, useLayoutEffect, useRef, useState } from "../../web/preact.js";
import { nextPaint, page, reactive, setQuery } from "../../web/store.js";
import { say, sayN } from "../../web/messages.js";
import { letPressedGo } from "../../web/pointer.js";
import { goToLesson, cardShown, endTour, goToAnswer, goToCard, opener } from "./tour.js";
import {
  Card,
  cardState,
  isExplained,
  isGuessing,
  useAnswers,
  useFollowed,
} from "../../web/card.js";
import { ask, askedIn, hasServer, LANGUAGE, lasting, takeLeft } from "../../web/ask.js";
import { declared } from "../../web/declared.js";
import { focusText } from "./gradio.js";
import { isOpening } from "./link.js";

/** @import { FunctionComponent } from "preact" */
/** @import { ClassProps } from "./types" */

const KEY = "solved-lessons";

/** @type {() => Set<string> | null} null where nothing is kept, or can be */
const kept = () => {
  try {
    const names = JSON.parse(lasting?.getItem(KEY) ?? "null");
    return Array.isArray(names) ? new Set(names.filter((name) => typeof name === "string")) : null;
  } catch {
    return null;
  }
};
// solved: "LESSON.STEP"; isKept: whether this browser remembers them.
const progress = reactive({ solved: kept() ?? new Set(), isKept: kept() !== null });
/** @type {(isKept: boolean) => void} */
const keep = (isKept) => {
  progress.isKept = isKept && lasting !== null;
  if (isKept) lasting?.setItem(KEY, JSON.stringify([...progress.solved]));
  else lasting?.removeItem(KEY);
};
/** @type {(lesson: string, step: number) => void} */
const setSolved = (lesson, step) => {
  progress.solved = new Set([...progress.solved, `${lesson}.${step}`]);
  keep(progress.isKept);
};
/** @type {(lesson: string) => number} */
const solvedSteps = (lesson) =>
  [...progress.solved].filter((name) => name.slice(0, name.lastIndexOf(".")) === lesson).length;

/** @param {import("./types").LessonEntry} props */
const Lesson = ({ name, title, about, minutes, checks }) => {
  const done = solvedSteps(name);
  const facts = [sayN("{n} minute", "{n} minutes", minutes)];
  if (done) facts.push(say("{done} of {all} solved", { done, all: checks }));
  const forTeacher = say("For the teacher");
  const guide = `lessons/${encodeURIComponent(name)}/teacher${askedIn("", LANGUAGE)}`;
  const teacher = html`<a href=${guide} target="_blank"
    aria-label=${say("{title}: {part}", { title, part: forTeacher })}>${forTeacher}</a>`;
  const open = trying(() => goToLesson(name));
  return html`<li class=${checks && done >= checks ? "solved" : ""}>
    <button type="button" class="lesson" onClick=${open}>${title}</button>
    <span class="lesson-facts">${facts.join(" · ")}${hasServer() && [" · ", teacher]}</span>
    <p>${about}</p>
  </li>`;
};

// close(): it was put away by its own button.
/** @param {{ close: () => void }} props */
const LessonList = ({ close }) => {
  const part = usePart();
  /** @type {{ current: HTMLElement }} */
  const title = useRef(null);
  const isOpen = cardState.isChoosing;
  const { answer } = useAnswer(part, "lessons", isOpen && {});
  useLayoutEffect(() => {
    document.body.classList.toggle("choosing-lesson", isOpen);
    if (!isOpen) return;
    title.current.focus({ preventScroll: true });
    letPressedGo(); // projected, the list is above its button, and begins in sight
    title.current.scrollIntoView({ block: "nearest" });
  }, [isOpen]);
  return html`<section class="lesson-list" aria-label=${say("Lessons")} hidden=${!isOpen} ...${part.attributes({})}>
    <h2 tabindex="-1" ref=${title}>${say("Lessons")}</h2>
    <p>${say("Each asks you something, and your own run of the network decides.")}</p>
    <ol class="lessons">${(answer?.lessons ?? []).map((/** @type {import("./types").LessonEntry} */ entry) => html`<${Lesson} ...${entry} />`)}</ol>
    <label class="lessons-keep"><input type="checkbox" checked=${progress.isKept}
      onChange=${(/** @type {import("../../web/types").ChangeOf} */ { target }) => keep(target.checked)} /> ${say("Remember in this browser what I solved")}</label>
    <button type="button" class="lessons-end" onClick=${close}>${say("Close")}</button>
  </section>`;
};

// ---- a presenter's keys ----

// Projected, they leaf through the cards. A remote control sends PageUp and PageDown; arrow keys do the
// same where no control has the focus.
/** @type {Record<string, number>} */
const REMOTE = { PageDown: 1, PageUp: -1 };
/** @type {Record<string, number>} */
const ARROWS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const TYPED = "input, textarea, select, [contenteditable]";
/** @type {(focused: Element | null) => boolean} */
const isControl = (focused) =>
  focused !== null && focused !== document.body && !focused.matches(".card-title, dialog");
// How many cards a key moves, 0 for any other key.
/** @type {(event: KeyboardEvent) => number} */
const leafing = ({ key, ctrlKey, altKey, metaKey, shiftKey, defaultPrevented }) => {
  const focused = document.activeElement;
  if (!page.projector || cardState.place === null || defaultPrevented) return 0;
  if (ctrlKey || altKey || metaKey || shiftKey || focused?.matches(TYPED)) return 0;
  return REMOTE[key] ?? (isControl(focused) ? 0 : (ARROWS[key] ?? 0));
};

// ---- the card ----

const { lessons } = declared;

// Scroll to the picture in an open section, also while it is drawn; gives what stops that.
/** @type {(section: string) => () => void} */
const bringPicture = (section) => {
  const picture = () => document.querySelector(`[data-section="${section}"] [data-picture]`);
  return whileSettling(() => picture()?.scrollIntoView({ block: "start" }));
};

const Guide = () => {
  const { deck, place } = cardState;
  const card = cardShown();
  const name = card ? `${deck.name}.${place}` : "";
  const latest = useRef(name);
  latest.current = name;
  const latestAnswer = useRef(/** @type {object | null} */ (null));
  const state = useAnswers(name);

  const asked = () => ({
    name: deck.name,
    step: (place ?? 0) + 1,
    run: page.run.run,
  });
  const grade = async (/** @type {object} */ answer) => {
    latestAnswer.current = answer;
    const isLast = () => latest.current === name && latestAnswer.current === answer;
    try {
      const { right, says } = await ask("grade", { ...asked(), answer });
      if (!isLast()) return;
      state.tell(right, says);
      if (right) setSolved(deck.name, (place ?? 0) + 1);
      else if ("token" in answer) goToAnswer({}); // its shading is what is asked about
    } catch ({ message }) {
      if (isLast()) state.tell(null, message);
    }
  };
  const solve = trying(async () => {
    try {
      const { state: shown, trains, number = NaN, option } = await ask("solve", asked());
      if (latest.current !== name) return;
      if (shown) goToAnswer(shown);
      if (trains) {
        await nextPaint();
        /** @type {HTMLElement} */ (document.querySelector(".learn .train")).click();
      }
      if (shown) return;
      const answer = option === undefined ? { number: Math.round(number * 100) / 100 } : { option };
      state.give(answer);
      await grade(answer);
    } catch (error) {
      if (latest.current === name) throw error;
    }
  });
  const followed = card && !isGuessing(card, state) ? (card.check ?? "") : "";
  useFollowed(name, followed, grade, () => !isOpening() && Boolean(page.run?.run));
  // Where the visitor writes a text, the question is what follows it, not what the network has added.
  const asksNext = Boolean(card?.types) && card?.check !== "token";
  useLayoutEffect(() => {
    const { stack, stacks = [], n_prompt: length = 0 } = (asksNext && page.run) || {};
    if (stack === "decoder" && stacks.length === 1 && !page.query) {
      setQuery({ stack, index: length - 1 });
    }
  }, [asksNext, asksNext && page.run, asksNext && page.query]);
  // The pictures stay closed until a guess, the sentences that answer it until it is answered.
  const closed = {
    guessing: card !== null && isGuessing(card, state),
    asking: card !== null && Boolean(card.check) && !isExplained(card, state),
  };
  useLayoutEffect(() => {
    for (const [look, is] of Object.entries(closed)) document.body.classList.toggle(look, is);
  }, [closed.guessing, closed.asking]);

  const leaf = (/** @type {number} */ by) => {
    const to = (cardState.place ?? 0) + by;
    if (to >= 0 && to < cardState.deck.cards.length) goToCard(to);
  };
  useDocument(card ? ["keydown"] : [], (event) => {
    const by = leafing(event);
    if (!by) return;
    event.preventDefault(); // else the page would scroll
    leaf(by);
  });
  // The focus comes from the button that began the tour, and goes back there; a list of lessons keeps it.
  const giveBack = () => {
    if (cardState.isChoosing) return;
    opener.current?.focus();
    opener.current = null;
  };
  useLayoutEffect(() => (card ? giveBack : undefined), [Boolean(card)]);
  // In one column it sticks to the window's top: there from the first card on, so that all have their buttons at one
  // place.
  const isTour = card !== null && deck.name === "";
  useLayoutEffect(() => {
    if (!isTour || !document.body.matches(".stacked:not(.projector)")) return;
    letPressedGo();
    const { top } = /** @type {Element} */ (
      document.querySelector("#tour-card")
    ).getBoundingClientRect();
    if (top > 0) window.scrollBy({ top, behavior: "instant" });
  }, [isTour, place]);
  // A lesson's step begins at its first line, whatever was scrolled to in the step before.
  useLayoutEffect(() => {
    if (!card || isTour) return;
    for (const around of ["#left", "#tour-card"])
      document.querySelector(around)?.scrollTo({ top: 0 });
  }, [name]);
  const close = () => {
    cardState.isChoosing = false;
    giveBack();
  };
  const following = deck.name && lessons[lessons.indexOf(deck.name) + 1];
  const chooseLesson = () => {
    endTour();
    cardState.isChoosing = true;
  };
  const onward = following
    ? { words: say("Next lesson ›"), go: () => goToLesson(following) }
    : lessons.length && { words: say("Lessons ›"), go: chooseLesson };
  const [taught, setTaught] = useState(
    /** @type {{ Class: FunctionComponent<ClassProps>, left: string | null } | null} */ (null),
  ); // of class.js
  const teach = (/** @type {string | null} */ left) =>
    loadLater("server/static/class.js", ({ Class }) => setTaught({ Class, left }));
  useLayoutEffect(() => {
    const left = takeLeft("viz-class");
    if (left) teach(left);
  }, []);
  // The focus of a class that is over goes to the button that opens one.
  const teacher = useRef(/** @type {HTMLElement | null} */ (null));
  const isTaught = Boolean(taught);
  useLayoutEffect(() => (isTaught ? () => teacher.current?.focus() : undefined), [isTaught]);
  const count = deck.cards.length;
  const shown = () => html`<${Card} words=${card} deck=${deck.name} key="card"
    over=${deck.name ? `${deck.title} · ` : ""} kind=${card?.check ?? ""} answer=${grade} end=${endTour}
    focus=${opener.current !== null} write=${card?.types && card.state.more && focusText} teach=${deck.name && !taught && (() => teach(null))}
    ...${{ place, count, state, solve, leaf, onward, teacher }} />`;
  const step = { lesson: deck.name, step: (place ?? 0) + 1, words: deck.name ? card : null };
  const classShown =
    () => html`<${taught?.Class} left=${taught?.left} ...${{ ...step, state, solve, bringPicture }}
    end=${() => setTaught(null)} />`;
  return html`<div class=${taught ? "taught" : ""}>${card && shown()}${taught && classShown()}<${LessonList} close=${close} /></div>`;
};
export const mount = mounted(Guide);
