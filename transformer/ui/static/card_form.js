// The form of a card that asks something, with its hints and its verdict: on the page, and in a
// lesson's file that needs no server.

import { el } from "./dom.js";
import { marked } from "./marked_text.js";
import { say } from "./messages.js";

const ASKED = ["number", "choose"]; // kinds of checks that the form answers

/** @type {(type: string, value: string | number, text: string) => HTMLLabelElement} */
const field = (type, value, text) => {
  const label = el("label");
  const input = el("input");
  Object.assign(input, { type, name: "answer", value });
  if (type === "text") input.inputMode = "decimal";
  label.append(...(type === "text" ? [text, " ", input] : [input, " ", ...marked(text)]));
  return label;
};

// answer({number} or {option}): what the visitor says; solve(): the visitor wants to see it.
/** @type {(find: (selector: string) => any, answer: (given: any) => void, solve: () => void) => any} */
export const cardForm = (find, answer, solve) => {
  const [form, verdict, hints] = [".card-form", ".card-verdict", ".card-hints"].map(find);
  const [hint, solved] = [".card-hint", ".card-solve"].map(find);
  let kind = ""; // of the shown card's check
  /** @type {string[]} */
  let texts = []; // its hints

  /** @type {(right: boolean | null, says: string) => void} */
  const tell = (right, says) => {
    verdict.hidden = says === "";
    verdict.classList.toggle("right", right === true);
    const word = right ? say("Right.") : say("Not yet.");
    verdict.replaceChildren(...(right === null ? [] : [el("strong", "", word), " "]), says);
    if (right) find(".card").classList.add("solved");
  };
  const drawHints = () => {
    const at = hints.children.length;
    hint.hidden = !kind || at >= texts.length;
    hint.textContent = say("Hint {n} of {count}", { n: at + 1, count: texts.length + 1 });
    solved.hidden = !kind || at < texts.length;
  };
  hint.addEventListener("click", () => {
    const item = el("li");
    item.append(...marked(texts[hints.children.length]));
    hints.append(item);
    drawHints();
  });
  solved.addEventListener("click", solve);

  const send = (event) => {
    event.preventDefault();
    const text = new FormData(form).get("answer");
    if (text === null || text === "") return;
    const number = Number(String(text).trim().replace(",", ".").replace("−", "-"));
    if (Number.isNaN(number)) tell(null, say("Give a number, such as 0.25."));
    else answer(kind === "choose" ? { option: number } : { number });
  };
  form.addEventListener("submit", send);
  form.addEventListener("change", (event) => event.target.type === "radio" && send(event));

  /** @type {(check: string, card: { options?: string[], hints?: string[] }) => void} */
  const draw = (check, card) => {
    [kind, texts] = [check, card.hints ?? []];
    find(".card").classList.remove("solved");
    hints.replaceChildren();
    tell(null, "");
    form.hidden = !ASKED.includes(kind);
    const button = el("button", "", say("Check"));
    button.type = "submit";
    if (kind === "number") form.replaceChildren(field("text", "", say("Your answer:")), button);
    else form.replaceChildren(...(card.options ?? []).map((text, at) => field("radio", at, text)));
    drawHints();
  };
  // The answer as the visitor would have given it.
  const show = ({ number, option }) => {
    if (number !== undefined) form.querySelector("input").value = String(number);
    if (option !== undefined) form.querySelector(`input[value="${option}"]`).checked = true;
  };
  return { draw, show, tell };
};
