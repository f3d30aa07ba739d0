// What breaks: a switch for each idea of the architecture, its cost, and the visitor's text without it.

import { ask } from "../../web/ask.js";
import { alter, experiment, interventions } from "../../ui/static/interventions.js";
import { numeral, say } from "../../web/messages.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html, useRef, useState } from "../../web/preact.js";
import { page, showProblem } from "../../web/store.js";
import { Token } from "../../web/text.js";

const isOff = (what) => interventions().some((one) => one.type === "break" && one.what === what);
const flip = (what) => {
  const others = interventions().filter((one) => one.type !== "break" || one.what !== what);
  alter(isOff(what) ? others : [...others, { type: "break", what }]);
};

// The bar ends at the loss of a uniform prediction.
const Cost = ({ loss, intact, even }) => {
  if (loss === null || intact === null) return html`<td class="cost">–</td>`;
  const more = loss - intact;
  const share = Math.max(0, more / (even - intact));
  return html`<td class=${`cost number ${share > 1 ? "beyond" : ""}`}>
    ${`${more < 0 ? "−" : "+"}${numeral(Math.abs(more).toFixed(3))}`}
    <i style=${{ width: `${100 * Math.min(1, share)}%` }}></i>
  </td>`;
};
const GoesOn = ({ tokens }) => {
  if (!tokens) return html`<td class="goes-on">–</td>`;
  const words = tokens.map((label) => html`<${Token} label=${label} />`);
  return html`<td class="goes-on">${words.length ? words : say("(nothing)")}</td>`;
};
// what: null for the intact network. tokens: the continuation without it.
const Line = ({ what, says, why, loss, found, tokens }) => {
  const press = html`<button type="button" class="break-switch" aria-pressed=${String(isOff(what))}
    onClick=${() => flip(what)}>${says}</button>`;
  return html`<tr data-what=${what ?? ""}>
    <th scope="row">${what === null ? says : press}</th>
    <td class="why">${why}</td>
    <td class="number">${loss === null ? "–" : numeral(loss.toFixed(3))}</td>
    <${Cost} loss=${what === null ? null : loss} ...${found} />
    <${GoesOn} tokens=${tokens} />
  </tr>`;
};

const aboutInWords = ({ about, n_texts: count, even }) =>
  about === null
    ? say("This model has no sample of text to measure a loss on.")
    : say(
        "The loss is the mean over a sample of {count} texts. {about} A full bar " +
          "means that the network finds all tokens equally likely ({even} nats); a bar " +
          "with a double end is worse than that.",
        { count, about: say(about), even: numeral(even.toFixed(2)) },
      );

// Continuations of the prompt without each switch, {of, texts}, computed in turn; of: model and prompt.
// Another prompt cancels it. `says` is the progress.
const useTexts = (of) => {
  const latest = useRef(of);
  latest.current = of;
  const [state, set] = useState(/** @type {any} */ ({}));
  const now = state.of === of ? state : { of, texts: new Map(), says: "", asking: false };
  const askAll = async (switches) => {
    const texts = new Map(now.texts);
    const tell = (says, asking) => latest.current === of && set({ of, texts, says, asking });
    try {
      for (const [place, what] of switches.entries()) {
        tell(say("Text {place} of {count} …", { place: place + 1, count: switches.length }), true);
        const { labels } = await ask("broken_text", { run: page.run.run, what });
        if (latest.current !== of) return;
        texts.set(what, labels);
      }
      tell(say("Each one alone, at most 24 tokens."), false);
    } catch (error) {
      tell("", false);
      showProblem(error.message);
    }
  };
  return { ...now, askAll };
};

// The cost of each switch: the server's rows, without losses until they have been measured.
const useCosts = (part) => {
  const { model, run } = page.run ?? {};
  const [measured, setMeasured] = useState(/** @type {any} */ ({}));
  const known = useAnswer(part, "broken", model && { model });
  const mine = measured.model === model ? measured : {};
  const found = mine.found ?? (known.asked?.model === model ? known.answer : null);
  const measure = async () => {
    setMeasured({ model, measuring: true });
    try {
      setMeasured({ model, found: await ask("broken", { model, measure: true }) });
    } catch (error) {
      setMeasured({});
      showProblem(error.message);
    }
  };
  return { found, measure, measuring: mine.measuring ?? false, run };
};

const Breaks = () => {
  const part = usePart();
  const { found, measure, measuring, run } = useCosts(part);
  const of = JSON.stringify([page.run?.model, page.run?.text]);
  const { texts, says, asking, askAll } = useTexts(of);
  const { rows = [], intact = null, about = null } = found ?? {};
  const whole = {
    what: null,
    says: say("nothing: intact"),
    why: say("The network as it was trained."),
    loss: intact,
  };
  const lines = found && [whole, ...rows];
  const line = (one) =>
    html`<${Line} key=${one.what} ...${one} found=${found} tokens=${texts.get(one.what)} />`;
  const facts = { run, measured: intact !== null, texts: texts.size };
  const names = [
    say("Without"),
    say("Why it matters"),
    say("Loss, nats per token"),
    say("More than intact"),
    say("How your text goes on, greedily"),
  ];
  return html`<section class="breaks whatif" ...${part.attributes(facts)}>
    <p>${say("Each switch takes one idea out of the whole network, which was trained with it. See what that costs, and what becomes of the text. Several can be off at once; only your text is affected.")}</p>
    <p class="breaks-about">${found && aboutInWords(found)}</p>
    <div class="whatif-buttons">
      <button type="button" class="measure" hidden=${about === null || intact !== null}
        disabled=${measuring} onClick=${measure}>${say("Measure what each costs")}</button>
      <button type="button" class="texts" disabled=${asking || !found}
        onClick=${() => askAll(lines.map(({ what }) => what))}>${say("Run my text through each")}</button>
      <span class="breaks-says" role="status">${measuring ? say("Measuring each in turn …") : says}</span>
    </div>
    <div class="wide" tabindex="0" role="region" aria-label=${say("What breaks?")}>
      <table class="breaks-table">
        <thead><tr>${names.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
        <tbody>${lines && lines.map(line)}</tbody>
      </table>
    </div>
  </section>`;
};
export const mount = mounted(...experiment(Breaks));
