// The likeliest next tokens. A number is the network's probability, as everywhere on the page; a bar's width
// is the sampling probability, and the faded bar below it is that without the hovered head.

import { openTab } from "../../ui/static/gradio.js";
import { branchAt, pastRuns } from "../../ui/static/history.js";
import { generates, headWords, isAblated } from "../../ui/static/interventions.js";
import { capital, percentText, say, sayN, sayWith, wholeText } from "../../web/messages.js";
import { mounted, openSection, useDocument, usePart } from "../../web/part.js";
import { html, signal, useLayoutEffect, useMemo, useRef, useState } from "../../web/preact.js";
import { siteName } from "../../web/sites.js";
import { page, predicts } from "../../web/store.js";
import { Token, setReader } from "../../web/text.js";
import { firstAtlas, tokenReader } from "../attention/numbers.js";
import { shared, useFilling, useJourney, withoutHead } from "./queries.js";
import { distribution, draws, probabilitiesOf } from "./distribution.js";

const SHOWN = 5;

// ---- without a head ----

// The prediction without the hovered or pressed head: {of, logits, likeliest}, or {of, refusal}; null for an
// ablated head. One request at a time, the next for the head that is hovered then.
const usePreview = (part, position) => {
  const head = shared.preview ?? shared.pinned;
  const [found, setFound] = useState(/** @type {any} */ (null));
  const isAsked = useRef(false);
  const wanted = head &&
    page.run &&
    !isAblated(head) &&
    position !== undefined && {
      ...{ run: page.run.run, position, site: siteName(head), head: head.head },
    };
  const key = JSON.stringify(wanted || null);
  const isDue = Boolean(wanted) && found?.key !== key;
  useLayoutEffect(() => {
    part.setPending(usePreview, isDue);
    if (!isDue || isAsked.current) return;
    const take = (told) => {
      isAsked.current = false;
      setFound({ of: head, key, ...told });
    };
    isAsked.current = true;
    withoutHead(wanted).then(take, ({ message }) => take({ refusal: message }));
  }, [key, found]);
  return wanted && !isDue ? found : null;
};

const Preview = ({ found }) => {
  if (!found) {
    const hint = say("Point at a head or press it: faded bars show what would follow without it.");
    return html`<p class="preview hint">${hint}</p>`;
  }
  const { of, refusal } = found;
  return html`<p class="preview">${refusal ?? say("Faded: without {head}.", { head: headWords(of) })}</p>`;
};

// ---- the bars ----

// The tokens with a bar: the likeliest, the text's next token, and the likeliest without the head.
const tokensShown = ({ position, likeliest }, without) => {
  const { ids, labels } = page.run;
  const came = page.run.stack === "decoder" && position + 1 < ids.length;
  const next = came ? { id: ids[position + 1], label: labels[position + 1] } : null;
  const extra = [next, without?.likeliest[0]].filter(Boolean);
  const first = likeliest.slice(0, SHOWN);
  const more = extra.filter(
    ({ id }, at) => ![...first, ...extra.slice(0, at)].some((one) => one.id === id),
  );
  return [...first, ...more].map((one) => ({ ...one, isNext: one.id === next?.id }));
};

// own, drawn: its probability by the network and with the settings; without: that of the network without the
// head.
const Bar = ({ token, own, drawn, without, step }) => {
  const { id, label, isNext } = token;
  const [network, other] = [own, without ? without.own : drawn].map((p) => percentText(p));
  const both = network === other && !without ? network : `${network} → ${other}`;
  const values = { token: label, probability: both };
  const canBranch = step >= 0 && generates() && !isNext;
  const told = isNext
    ? say("{token}, {probability}: the text goes on with it", values)
    : canBranch
      ? say("{token}, {probability}: go on with it instead", values)
      : say("{token}, {probability}", values);
  const wide = (share) => ({ width: `${(100 * share).toFixed(2)}%` });
  return html`<li><button type="button" class="next-word" aria-label=${told} title=${told} data-id=${id}
    aria-disabled=${String(!canBranch)} onClick=${() => canBranch && branchAt(step, id)}>
    <${Token} label=${label} /><span class="bars">
      <i class="drawn" style=${wide(drawn)} />
      ${without && html`<i class="without" style=${wide(without.drawn)} />`}
      <i class="own" style=${{ left: wide(own).width }} />
    </span><span class="value">${network}${
      both !== network && html`<span class="faded">→ ${other}</span>`
    }${isNext && " ✓"}</span>
  </button></li>`;
};

