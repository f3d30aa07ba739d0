// The page of a class's phones: what is asked now, and what this phone answers.

import { ask, drawnName, lasting, pause } from "../../web/ask.js";
import { numberOf, numeral, say, sayWith } from "../../web/messages.js";
import { html, render, useLayoutEffect, useState } from "../../web/preact.js";
import { Marked, Token } from "../../web/text.js";

const STORAGE_KEY = "viz-phone"; // in localStorage, "CODE.SECRET": opened again, it is the same phone
const CLASS_OVER = 404; // the status of an answer
const MAX_TEXT = 300; // as in server/classroom/classes.py
const AGAIN_MS = 5000; // before a phone asks again that was refused, or could not wait for news
const HELD_MS = 1000; // an answer in less time was not waited for
const DEAD_MS = 40_000; // the server answers sooner: the phone slept, and its connection is lost

const place = /** @type {HTMLElement} */ (document.getElementById("phone"));
const code = place.dataset.code ?? "";

/** @type {() => string} */
const phoneOf = () => {
  const kept = lasting?.getItem(STORAGE_KEY) ?? "";
  if (kept.startsWith(`${code}.`)) return kept.slice(code.length + 1);
  const phone = drawnName();
  lasting?.setItem(STORAGE_KEY, `${code}.${phone}`);
  return phone;
};
const phone = phoneOf();
// What is shown as long as nothing is asked.
/** @type {import("./types").NothingAsked} */
const WAITING = {
  name: "",
  says: say("Look at the screen: the next question comes here by itself."),
};

// What is asked, once it is another than what was seen; null for a phone that slept meanwhile.
/**
 * @typedef {import("./types").PhonePoll} PhonePoll
 * @typedef {PhonePoll | import("./types").NothingAsked} Shown
 * @typedef {import("./types").SendAnswer} SendAnswer
 * @typedef {import("./types").SayProblem} SayProblem
 * @typedef {(text: string) => Promise<void>} TryText
 */
/** @type {(seen: number) => Promise<PhonePoll | null>} */
const nextAsked = async (seen) => {
  const waiting = new AbortController();
  const timer = setTimeout(() => waiting.abort(), DEAD_MS);
  const wake = () => document.visibilityState === "visible" && waiting.abort();
  document.addEventListener("visibilitychange", wake);
  try {
    return await ask("class/asked", { code, phone, seen }, waiting.signal);
  } catch (error) {
    if (waiting.signal.aborted) return null;
    throw error;
  } finally {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", wake);
  }
};

// Ask over and over what is asked, until the class is over.
/** @type {(take: (poll: Shown) => void, tell: SayProblem) => Promise<void>} */
const follow = async (take, tell) => {
  for (let seen = 0; ;) {
    const began = performance.now();
    try {
      const asked = await nextAsked(seen);
      if (!asked) {
        seen = 0; // answered at once
        continue;
      }
      tell("");
      take(asked);
      if (asked.rev === seen && performance.now() - began < HELD_MS) await pause(AGAIN_MS);
      seen = asked.rev;
    } catch (error) {
      if (error.status === CLASS_OVER) {
        lasting?.removeItem(STORAGE_KEY);
        tell("");
        return take({ name: "", says: error.message });
      }
      tell(error.message);
      await pause(AGAIN_MS);
    }
  }
};

/** @param {{ asked: PhonePoll, send: SendAnswer }} props */
const Options = ({ asked, send }) => {
  const { look, options, over, best, answer, right } = asked;
  const isRight = (/** @type {number} */ at) => over && (at === best || (right && at === answer));
  const one = (
    /** @type {import("./types").PollOption} */ { at, text },
  ) => html`<label key=${at} class=${isRight(at) ? "option right" : "option"}>
    <input type="radio" name="answer" value=${at} checked=${at === answer} onChange=${() => send(at)} />
    <span>${look === "list" ? html`<${Marked} text=${text} />` : html`<${Token} label=${text} />`}${isRight(at) && " ✓"}</span>
  </label>`;
  return html`<div class=${`options ${look}`}>${options.map(one)}</div>`;
};

