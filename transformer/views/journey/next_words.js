// The likeliest next tokens, as beginnings of words. A number is the network's probability, as everywhere on the
// page; a bar's width is the sampling probability. Below each is the same without the hovered head, else the
// chosen one.

import {
  shell,
  chosenRow,
  controls,
  headShown,
  on,
  page,
  predicts,
  reactive,
} from "../../web/store.js";
import { ask, askOnce } from "../../web/ask.js";
import { cardState } from "../../web/card.js";
import {
  branchAt,
  pastRuns,
  generates,
  headWords,
  interventions,
  isAblated,
  isForwardOff,
} from "../../web/runs.js";
import { capital, percentText, say } from "../../web/messages.js";
import { useFilling } from "../../web/controls.js";
import { mounted, openSection, useAnswer, usePart } from "../../web/part.js";
import { effect, html, useLayoutEffect, useMemo, useRef, useState } from "../../web/preact.js";
import { siteName } from "../../web/sites.js";
import { beginning, readFrom, Token } from "../../web/text.js";
import { weightsOfToken } from "../attention/numbers.js";
import { countInWords, distribution, draws, probabilitiesOf, settingsNow } from "./distribution.js";

const MAX_BARS = 5;

// ---- what the journey shows, too ----

/**
 * @typedef {import("../../web/store.js").Head} Head
 * @typedef {import("../../web/part.js").Part} Part
 * @typedef {import("./types").Prediction} Prediction
 * @typedef {import("./types").NextToken} NextToken
 * @typedef {import("./types").Preview} Preview
 */

// preview: the hovered head; the bars are also shown without it, else without the chosen one. isLarge: whether
// the chosen head is also shown large. isChoosing: whether the token and head of a new text are being chosen: until
// then nothing is asked about it. asksWords: whether the card is about words, not a head; word: the one that is left out. showsPassages: whether it is
// also shown where else the chosen head does what it is named for.
export const shared = reactive({
  preview: /** @type {Head | null} */ (null),
  isLarge: false,
  isChoosing: false,
  asksWords: false,
  showsPassages: false,
  word: /** @type {{ places: number[], word: string } | null} */ (null),
});
const letGo = () => (shared.preview = null);
on("run", ({ model }) => {
  if (model !== page.before?.run.model) shared.isLarge = false; // the picture of another network's heads comes first
  letGo();
});
on("escape", letGo);
effect(() => {
  if (cardState.place !== null) letGo();
});

/** @type {(data: { run: string }) => Promise<import("./types").Without>} */
export const withoutHead = (data) => askOnce("without_head", data);
// What is asked of the chosen feed-forward, about the word of an answer of the journey.
/** @type {(answer: import("./types").JourneyAnswer) => import("./types").ForwardAsked} */
export const forwardAsked = ({ position, target }) => ({
  ...{ run: page.run.run, position, target },
  ...page.forward,
});
/** @type {(of: { layer: number }) => string} */
export const forwardName = ({ layer }) => say("the feed-forward of layer {layer}", { layer });

// The server's answer about the last token read, {answer, asked, current} as of useAnswer; none of another network.
/** @type {(part: Part) => { answer: import("./types").JourneyAnswer | null, asked: import("./types").JourneyAsked | null, current: import("./types").JourneyAnswer | null }} */
export const useJourney = (part) => {
  const model = useRef("");
  const isChosen = page.run && chosenRow(page.run.stack) !== null;
  const position = isChosen && { position: page.query.index }; // else the server's default
  const wanted = predicts() && !shared.isChoosing && { run: page.run.run, ...position };
  const state = useAnswer(part, (data) => askOnce("journey", data), wanted);
  if (state.asked && state.asked.run === page.run?.run) model.current = page.run.model;
  return model.current === page.run?.model ? state : { answer: null, asked: null, current: null };
};

// ---- without a head ----

