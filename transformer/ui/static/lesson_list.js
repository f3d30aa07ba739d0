// The list of lessons, where their card will stand: each with its minutes and what is solved of it.

import { ask } from "./ask.js";
import { el, finder } from "./dom.js";
import { isKept, keepSolved, solvedSteps } from "./lesson_progress.js";
import { say, sayN } from "./messages.js";
import { on, showProblem } from "../../web/store.js";
import { cardShown, goToLesson } from "./touring.js";

/** @type {(root: any, server: Record<string, any>) => void} */
export const mountLessons = (root, server) => {
  const find = finder(root);
  /** @type {any[] | null} */
  let lessons = null;

  const item = ({ name, title, about, minutes, checks }) => {
    const made = el("li");
    const button = el("button", "lesson", title);
    button.addEventListener("click", () => open(name));
    const done = solvedSteps(name);
    const parts = [sayN("{n} minute", "{n} minutes", minutes)];
    if (done) parts.push(say("{done} of {all} solved", { done, all: checks }));
    made.append(button, el("span", "lesson-facts", parts.join(" · ")), el("p", "", about));
    made.classList.toggle("solved", done >= checks);
    return made;
  };
  const draw = () => {
    find(".lessons").replaceChildren(...(lessons ?? []).map(item));
    find("input").checked = isKept();
  };
  const close = () => {
    root.hidden = true;
    document.body.classList.remove("choosing-lesson");
  };
  /** @type {(name: string) => Promise<void>} */
  const open = (name) => goToLesson(name).catch((error) => showProblem(error.message));
  on("lessons", async () => {
    if (!root.hidden) return close();
    try {
      lessons ??= (await ask(server.lessons, {})).lessons;
    } catch (error) {
      return showProblem(error.message);
    }
    draw();
    root.hidden = false;
    document.body.classList.add("choosing-lesson");
    return find("h2").focus({ preventScroll: true });
  });
  on("card", () => cardShown() && close());
  on("solved", draw);
  find("input").addEventListener("change", (event) => keepSolved(event.target.checked));
  find(".lessons-end").addEventListener("click", () => {
    close();
    /** @type {HTMLElement | null} */ (document.querySelector(".lessons-button"))?.focus();
  });
};
