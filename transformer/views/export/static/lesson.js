// A lesson that needs no network: its steps, the runs that they are about, and Python's verdicts.

import { numeral, say } from "../../../web/messages.js";
import { siteName } from "../../../web/sites.js";
import { Card, CHOSEN, useAnswers, useFollowed } from "../../../web/card.js";
import { useEvent } from "../../../web/part.js";
import { html, render, useLayoutEffect, useRef, useState } from "../../../web/preact.js";
import { page, setQuery, setRun } from "../../../web/store.js";
import { Marked } from "../../../web/text.js";
import { startWith, RunPage } from "./run_page.js";

// Of a tab of the page: what else is shown, and which pictures of the inside.
const SECTIONS = { attention: [], prediction: ["more"], masks: [], positions: ["more"] };
const INSIDE = { prediction: ["surprisal", "lens"], positions: ["similarity"] };

const ROUNDING = 1e-9;

// The verdict on an answer, {right, says}, as Python gave it beforehand; see ui/lessons.py.
const grade = (check, answer) => {
  if (check.kind === "number") {
    const right = Math.abs(answer.number - check.value) <= check.tolerance + ROUNDING;
    const got = numeral(String(answer.number)).replace("-", "−");
    return { right, says: right ? check.says : say("It is not {got}.", { got }) };
  }
  const [right, says] = check.verdicts[Object.values(answer).join(" ")] ?? check.elsewhere;
  return { right, says: check.says[says] ?? says };
};

const tokenOf = ({ stack, index }) => ({ stack: stack === "own" ? page.run.stack : stack, index });

const showRun = ({ steps, runs }, place) => {
  const facts = runs[steps[place].run]?.run;
  if (facts && facts !== page.run) setRun(facts);
};

const Lesson = ({ lesson }) => {
  const [place, setPlace] = useState(0);
  const [answer, setAnswer] = useState(/** @type {any} */ (null)); // that the visitor wanted to see
  const pin = useRef(/** @type {any} */ (null));
  useEvent("pin", (cell) => (pin.current = cell));
  const step = lesson.steps[place];
  const { check, run, shows } = step;
  const last = useRef(0); // the run that is shown, or was
  last.current = run ?? last.current;
  const data = page.run && lesson.runs[last.current];
  const state = useAnswers(String(place));

  const judge = (given) => {
    const { right, says } = grade(check, given);
    state.tell(right, says);
  };
  const read = {
    ...CHOSEN,
    cell: () => {
      const { row, column = null } = pin.current ?? {};
      return column === null ? null : { site: siteName(page.head), row, key: column };
    },
  };
  useFollowed(String(place), read[check?.kind], judge);

  // The answer as the page would show it; it is graded like any other.
  const solve = () => {
    const found = check.answer;
    if (check.kind === "token") setQuery(tokenOf({ stack: found.stack, index: found.token }));
    else if (["head", "cell"].includes(check.kind)) setAnswer(found);
    else state.give(found);
    judge(found);
  };
  const leaf = (by) => {
    const to = place + by;
    if (to < 0 || to >= lesson.steps.length) return;
    setAnswer(null);
    setPlace(to);
    showRun(lesson, to); // before the pictures of it
  };
  useLayoutEffect(() => {
    pin.current = null;
    window.scrollTo({ top: 0 });
    if (shows) setQuery(shows.token && tokenOf(shows.token));
  }, [place]);

  const { site, head, row, key } = answer ?? {};
  const at = useRef(/** @type {any} */ (null));
  const wanted = shows && {
    ...shows,
    ...(answer && {
      site,
      head: head ?? shows.head,
      pin: key === undefined ? null : { row, column: key },
    }),
  };
  if (JSON.stringify(wanted) !== JSON.stringify(at.current)) at.current = wanted;
  const { tab } = at.current ?? {};
  return html`<div class="lesson-page">
    <header>
      <h1><${Marked} text=${lesson.title} /></h1>
      <${Card} words=${{ ...step, look: step.needs }} deck=${lesson.title} count=${lesson.steps.length}
        kind=${check?.kind ?? ""} answer=${judge} ...${{ place, state, solve, leaf }} />
    </header>
    ${
      data &&
      html`<${RunPage} data=${data} hidden=${run === null} at=${at.current} inside=${INSIDE[tab] ?? []}
        shown=${tab ? [tab, ...SECTIONS[tab]] : []} />`
    }
  </div>`;
};

startWith((lesson, place) => {
  document.title = lesson.title;
  lesson.runs.forEach(({ run }, at) => (run.run = String(at)));
  showRun(lesson, 0);
  render(html`<${Lesson} lesson=${lesson} />`, place);
});
