// What if?: a card for the chosen head and for each idea of the architecture, with what the text becomes
// without it, or what fills the gap. Where the network writes, pressing a card switches it off, or on again.

import { ask } from "../../web/ask.js";
import {
  alter,
  generates,
  headWords,
  interventions,
  isAblated,
  withAblation,
} from "../../web/runs.js";
import { asSentence, capital, numeral, percentText, say, sayWith } from "../../web/messages.js";
import { mounted, useAnswer, usePart, trying } from "../../web/part.js";
import { html, useLayoutEffect, useRef, useState } from "../../web/preact.js";
import { readPosition, tokenAt } from "../../web/selection.js";
import { siteName } from "../../web/sites.js";
import { headShown, page } from "../../web/store.js";
import { headLabel, useMetrics } from "../attention/numbers.js";
import { continued } from "../../web/text.js";

const MAX_CHARACTERS = 60; // characters of a text, three lines of a card

/** @type {(what: string) => boolean} */
const isOff = (what) => interventions().some((one) => one.type === "break" && one.what === what);
/** @type {(what: string) => void} */
const flip = (what) => {
  const others = interventions().filter((one) => one.type !== "break" || one.what !== what);
  alter(isOff(what) ? others : [...others, { type: "break", what }]);
};

// What each card leaves out: {key, asks, ...}; asks: of the server. The intact network is first.
/** @type {(rows: import("./types").BreakRow[]) => import("./types").Case[]} */
const casesOf = (rows) => {
  const head = headShown();
  const does = head && headLabel(head);
  /** @type {(import("./types").Case | null | false)[]} */
  const cases = [
    { key: "", asks: {}, says: say("As it is"), why: say("The network as it was trained.") },
    head && {
      key: `${siteName(head)}.${head.head}`,
      asks: { site: siteName(head), head: head.head },
      says: capital(say("without {head}", { head: headWords(head) })),
      why: [
        does && asSentence(capital(does)),
        say("The chosen head. Choose another in any picture of the heads."),
      ]
        .filter(Boolean)
        .join(" "),
      ofHead: true,
      isOff: isAblated(head),
      press: generates() && (() => alter(withAblation(head))),
    },
    ...rows.map(({ what, says, why, loss }) => ({
      key: what,
      asks: { what },
      says: capital(says),
      why,
      loss,
      isOff: isOff(what),
      press: generates() && (() => flip(what)),
    })),
  ];
  return cases.filter((each) => each !== null && each !== false);
};

/** @typedef {Map<string, import("./types").Outcome>} Texts by case */
// The texts that the prompt becomes, by case, asked for one after the other while the cards are seen.
/** @type {(part: import("../../web/part.js").Part, of: string, cases: import("./types").Case[]) => Texts} */
const useTexts = (part, of, cases) => {
  const [state, set] = useState({ of: "", texts: /** @type {Texts} */ (new Map()) });
  const latest = useRef(of);
  latest.current = of;
  const texts = state.of === of ? state.texts : /** @type {Texts} */ (new Map());
  const next = part.seen ? cases.find(({ key }) => !texts.has(key)) : undefined;
  useLayoutEffect(() => {
    if (!next) return;
    const take = (/** @type {import("./types").Outcome} */ text) =>
      latest.current === of && set({ of, texts: new Map([...texts, [next.key, text]]) });
    const position = generates() ? {} : { position: readPosition() };
    const share = (/** @type {number | undefined} */ probability) =>
      probability === undefined ? "" : ` ${percentText(probability)}`;
    ask("broken_text", { run: page.run.run, ...position, ...next.asks }).then(
      ({ labels, probability }) =>
        take(continued(labels, page.run.n_prompt - 1) + share(probability)),
      ({ message }) => take({ problem: message }),
    );
  }, [of, next?.key]);
  return texts;
};

/** @type {(text: string) => string} */
const shortened = (text) => {
  const signs = Array.from(text);
  if (signs.length <= MAX_CHARACTERS) return text;
  const cut = signs.slice(0, MAX_CHARACTERS).join("");
  return `${cut.replace(/ [^ ]*$/u, "")} …`; // at a word's end
};
/** @param {{ text: import("./types").Outcome | undefined, whole: import("./types").Outcome | undefined, isWhole: boolean }} props */
const Becomes = ({ text, whole, isWhole }) => {
  if (text === undefined) return html`<p class="becomes waiting">…</p>`;
  if (typeof text !== "string") return html`<p class="becomes problem">${text.problem}</p>`;
  if (!isWhole && text === whole)
    return html`<p class="becomes same">${asSentence(say("the same text"))}</p>`;
  return html`<p class="becomes"><bdi translate=${false}>${shortened(text)}</bdi></p>`;
};
// The bar ends at the loss of a uniform prediction.
/** @param {{ loss: number, intact: number, even: number }} props */
const Cost = ({ loss, intact, even }) => {
  const more = loss - intact;
  const share = Math.max(0, more / (even - intact));
  return html`<p class=${`cost ${share > 1 ? "beyond" : ""}`}>
    <i style=${{ width: `${100 * Math.min(1, share)}%` }}></i>
    <span>${say("{nats} nats a token", { nats: `${more < 0 ? "−" : "+"}${numeral(Math.abs(more).toFixed(3))}` })}</span>
  </p>`;
};

