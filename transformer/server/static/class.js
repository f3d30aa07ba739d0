// A class whose phones answer the shown step: the way there, the answers as they come, and its end.

import { ask, pause, storage } from "../../web/ask.js";
import { cardState, inOrder, isExplained, isGuessing, OF_CLASS } from "../../web/card.js";
import { numeral, say, sayWith } from "../../web/messages.js";
import { html, useLayoutEffect, useRef, useState } from "../../web/preact.js";
import { page, showProblem } from "../../web/store.js";
import { Marked, Token } from "../../web/text.js";
import { CodeWindow } from "./code.js";
import { pageAddress } from "./header.js";
import { isOpening } from "./link.js";

const STORAGE_KEY = "viz-class"; // in sessionStorage, {code, key}: after a reload the class goes on
const POLL_MS = 1000; // for the answers
const LOADING_MS = 50;
const CLASS_OVER = 404; // the status of an answer
const MAX_BARS = 8; // of numbers, tokens or heads

// ---- the answers ----

/**
 * @typedef {import("./types").Tally} Tally
 * @typedef {import("./types").HeldClass} HeldClass
 * @typedef {(error: import("./types").RequestError) => void} Fail
 */

// [answer, how often it was given] as they are shown: all options in their order, or else those that
// were given most.
/** @type {(tally: Tally) => [number, number][]} */
const rowsOf = ({ kind, look, options, counts, best }) => {
  const votes = new Map(counts);
  if (kind === "options" && look === "list") {
    return options.map(({ at }) => [at, votes.get(at) ?? 0]);
  }
  const most = [...votes].sort((a, b) => b[1] - a[1]).slice(0, MAX_BARS);
  if (best !== null && !most.some(([answer]) => answer === best)) most.push([best, 0]);
  return most.sort((a, b) => a[0] - b[0]);
};

/** @param {{ tally: Tally }} props */
const Bars = ({ tally }) => {
  const { kind, look, options, counts, right } = tally;
  const most = Math.max(1, ...counts.map(([, count]) => count));
  const text = (/** @type {number} */ answer) => {
    if (kind === "number") return numeral(String(Math.round(answer * 100) / 100));
    const option = options.find(({ at }) => at === answer)?.text ?? "";
    return look === "list"
      ? html`<${Marked} text=${option} />`
      : html`<${Token} label=${option} />`;
  };
  const bar = (
    /** @type {[number, number]} */ [answer, count],
  ) => html`<li key=${answer} class=${right?.includes(answer) ? "right" : ""}>
    <span class="class-option">${text(answer)}${right?.includes(answer) && " ✓"}</span>
    <span class="class-track" aria-hidden="true"><span style=${{ width: `${(100 * count) / most}%` }} /></span>
    <span class="class-votes">${String(count)}</span>
  </li>`;
  return html`<ul class="class-bars">${rowsOf(tally).map(bar)}</ul>`;
};

// The phones' texts, each with what the network went on with; the right ones first.
/** @param {{ texts: import("./types").ClassText[] }} props */
const Texts = ({ texts }) => {
  const ordered = [...texts].sort((a, b) => Number(b.right) - Number(a.right));
  const line = (
    /** @type {import("./types").ClassText} */ { text, said, right },
  ) => html`<li class=${right ? "right" : ""}>
    <bdi translate=${false}>${text}<b>${` ${said}`}</b></bdi>${right && " ✓"}</li>`;
  return html`<ul class="class-texts">${ordered.map(line)}</ul>`;
};

const NO_VOTES = page.votes;
// Show the votes at the tokens or heads of the picture, once the answer is shown: how often each was named.
/** @type {(tally: Tally | null) => void} */
const useVotes = (tally) => {
  const isMarked = tally?.over && tally.look !== "list";
  const mark = () => {
    if (!tally || !isMarked) return undefined;
    const { look, stack, options, counts, right } = tally;
    const votes = new Map(counts);
    const isRight = (/** @type {number} */ at) => Boolean(right?.includes(at));
    const signed = options
      .filter(({ at }) => votes.has(at) || isRight(at))
      .map(({ at, text }) => ({
        at,
        text,
        sign: `${votes.get(at) ?? 0}${isRight(at) ? " ✓" : ""}`,
      }));
    if (look === "tokens") {
      const tokens = Object.fromEntries(signed.map(({ at, sign }) => [at, sign]));
      page.votes = { ...NO_VOTES, stack: stack === "own" ? page.run.stack : stack, tokens };
    } else {
      const heads = signed.map(({ text, sign }) => {
        const [layer, head] = text.split("·").map(Number);
        return { layer, head, sign, label: sign };
      });
      page.votes = { ...NO_VOTES, heads };
    }
    return () => (page.votes = NO_VOTES);
  };
  useLayoutEffect(mark, [JSON.stringify([isMarked, tally?.counts, tally?.right])]);
};

// ---- requests to the server ----

// Say what the phones are to show: the step of a lesson in its phase, {} for none, once it is on the page.
/** @type {(held: HeldClass | null, step: import("./types").ShownStep, fail: Fail) => void} */
const useShown = (held, step, fail) => {
  const wanted = JSON.stringify([held?.code, step.name, step.step, step.phase]);
  const latest = useRef(wanted);
  latest.current = wanted;
  const sent = useRef(Promise.resolve()); // one after the other: the last one stays on the phones
  const show = async () => {
    const isShown = () => latest.current === wanted;
    // Loaded again, the page is without a card until its link has opened: the phones keep their step.
    const isMissing = () => (step.name ? !page.run?.run : cardState.linked > 0);
    while (isShown() && (isOpening() || isMissing())) await pause(LOADING_MS);
    if (!held || !isShown()) return;
    const shown = step.name ? { ...step, run: page.run.run } : {};
    await ask("show_step", { ...held, ...shown }).catch(fail);
  };
  useLayoutEffect(() => void (sent.current = sent.current.then(show)), [wanted]);
};

