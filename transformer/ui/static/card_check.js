// What a lesson's card asks, and the answer: given on the page itself, graded on the visitor's own run.

import { ask } from "./ask.js";
import { el, nextPaint } from "./dom.js";
import { shownFields } from "./fields.js";
import { setSolved } from "./lesson_progress.js";
import { marked } from "./marked_text.js";
import { say } from "./messages.js";
import { siteName } from "./sites.js";
import { on, page, showProblem } from "./state.js";
import { cardPlace, cardShown, deckShown, goToAnswer, isSettled } from "./touring.js";

// What answers a card is read off the page, {field: value}; null: nothing is chosen yet.
/** @type {Record<string, () => any>} */
const ANSWERS = {
  head: () => page.head && { site: siteName(page.head), head: page.head.head },
  token: () =>
    page.query && {
      stack: page.query.stack === page.run.stack ? "own" : page.query.stack,
      token: page.query.index,
    },
  cell: () => {
    const { cell } = shownFields();
    return cell?.includes(",") ? { site: siteName(page.head), cell } : null;
  },
  run: () => ({}),
};

const pause = () => new Promise((done) => setTimeout(done, 50));

/** @type {(find: (selector: string) => any, server: Record<string, any>) => (card: any) => void} */
export const checkOfCard = (find, server) => {
  const [box, form, verdict, hints] = [
    ".card-check", ".card-form", ".card-verdict", ".card-hints",
  ].map(find); // prettier-ignore
  const [hint, solve] = [".card-hint", ".card-solve"].map(find);
  /** @type {string | null} */
  let seen = null; // the page's answer as it stood last; null: the page is not yet as it says
  let shown = ""; // the card whose check stands here

  const asked = () => ({
    name: deckShown().name,
    step: (cardPlace() ?? 0) + 1,
    run: page.run.run,
    batch: page.batch?.batch ?? null,
  });
  /** @type {(right: boolean | null, text: string) => void} */
  const tell = (right, text) => {
    verdict.hidden = text === "";
    verdict.classList.toggle("right", right === true);
    const word = right ? say("Right.") : say("Not yet.");
    verdict.replaceChildren(...(right === null ? [] : [el("strong", "", word), " "]), text);
    if (!right) return;
    setSolved(deckShown().name, (cardPlace() ?? 0) + 1);
    find(".card").classList.add("solved");
  };
  /** @type {(answer: Record<string, any>) => Promise<void>} */
  const grade = async (answer) => {
    const mine = shown;
    try {
      const found = await ask(server.grade, { ...asked(), answer });
      if (mine !== shown) return;
      tell(found.right, found.says);
      if (!found.right && "token" in answer) goToAnswer({}); // its shading is what is asked about
    } catch (error) {
      if (mine === shown) tell(null, error.message);
    }
  };

  // What the visitor does on the page is an answer, once the page stands as the card says.
  let waits = false;
  const follow = async () => {
    const read = ANSWERS[cardShown()?.check ?? ""];
    if (!read || waits) return;
    waits = true;
    const mine = shown;
    await nextPaint();
    while (mine === shown && !(isSettled() && page.run?.run)) await pause();
    waits = false;
    if (mine !== shown) return follow();
    const answer = read();
    const now = JSON.stringify([answer, page.run.run]);
    const changed = seen !== null && answer !== null && now !== seen;
    seen = now;
    return changed ? grade(answer) : undefined;
  };
  for (const name of ["pointerup", "keyup", "change"])
    document.addEventListener(name, follow, true);
  for (const name of ["run", "head", "query"]) on(name, follow);

  /** @type {(card: any) => void} */
  const drawForm = ({ check, options }) => {
    const field = (type, value, text) => {
      const label = el("label");
      const input = el("input");
      Object.assign(input, { type, name: "answer", value });
      if (type === "text") input.inputMode = "decimal";
      label.append(...(type === "text" ? [text, " ", input] : [input, " ", ...marked(text)]));
      return label;
    };
    form.hidden = !["number", "choose"].includes(check);
    const button = el("button", "", say("Check"));
    button.type = "submit";
    if (check === "number") form.replaceChildren(field("text", "", say("Your answer:")), button);
    else form.replaceChildren(...options.map((text, at) => field("radio", at, text)));
  };
  const given = () => {
    const text = new FormData(form).get("answer");
    if (text === null || text === "") return null;
    const number = Number(String(text).trim().replace(",", ".").replace("−", "-"));
    if (Number.isNaN(number)) {
      tell(null, say("Give a number, such as 0.25."));
      return null;
    }
    return cardShown()?.check === "choose" ? { option: number } : { number };
  };
  const answerForm = (event) => {
    event.preventDefault();
    const answer = given();
    if (answer) grade(answer);
  };
  form.addEventListener("submit", answerForm);
  form.addEventListener("change", (event) => event.target.type === "radio" && answerForm(event));

  const nextHint = () => {
    const texts = cardShown()?.hints ?? [];
    const at = hints.children.length;
    if (at < texts.length) {
      const item = el("li");
      item.append(...marked(texts[at]));
      hints.append(item);
    }
    drawHints();
  };
  const drawHints = () => {
    const texts = cardShown()?.hints ?? [];
    const at = hints.children.length;
    hint.hidden = at >= texts.length;
    hint.textContent = say("Hint {n} of {count}", { n: at + 1, count: texts.length + 1 });
    solve.hidden = at < texts.length;
  };
  hint.addEventListener("click", nextHint);
  solve.addEventListener("click", async () => {
    try {
      const { state, number, option } = await ask(server.solve, asked());
      if (state) return await goToAnswer(state);
      const value = number === undefined ? option : Math.round(number * 100) / 100;
      const input = form.querySelector(option === undefined ? "input" : `input[value="${option}"]`);
      if (option === undefined) input.value = String(value);
      else input.checked = true;
      return await grade(option === undefined ? { number: value } : { option });
    } catch (error) {
      return showProblem(error.message);
    }
  });

  return (card) => {
    const name = card ? `${deckShown().name}.${cardPlace()}` : "";
    if (name === shown) return;
    shown = name;
    seen = null;
    find(".card").classList.remove("solved");
    box.hidden = !card?.check;
    hints.replaceChildren();
    tell(null, "");
    if (!card?.check) return;
    find(".card-task").replaceChildren(...marked(card.task));
    drawForm(card);
    drawHints();
    follow();
  };
};