/** @param {{ asked: PhonePoll, send: SendAnswer, tell: SayProblem }} props */
const NumberForm = ({ asked: { answer }, send, tell }) => {
  const [text, setText] = useState(answer === null ? "" : numeral(String(answer)));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const number = numberOf(text);
    if (Number.isNaN(number)) tell(say("Give a number, such as 0.25."));
    else send(number);
  };
  return html`<form class="number" novalidate onSubmit=${submit}>
    <input type="text" inputmode="decimal" autocomplete="off" aria-label=${say("Your answer:")}
      value=${text} onInput=${(/** @type {import("../../web/types").ChangeOf} */ { target }) => setText(target.value)} />
    <button type="submit">${say("Send")}</button>
  </form>`;
};

/** @param {{ asked: PhonePoll, tryText: TryText }} props */
const TextForm = ({ asked: { name, text, over }, tryText }) => {
  const [typed, setTyped] = useState(text);
  const [isBusy, setBusy] = useState(false);
  useLayoutEffect(() => setTyped(text), [name]);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    await tryText(typed);
    setBusy(false);
  };
  return html`<form class="text" novalidate onSubmit=${submit}>
    <textarea rows="5" maxlength=${MAX_TEXT} autocapitalize="off" autocomplete="off" spellcheck=${false}
      aria-label=${say("Your text:")} value=${typed} onInput=${(/** @type {import("../../web/types").ChangeOf} */ { target }) => setTyped(target.value)} />
    <button type="submit" disabled=${over || isBusy}>${say("Write on")}</button>
  </form>`;
};

// What is said of the answer.
/** @param {PhonePoll} asked */
const said = ({ kind, over, answer, right, best, says }) => {
  if (!kind && !over) return WAITING.says;
  if (kind === "text") {
    return says && html`<strong>${right ? say("Right.") : say("Not yet.")}</strong> ${says}`;
  }
  if (!over) return answer === null ? "" : say("Sent. You can still change it.");
  const answered =
    kind === "number" && say("The answer is {number}.", { number: numeral(String(best)) });
  const verdict = right !== null && (right ? say("Right.") : say("Not yet."));
  return html`${verdict && html`<strong>${verdict}</strong>${" "}`}${answered}`;
};

/** @param {{ asked: PhonePoll, send: SendAnswer, tell: SayProblem, tryText: TryText }} props */
const Question = ({ asked, send, tell, tryText }) => {
  const { name, title, question, kind, over, explains, guessed } = asked;
  return html`<h1><${Marked} text=${title} /></h1>
    <fieldset disabled=${over} key=${name}>
      <legend><${Marked} text=${question} /></legend>
      ${kind === "options" && html`<${Options} asked=${asked} send=${send} />`}
      ${kind === "number" && html`<${NumberForm} asked=${asked} send=${send} tell=${tell} />`}
      ${kind === "text" && html`<${TextForm} asked=${asked} tryText=${tryText} />`}
    </fieldset>
    <p class="says" role="status">${said(asked)}</p>
    ${guessed && guessed.right !== null && html`<p class="guessed">${guessed.right ? say("Your guess was right.") : sayWith("The right guess was: {guess}", { guess: html`<${Marked} text=${guessed.text} />` })}</p>`}
    ${explains.map((text) => html`<p><${Marked} text=${text} /></p>`)}`;
};

const Phone = () => {
  const [asked, setAsked] = useState(/** @type {Shown} */ (WAITING));
  const [problem, tell] = useState("");
  // The answer to a request may come after that to a later one: an older question is not shown again.
  /** @type {(next: Shown) => void} */
  const take = (next) => setAsked((shown) => (Number(next.rev) < Number(shown.rev) ? shown : next));
  useLayoutEffect(() => void follow(take, tell), []);
  const send = async (/** @type {number} */ answer) => {
    setAsked(/** @type {PhonePoll} */ ({ ...asked, answer }));
    try {
      take(await ask("class/answer", { code, phone, name: asked.name, answer }));
      tell("");
    } catch ({ message }) {
      tell(message);
    }
  };
  const tryText = async (/** @type {string} */ text) => {
    try {
      take(await ask("class_text", { code, phone, name: asked.name, text }));
      tell("");
    } catch ({ message }) {
      tell(message);
    }
  };
  return html`<p class="code">${say("Class {code}", { code })}</p>
    ${
      asked.name
        ? html`<${Question} asked=${asked} send=${send} tell=${tell} tryText=${tryText} />`
        : html`<p role="status">${asked.says ?? WAITING.says}</p>`
    }
    <p class="problem" role="alert" hidden=${!problem}>${problem}</p>
    <p class="privacy">${say("Nobody is named here, and nothing is kept once the class is over.")}</p>`;
};
render(html`<${Phone} />`, place);
