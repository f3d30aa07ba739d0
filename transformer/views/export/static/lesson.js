// A lesson that needs no network: its steps with the runs that they are about, graded in the page.

import { cardForm } from "../../../ui/static/card_form.js";
import { el, finder } from "../../../ui/static/dom.js";
import { marked } from "../../../ui/static/marked_text.js";
import { say } from "../../../ui/static/messages.js";
import { on, page, setQuery } from "../../../web/store.js";
import { siteName } from "../../../ui/static/sites.js";
import { grade, rightAnswer } from "./grading.js";
import { startWith } from "./own_data.js";
import { drawAgainWhenNeeded, mountRun } from "./run_page.js";

// Of a tab of the page: what else is shown, and which pictures of the inside.
const SECTIONS = { attention: [], prediction: ["more"], masks: [], positions: ["more"] };
const INSIDE = { prediction: ["surprise", "lens"], positions: ["similarity"] };

const find = finder(document.body);
const [back, next] = [".card-back", ".card-next"].map(find);

/** @type {any} */
let lesson = null;
/** @type {any} */
let pictures = null; // once there is a run to show
let place = 0;
let opening = false; // while the step, not the visitor, chooses heads and tokens
let dark = false;
const step = () => lesson.steps[place];

const judge = (answer) => {
  const { right, says } = grade(step().check, answer);
  form.tell(right, says);
};
const answered = (kind, answer) => {
  if (!opening && step().check?.kind === kind) judge(answer);
};

// ---- what is clicked in the pictures ----

const followPictures = () => {
  on("head", (head) => answered("head", { site: siteName(head), head: head.head }));
  on("query", (token) => {
    const stack = token?.stack === page.run.stack ? "own" : token?.stack;
    if (token) answered("token", { stack, token: token.index });
  });
  on("pin", (cell) => {
    if (cell && cell.column !== null)
      answered("cell", { site: siteName(page.head), row: cell.row, key: cell.column });
  });
};

const tokenOf = ({ stack, index }) => ({ stack: stack === "own" ? page.run.stack : stack, index });

const showRun = () => {
  const { run, shows } = step();
  find("main").hidden = run === null;
  if (run === null) return;
  const data = lesson.runs[run];
  const begun = pictures !== null;
  pictures ??= mountRun(data);
  const shown = [shows.tab, ...SECTIONS[shows.tab]];
  for (const section of document.querySelectorAll("main > section")) {
    const inside = section.querySelector(`:is(${shown.map((id) => `#${id}`).join()})`);
    const isText = section.querySelector("#tokens") !== null;
    /** @type {any} */ (section).hidden = !(isText || inside || shown.includes(section.id));
  }
  pictures.show(data, shows);
  for (const one of document.querySelectorAll("#more > details")) {
    const wanted = (INSIDE[shows.tab] ?? []).includes(/** @type {any} */ (one).dataset.view);
    Object.assign(one, { hidden: !wanted, open: wanted });
  }
  if (begun) pictures.draw(dark);
  else
    drawAgainWhenNeeded((isDark) => {
      dark = isDark;
      pictures.draw(dark);
    });
  setQuery(shows.token && tokenOf(shows.token));
};

// ---- the card ----

// The answer as the page would show it; it is graded like any other.
const solved = () => {
  const { check, run, shows } = step();
  const answer = rightAnswer(check);
  const { site, head, row, key, stack, token } = answer;
  opening = true;
  if (check.kind === "head") pictures.show(lesson.runs[run], { ...shows, site, head });
  const pin = { row, column: key };
  if (check.kind === "cell") pictures.show(lesson.runs[run], { ...shows, site, pin });
  if (check.kind === "token") setQuery(tokenOf({ stack, index: token }));
  opening = false;
  form.show(answer);
  judge(answer);
};
// What is typed or chosen is an answer to the number or the choice that is asked.
const form = cardForm(find, (given) => answered(step().check.kind, given), solved);

const drawCard = () => {
  const { title, says, task, needs, check } = step();
  find(".card-count").textContent = say("{place} of {count}", {
    place: place + 1,
    count: lesson.steps.length,
  });
  find(".card-title").replaceChildren(...marked(title));
  const paragraphs = says.map((text) => {
    const p = el("p");
    p.append(...marked(text));
    return p;
  });
  find(".card-says").replaceChildren(...paragraphs);
  find(".card-look").hidden = !needs;
  find(".card-look").textContent = needs;
  find(".card-check").hidden = !task;
  find(".card-task").replaceChildren(...marked(task));
  form.draw(check?.kind ?? "", step());
  back.disabled = place === 0;
  next.hidden = place === lesson.steps.length - 1;
};

const goTo = (to) => {
  place = to;
  opening = true;
  drawCard();
  showRun();
  opening = false;
  window.scrollTo({ top: 0 });
};
const leaf = (by) => {
  goTo(place + by);
  find(".card-title").focus();
};

startWith((data) => {
  lesson = data;
  document.title = data.title;
  find("h1").textContent = data.title;
  find(".card").hidden = false;
  back.addEventListener("click", () => leaf(-1));
  next.addEventListener("click", () => leaf(1));
  followPictures();
  goTo(0);
});