// The prediction without the hovered head, or else without the word that is left out, the chosen feed-forward or the
// chosen head: {of, logits, likeliest}, or {of, refusal}; null for what is switched off. answer: of the journey. One
// request at a time, the next for what is hovered then.
/** @type {(part: Part, answer: import("./types").JourneyAnswer | null) => Preview | null} */
const usePreview = (part, answer) => {
  const word = shared.preview ? null : shared.word;
  const forward = shared.preview || word ? null : page.forward;
  const head = word || forward ? null : (shared.preview ?? headShown());
  const [preview, setPreview] = useState(/** @type {Preview | null} */ (null));
  const isAsked = useRef(false);
  const isOff = head ? isAblated(head) : forward && isForwardOff(forward);
  const left = word ? { places: word.places } : head && { site: siteName(head), head: head.head };
  const wanted =
    page.run &&
    answer &&
    !isOff &&
    (forward
      ? forwardAsked(answer)
      : left && { run: page.run.run, position: answer.position, ...left });
  const key = JSON.stringify(wanted || null);
  const isDue = Boolean(wanted) && preview?.key !== key;
  useLayoutEffect(() => {
    part.setPending(usePreview, isDue);
    if (!isDue || isAsked.current) return;
    const of = word ?? forward ?? head;
    const take = (/** @type {Partial<Preview>} */ outcome) => {
      isAsked.current = false;
      setPreview(of && { of, key, ...outcome });
    };
    isAsked.current = true;
    const question = word ? "without_words" : forward ? "feed_forward" : "without_head";
    const answered = askOnce(question, /** @type {{ run: string }} */ (wanted));
    answered.then(take, ({ message }) => take({ refusal: message }));
  }, [key, preview]);
  return wanted && !isDue ? preview : null;
};

// What the bars are without, in words.
/** @type {(of: Preview["of"]) => string} */
const leftOut = (of) => ("word" in of ? of.word : "kind" in of ? headWords(of) : forwardName(of));
// The same as data-without.
/** @type {(of: Preview["of"]) => string} */
const leftOutPlace = (of) => {
  if ("word" in of) return of.word;
  return "kind" in of ? `${siteName(of)}.${of.head}` : `forward.${of.layer}`;
};
/** @param {{ preview: Preview | null }} props */
const Legend = ({
  preview,
}) => html`<p class="bars-legend"><span><i class="drawn" />${say("the network")}</span>
  ${preview && html`<span><i class="without" />${preview.refusal ?? say("without {head}", { head: leftOut(preview.of) })}</span>`}</p>`;

// ---- the bars ----

// `count` tokens: the likeliest, the text's next token, and the likeliest without the head, which is second.
/** @type {(answer: Pick<Prediction, "position" | "likeliest" | "next">, count: number, without?: { likeliest: NextToken[] } | null) => import("./types").ShownToken[]} */
export const tokensShown = ({ position, likeliest, next }, count, without = null) => {
  const { ids, labels } = page.run;
  const hasNext = page.run.stack === "decoder" && position + 1 < ids.length;
  const came = hasNext && next ? [{ ...next, label: labels[position + 1] }] : [];
  const extra = [...came, ...(without?.likeliest.slice(0, 1) ?? [])];
  const first = likeliest.slice(0, count);
  const more = extra.filter(
    ({ id }, at) => ![...first, ...extra.slice(0, at)].some((token) => token.id === id),
  );
  const shown = [...first.slice(0, count - more.length), ...more];
  const place = shown.findIndex(({ id }) => id === without?.likeliest[0].id);
  if (place > 1) shown.splice(1, 0, ...shown.splice(place, 1));
  return shown.map((token) => ({
    ...token,
    isNext: came.length > 0 && token.id === ids[position + 1],
  }));
};

// A token and its probability in words, and what a press on it does.
/** @type {(token: string, probability: string, of: { isNext: boolean, canBranch: boolean }) => string} */
export const tokenInWords = (token, probability, { isNext, canBranch }) => {
  const values = { token, probability };
  if (isNext) return say("{token}, {probability}: the text goes on with it", values);
  return canBranch
    ? say("{token}, {probability}: go on with it instead", values)
    : say("{token}, {probability}", values);
};

// answer: which it is of. own, drawn: its probability by the network and with the settings; without: by the network
// without the head.
/** @param {{ token: import("./types").ShownToken, answer: Prediction, without: import("./types").TokenShares | null, step: number, isCurrent: boolean } & import("./types").TokenShares} props */
const Bar = ({ token, answer, own, drawn, without, step, isCurrent }) => {
  const { id, isNext } = token;
  const word = beginning(token, answer.position, answer.labels && answer);
  /** @type {(network: number, sampled: number) => string} */
  const inWords = (network, sampled) => {
    const [first, second] = [network, sampled].map((p) => percentText(p));
    return first === second ? first : `${first} → ${second}`;
  };
  const network = inWords(own, drawn);
  const other = without && inWords(without.own, without.drawn);
  const canBranch = step >= 0 && generates() && !isNext;
  const probability = [network, other].filter(Boolean).join(" / ");
  const title = tokenInWords(word, probability, { isNext, canBranch });
  const wide = (/** @type {number} */ share) => ({ width: `${(100 * share).toFixed(2)}%` });
  return html`<li><button type="button" class="next-word" aria-label=${title} title=${title} data-id=${id}
    disabled=${!canBranch} onClick=${() => isCurrent && branchAt(step, id)}>
    <${Token} label=${word} /><span class="bars">
      <i class="drawn" style=${wide(drawn)} />
      ${without && html`<i class="without" style=${wide(without.drawn)} />`}
      ${drawn !== own && html`<i class="own" style=${{ left: wide(own).width }} />`}
    </span><span class="value">${network}${isNext && " ✓"}${other && html`<em>${other}</em>`}</span>
  </button></li>`;
};

