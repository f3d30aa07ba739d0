// The text shaded by what one of its tokens reads, and the sentence that says it.

import { page, sameToken } from "../../web/store.js";
import { readingInWords, readingOf, weightAt } from "./reading.js";

const FEW = 1.5; // a weight's share of the shade is its root: 0.05 is seen as well as 0.5

// element: of the text; buttons(stack): its tokens; say(nodes): shows a sentence, none where there is
// nothing to say. Returns show(token): the shades of what it reads; null: those of the probabilities.
export const textShade = (element, buttons, say) => {
  let ticket = 0;
  /** @type {any} */
  let shown = null;

  const clear = () => {
    shown = null;
    element.classList.remove("reading");
    delete element.dataset.reads;
    for (const one of element.querySelectorAll(".asks")) one.classList.remove("asks");
    say([]);
  };

  const paint = (token, reading) => {
    for (const stack of page.run.stacks) {
      buttons(stack).forEach((button, place) => {
        const weight = reading.stack === stack ? weightAt(reading, place) : 0;
        button.style.setProperty("--read", Math.pow(weight, 1 / FEW).toFixed(3));
        button.classList.toggle("asks", token.stack === stack && place === token.index);
      });
    }
    element.classList.add("reading");
    element.dataset.reads = `${token.stack}.${token.index}`;
    say(readingInWords(token, reading));
  };

  const show = async (token, anew = false) => {
    if (!token || !page.run) {
      ticket += 1;
      return clear();
    }
    if (!anew && sameToken(shown, token)) return undefined;
    shown = token;
    const mine = ++ticket;
    const reading = await readingOf(token);
    if (mine !== ticket) return undefined;
    return reading ? paint(token, reading) : clear();
  };
  return show;
};