// The sampling settings in words.
const drawnInWords = (settings, count, { likeliest, logits }) => {
  const token = html`<strong><${Token} label=${likeliest[0].label} /></strong>`;
  if (page.run.stack === "encoder") return say("What the network would put at this place.");
  if (settings.method === "beam")
    return say("Beam search weighs whole texts, not this word alone.");
  if (!draws(settings))
    return sayWith("Greedy: always the likeliest, {token}. Move the temperature to draw instead.", {
      token,
    });
  const drawn = sayN(
    "Only {n} of {all} tokens could be drawn.",
    "{n} of {all} tokens could be drawn.",
    count,
    { all: wholeText(logits.length) },
  );
  return `${drawn} ${say("The tick and the first number are the network's own probability; the bar and the second are what is drawn from.")}`;
};

const compare = () => {
  openTab("what-if");
  openSection("compare");
};

// The changed values of Gradio's controls, {method, temperature, top_k, top_p}; see ui/page.py.
const moved = signal(/** @type {Record<string, any>} */ ({}));

// The bars and their text, the only parts drawn again as a control moves.
const Drawn = ({ answer, preview, first, isSaid }) => {
  const { method, ...numbers } = { ...first, ...moved.value };
  const [temperature, topK, topP] = ["temperature", "top_k", "top_p"].map((name) =>
    Number(numbers[name]),
  );
  const settings = { method, temperature, top_k: topK, top_p: topP };
  const all = Object.values(settings);
  const drawn = useMemo(() => distribution(answer.logits, settings), [answer, ...all]);
  const own = useMemo(() => probabilitiesOf(answer.logits), [answer]);
  const without = useMemo(
    () =>
      preview?.logits && {
        own: probabilitiesOf(preview.logits),
        drawn: distribution(preview.logits, settings).probabilities,
      },
    [preview, ...all],
  );
  const step = answer.position + 1 - page.run.n_prompt;
  const bar = (token) => html`<${Bar} key=${token.id} ...${{ token, step }}
    own=${own[token.id]} drawn=${drawn.probabilities[token.id]}
    without=${without && { own: without.own[token.id], drawn: without.drawn[token.id] }} />`;
  return html`<ul hidden=${isSaid} ref=${useFilling(answer.position, 500)}>
      ${tokensShown(answer, preview?.logits && preview).map(bar)}
    </ul>
    <p class="drawn-says" hidden=${isSaid}>${drawnInWords(settings, drawn.count, answer)}</p>`;
};

const NextWords = ({ props, value }) => {
  const part = usePart();
  useMemo(() => {
    firstAtlas(props.first);
    setReader(tokenReader({}, () => false)); // until Attention is mounted and sets its own reader
  }, []);
  useDocument(["setting"], ({ detail }) => (moved.value = { ...moved.peek(), ...detail }));
  const { answer, asked } = useJourney(part);
  const preview = usePreview(part, answer?.position);
  const facts = answer && { run: asked.run, place: answer.position, stack: page.run.stack };
  const site = preview && `${siteName(preview.of)}.${preview.of.head}`;
  // For a masked word masked.js shows this, unless a head is hovered.
  const isHidden = !page.query || page.run?.hidden.includes(answer?.position);
  const isSaid = page.run?.stack === "encoder" && isHidden && !preview;
  const read = answer && (page.run.labels[answer.position] ?? "");
  return html`<section class="next-words" aria-label=${capital(say("what comes next"))}
    hidden=${Boolean(page.run) && !predicts()}
    ...${part.attributes({ ...facts, without: site ?? undefined })}>
    <div class="next-head" hidden=${isSaid}>
      <h2>${
        page.run?.stack === "encoder"
          ? say("What stands here?")
          : answer
            ? sayWith("What comes after {token}?", { token: html`<${Token} label=${read} />` })
            : say("What comes next?")
      }</h2>
      ${
        page.run &&
        pastRuns.length > 1 &&
        html`<button type="button" class="to-tab" onClick=${compare}>${say("Compare with another run")}</button>`
      }
      <button type="button" class="to-tab" onClick=${() => openTab("prediction")}>${say("Prediction")}</button>
    </div>
    ${answer ? html`<${Drawn} ...${{ answer, preview, isSaid }} first=${value.value} />` : html`<ul hidden=${isSaid} />`}
    <${Preview} found=${preview} />
  </section>`;
};
export const mount = mounted(NextWords);