/** @type {(held: HeldClass | null, fail: Fail) => Tally | null} the answers to what is asked; null: not yet */
const useTally = (held, fail) => {
  const [tally, setTally] = useState(/** @type {Tally | null} */ (null));
  useLayoutEffect(() => {
    let isOn = Boolean(held);
    const follow = async () => {
      while (isOn) {
        if (held) await ask("class/tally", held).then(setTally, fail);
        await pause(POLL_MS);
      }
    };
    follow();
    return () => void (isOn = false);
  }, [held]);
  return tally;
};

// {code, key} of the class, null until it is open. left: what STORAGE_KEY held before a reload, else it is a new
// one. fail(error): there can be none.
/** @type {(left: string | null, fail: Fail) => HeldClass | null} */
const useHeld = (left, fail) => {
  const [held, setHeld] = useState(/** @type {HeldClass | null} */ (left && JSON.parse(left)));
  useLayoutEffect(() => {
    if (!held) ask("class/open", {}).then(setHeld, fail);
  }, []);
  useLayoutEffect(() => void (held && storage?.setItem(STORAGE_KEY, JSON.stringify(held))), [held]);
  return held;
};

/** @param {import("./types").ClassProps} props */
export const Class = ({ left, lesson, step, words, state, solve, bringPicture, end }) => {
  useLayoutEffect(() => {
    document.body.classList.add("teaching");
    return () => document.body.classList.remove("teaching");
  }, []);
  const [isCodeOpen, setCodeOpen] = useState(!left);
  /** @type {{ current: HTMLElement }} */
  const title = useRef(null);
  useLayoutEffect(() => void title.current.focus({ preventScroll: true }), []);
  const stop = () => {
    storage?.removeItem(STORAGE_KEY);
    end();
  };
  const fail = (/** @type {import("./types").RequestError} */ { message, status }) => {
    showProblem(message);
    if (!held || status === CLASS_OVER) stop();
  };
  const held = useHeld(left, fail);

  const guessing = words && isGuessing(words, state);
  const open = guessing ? "guess" : "task";
  const phase = words && isExplained(words, state) ? "shown" : open;
  const order = words && inOrder(`${lesson}.${step - 1}`, words, guessing ? "guesses" : "options");
  useShown(held, words ? { name: lesson, step, phase, order } : {}, fail);
  const tally = useTally(held, fail);
  // What a step asks about comes below the panel once the guess is over.
  const section = !guessing && words?.state?.more;
  useLayoutEffect(() => (section ? bringPicture(section) : undefined), [lesson, step, section]);

  const code = held?.code ?? "";
  const name = say("Class {code}", { code });
  const says = say("Point a phone's camera at the code, or open the address below.");
  const draw = async () => ({
    ...(await ask("code", { page: pageAddress(null), path: `class/${code}` })),
    says,
  });
  const answered = tally?.answered ?? 0;
  const all = tally?.phones ?? 0;
  const count = html`<p class="class-count">${say("Phones that have answered: {n} of {all}.", { n: answered, all })}</p>`;
  const asked = tally?.kind && tally.name.startsWith(`${lesson}.${step}.`) ? tally : null;
  useVotes(asked);
  const openPicture = () => state.set({ guess: OF_CLASS });
  const [areTextsShown, showTexts] = useState(false);
  useLayoutEffect(() => showTexts(false), [lesson, step]);
  const texts = asked?.texts ?? [];
  const hasTexts = asked?.kind === "text" && texts.length > 0;
  const nRight = texts.filter(({ right }) => right).length;
  const guessed = asked?.guessed;
  const finish = () => ask("class/end", { ...held }).then(stop, fail);
  /** @param {string} look @param {string} text @param {() => void} press */
  const button = (look, text, press) =>
    html`<button type="button" class=${`class-${look}`} onClick=${press}>${text}</button>`;
  return html`<section class="class-room" aria-label=${say("The class answers")}>
    <h3 tabindex="-1" ref=${title}>${name}</h3>
    ${
      asked
        ? html`${count}${asked.kind !== "text" && html`<${Bars} tally=${asked} />`}`
        : html`<p>${say("Everybody looks at the screen.")}</p>`
    }
    ${hasTexts && html`<p>${say("Right: {n} of {all}.", { n: nRight, all: texts.length })}</p>`}
    ${hasTexts && areTextsShown && html`<${Texts} texts=${texts} />`}
    ${guessed && guessed.all > 0 && html`<p class="class-guessed">${sayWith("{n} of {all} guessed it: {guess}", { n: String(guessed.right), all: String(guessed.all), guess: html`<${Marked} text=${guessed.text} />` })}</p>`}
    <div class="class-buttons">
      ${guessing && button("open", say("Open the picture"), openPicture)}
      ${phase === "task" && words && button("solve", say("Show me the answer"), solve)}
      ${hasTexts && !areTextsShown && button("texts", say("Show the texts"), () => showTexts(true))}
      ${button("code", say("QR code"), () => setCodeOpen(true))}
      ${button("end", say("End the class"), finish)}
    </div>
    ${
      held &&
      isCodeOpen &&
      html`<${CodeWindow} title=${name} draw=${draw} close=${() => setCodeOpen(false)}>${count}<//>`
    }
  </section>`;
};
