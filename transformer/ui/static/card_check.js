// What a lesson's card asks, and the answer: given on the page itself, graded on the visitor's own run.

import { ask } from "./ask.js";
import { cardForm } from "./card_form.js";
import { nextPaint } from "./dom.js";
import { shownFields } from "./fields.js";
import { setSolved } from "./lesson_progress.js";
import { marked } from "./marked_text.js";
import { siteName } from "./sites.js";
import { on, page, showProblem } from "../../web/store.js";
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
  const box = find(".card-check");
  /** @type {string | null} */
  let seen = null; // the page's answer as it stood last; null: the page is not yet as it says
  let shown = ""; // the card whose check stands here

  const asked = () => ({
    name: deckShown().name,
    step: (cardPlace() ?? 0) + 1,
    run: page.run.run,
    batch: page.batch?.batch ?? null,
  });
  /** @type {(answer: Record<string, any>) => Promise<void>} */
  const grade = async (answer) => {
    const mine = shown;
    try {
      const found = await ask(server.grade, { ...asked(), answer });
      if (mine !== shown) return;
      form.tell(found.right, found.says);
      if (found.right) setSolved(deckShown().name, (cardPlace() ?? 0) + 1);
      if (!found.right && "token" in answer) goToAnswer({}); // its shading is what is asked about
    } catch (error) {
      if (mine === shown) form.tell(null, error.message);
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

  const solve = async () => {
    try {
      const { state, number, option } = await ask(server.solve, asked());
      if (state) return await goToAnswer(state);
      const answer = option === undefined ? { number: Math.round(number * 100) / 100 } : { option };
      form.show(answer);
      return await grade(answer);
    } catch (error) {
      return showProblem(error.message);
    }
  };
  const form = cardForm(find, grade, solve);

  return (card) => {
    const name = card ? `${deckShown().name}.${cardPlace()}` : "";
    if (name === shown) return;
    shown = name;
    seen = null;
    box.hidden = !card?.check;
    form.draw(card?.check ?? "", card ?? {});
    if (!card?.check) return;
    find(".card-task").replaceChildren(...marked(card.task));
    follow();
  };
};