/** @param {{ of: import("./types").Case, text?: import("./types").Outcome, whole?: import("./types").Outcome, costs: import("./types").Costs }} props */
const Card = ({ of, text, whole, costs }) => {
  const { key, says, why, loss, ofHead, press } = of;
  const isMeasured = loss !== undefined && loss !== null && costs.intact !== null;
  const title = press
    ? html`<button type="button" class="what-switch" aria-pressed=${String(of.isOff)} onClick=${press}>${says}</button>`
    : html`<b>${says}</b>`;
  return html`<li class=${`what-card ${ofHead ? "of-head" : ""}`} data-what=${key}>
    <h3>${title}</h3>
    <${Becomes} text=${text} whole=${whole} isWhole=${key === "" || !press} />
    ${isMeasured && html`<${Cost} loss=${loss} intact=${costs.intact} even=${costs.even} />`}
    <p class="hint">${why}</p>
  </li>`;
};

/** @type {(costs: import("./types").Costs) => string} */
const measureInWords = ({ about, n_texts: count, even }) =>
  say(
    "The loss is the mean over a sample of {count} texts. {about} A full bar " +
      "means that the network finds all tokens equally likely ({even} nats); a bar " +
      "with a double end is worse than that.",
    { count, about: say(about ?? ""), even: numeral(even.toFixed(2)) },
  );

/** @typedef {{ model?: string, measuring?: boolean, costs?: import("./types").Costs }} Measurement of a model */
// The cost of each switch: the server's rows, without losses until they have been measured. isMine: whether by
// this visitor's press.
/** @type {(part: import("../../web/part.js").Part) => { costs: import("./types").Costs | null, measure: () => void, measuring: boolean, isMine: boolean }} */
const useCosts = (part) => {
  const { model } = page.run ?? {};
  const [measurement, setMeasurement] = useState(/** @type {Measurement} */ ({}));
  const listed = useAnswer(part, "broken", model && { model });
  const mine = measurement.model === model ? measurement : {};
  const costs = mine.costs ?? (listed.asked?.model === model ? listed.answer : null);
  const measure = trying(async () => {
    setMeasurement({ model, measuring: true });
    try {
      setMeasurement({ model, costs: await ask("broken", { model, measure: true }) });
    } catch (error) {
      setMeasurement({});
      throw error;
    }
  });
  return { costs, measure, measuring: mine.measuring ?? false, isMine: "model" in mine };
};

const Breaks = () => {
  const part = usePart();
  useMetrics(part); // by which the chosen head has its label
  const { costs, measure, measuring, isMine } = useCosts(part);
  const { run, model, text } = page.run ?? {};
  const cases = costs ? casesOf(costs.rows) : [];
  const gap = run && !generates() ? readPosition() : null;
  const texts = useTexts(part, JSON.stringify([model, text, gap]), cases);
  const isMeasured = costs && costs.intact !== null;
  const facts = { run, measured: Boolean(isMeasured), texts: texts.size };
  const card = (/** @type {import("./types").Case} */ each) =>
    html`<${Card} key=${each.key} of=${each} text=${texts.get(each.key)} whole=${texts.get("")} costs=${costs} />`;
  return html`<section class="breaks whatif" ...${part.attributes(facts)}>
    <p>${
      gap === null
        ? [
            html`<span class="panel-help">${say("What the network would write after your prompt with one thing missing, always the likeliest token.")}</span> `,
            say("Press a card to switch that off, or on again; only your text is affected."),
          ]
        : sayWith(
            "What the network would guess in place of {token} with one thing missing: its likeliest token. Choose another token of the text, or another head.",
            tokenAt(gap),
          )
    }</p>
    <ul class=${gap === null ? "what-cards" : "what-cards guesses"}>${cases.map(card)}</ul>
    ${
      costs?.about &&
      html`<div class="whatif-buttons">
        <button type="button" class="measure" hidden=${isMeasured && !isMine} disabled=${isMine} onClick=${measure}>${say("Measure what each costs")}</button>
        <span class="hint" role="status">${measuring ? say("Measuring each in turn …") : isMeasured && measureInWords(costs)}</span>
      </div>`
    }
  </section>`;
};
export const mount = mounted(Breaks);