// What follows the text that is being typed, where this browser has the network; null while none is typed.
/** @type {(part: Part) => { answer: import("./types").TypedAnswer, asked: { text: string } } | null} */
const useTyped = (part) => {
  const { text, model } = controls;
  const isTyped = page.typing && page.run?.model === model && page.run.text !== text;
  const isWanted = isTyped && predicts() && page.inBrowser.includes(model);
  const wanted = isWanted && { model, text, interventions: interventions() };
  const state = useAnswer(part, (data) => ask("typed", data).catch(() => null), wanted);
  const { answer, asked } = state;
  return wanted && answer && asked && asked.model === model ? { answer, asked } : null;
};

// The bars and their text, the only parts drawn again as a control moves.
/** @param {{ answer: Prediction, preview: Preview | null, isCurrent: boolean }} props */
const Drawn = ({ answer, preview, isCurrent }) => {
  const settings = settingsNow();
  const all = Object.values(settings);
  const drawn = useMemo(
    () => distribution(answer.logits, settings, answer.never),
    [answer, ...all],
  );
  const own = useMemo(() => probabilitiesOf(answer.logits), [answer]);
  const without = useMemo(
    () =>
      preview?.logits && {
        own: probabilitiesOf(preview.logits),
        drawn: distribution(preview.logits, settings, answer.never).probabilities,
      },
    [preview, ...all],
  );
  const other = preview?.likeliest ? { likeliest: preview.likeliest } : null;
  const step = answer.labels ? -1 : answer.position + 1 - page.run.n_prompt;
  const bar = (/** @type {import("./types").ShownToken} */ token) => html`<${Bar} key=${token.id}
    token=${token} answer=${answer} step=${step} isCurrent=${isCurrent}
    own=${own[token.id]} drawn=${drawn.probabilities[token.id]}
    without=${without && { own: without.own[token.id], drawn: without.drawn[token.id] }} />`;
  return html`<ul ref=${useFilling(answer.position, 500)}>
      ${tokensShown(answer, MAX_BARS, other).map(bar)}
    </ul>
    <${Legend} preview=${preview} />
    <p class="drawn-says">${answer.labels && `${say("Shown for your text, as you type it.")} `}${countInWords(settings, drawn.count, answer)}${
      draws(settings) &&
      ` ${say("Tick and first number: before the settings; bar and second: after.")}`
    }</p>`;
};

const NextWords = () => {
  const part = usePart();
  useMemo(() => readFrom(weightsOfToken(() => false)), []); // until Attention is mounted
  const journey = useJourney(part);
  const { asked } = journey;
  const typed = useTyped(part);
  const { answer } = typed ?? journey;
  const isCurrent = !typed && asked?.run === page.run?.run; // the position is one of the shown run's
  const preview = usePreview(part, isCurrent ? journey.answer : null);
  const place = answer && { place: answer.position, stack: page.run.stack };
  const facts = typed
    ? { ...place, typed: typed.asked.text }
    : answer && { run: asked?.run, ...place };
  const { of } = preview ?? {};
  const site = of && leftOutPlace(of);
  return html`<section class="next-words" aria-label=${capital(say("what comes next"))}
    hidden=${Boolean(page.run) && !predicts()}
    ...${part.attributes({ ...facts, without: site ?? undefined })}>
    <div class="next-head">
      <h2>${page.run?.stack === "encoder" ? say("What stands here?") : say("What comes next?")}</h2>
      ${
        page.run &&
        pastRuns.length > 1 &&
        html`<button type="button" class="to-tab" onClick=${() => openSection("compare", "what-if")}>${say("Compare with another run")}</button>`
      }
      <button type="button" class="to-tab" onClick=${() => shell.openTab("prediction")}>${say("Prediction")}</button>
    </div>
    ${answer ? html`<${Drawn} answer=${answer} preview=${preview} isCurrent=${isCurrent} />` : html`<ul />`}
  </section>`;
};
export const mount = mounted(NextWords);
