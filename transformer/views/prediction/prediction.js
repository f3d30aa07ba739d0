// One generated token's candidates; every token's surprisal; what each layer would have said; and the
// tree of a beam search.

import { say, asSentence, numeral, percentText, sayN, sayWith } from "../../web/messages.js";
import { Figure } from "../../web/figure.js";
import { useAnswer, usePart, Section, mounted } from "../../web/part.js";
import { html, useMemo } from "../../web/preact.js";
import { page, setQuery } from "../../web/store.js";
import { branchAt } from "../../ui/static/history.js";
import { declaredFields } from "../../web/fields.js";
import { Asked, before, placeAsked, placeRead } from "../../web/looked_at.js";
import { Token } from "../../web/text.js";
import { useJourney } from "../journey/asked.js";
import { Lens, Surprisal } from "./token_columns.js";

// The tree of a beam search.

const SearchTree = () => {
  const part = usePart();
  const { run } = page;
  const searched = (run?.hypotheses.length ?? 0) > 0;
  const { answer } = useAnswer(part, "beams", searched && { run: run.run });
  return html`<div class="tree-box" ...${part.shows({})}>
    <section class="searched" hidden=${!searched}>
      <p>${say("Each column is a step, with the best extension on top. Lines lead from a text to its extensions; the path of the chosen translation is bold.")}</p>
      <${Figure} part=${part} class="tree" figure=${searched && answer?.figure}
        wide=${say("Tree of the beam search, scrollable")} label=${say("Tree of the beam search")} />
    </section>
  </div>`;
};

const MOST_TOKENS = 60; // of the text before a step

const branch = ({ points }, box) => {
  const { ids, chosen, step } = box.layout.meta;
  const id = ids[Math.round(points[0].y)];
  if (id !== chosen) branchAt(step, id);
};

// What the step had before it.
const read = ({ window: [first, stop], slid }) => {
  if (slid) {
    return say("It read tokens {first} to {last}; earlier ones no longer fit into the window.", {
      first,
      last: stop - 1,
    });
  }
  return page.run.source_labels.length
    ? sayN(
        "It read the whole source and {n} token of the translation.",
        "It read the whole source and {n} tokens of the translation.",
        stop - first,
      )
    : sayN("It read {n} token.", "It read all {n} tokens before it.", stop - first);
};
const title = ({ chosen, probability }, step, steps) =>
  sayWith("Step {step} of {steps}: chose “{token}” with probability {probability}", {
    step: step + 1,
    steps,
    token: html`<${Token} label=${chosen} />`,
    probability: numeral(probability.toFixed(3)),
  });
const expects = ({ position }) =>
  sayWith("After {token} the network expects:", {
    token: html`<strong><${Token} label=${page.run.labels[position] ?? ""} /></strong>`,
  });
const seenText = ({ seen, chosen }) => [
  seen.length > MOST_TOKENS && "… ",
  ...seen.slice(-MOST_TOKENS).map((label) => html`<${Token} label=${label} />`),
  html`<span class="caret">▸</span>`,
  html`<${Token} label=${chosen} />`,
];

// Where no step made what follows: what the network expects, by its own probabilities.
const Coming = ({ answer }) => {
  const bar = ({ id, label, probability }) =>
    html`<li key=${id}><${Token} label=${label} />
      <i style=${{ width: `${(60 * probability).toFixed(2)}%` }} />${percentText(probability)}</li>`;
  return html`<div class="coming">
    <ol>${answer?.likeliest.map(bar)}</ol>
    <p class="hint">${say("What the network writes itself is shown with what it could have been.")}</p>
  </div>`;
};

// Bits a written token cost on average; none where nothing was written.
const bitsInWords = ({ probabilities: all }) => {
  const bits = all.reduce((sum, one) => sum - Math.log2(one), 0) / all.length;
  return all.length && Number.isFinite(bits)
    ? say("{bits} bits a written token, on average", { bits: numeral(bits.toFixed(2)) })
    : say("How much each token of the text costs the network");
};
const Deeper = ({ fields }) => {
  const { run } = page;
  const searched = run?.hypotheses.length ?? 0;
  return html`<div>
    <${Section} name="surprisal" title=${say("Surprisal of each token, −log₂ p")}
      finding=${run && bitsInWords(run)}><${Surprisal} /><//>
    <${Section} name="lens" title=${say("Logit lens: what each layer would have said")}
      finding=${say("The token that each layer holds for the best, all along the text")}>
      <${Lens} fields=${fields} /><//>
    ${
      searched > 0 &&
      html`<${Section} name="beams" finding=${sayN("{n} text at the end", "{n} texts at the end", searched)}
        title=${say("The beam search: which hypotheses lived and died at each step")}>
        <${SearchTree} /><//>`
    }
  </div>`;
};

const Prediction = () => {
  const part = usePart();
  const fields = useMemo(() => declaredFields("prediction"), []);
  const { run } = page;
  const steps = run?.probabilities.length ?? 0;
  const step = run ? placeAsked() - run.n_prompt : -1;
  const none = !(step >= 0 && step < steps);
  const { answer, asked } = useAnswer(part, "candidates", !none && { run: run.run, step });
  const coming = useJourney(part);
  const go = (to) => setQuery(before(run.n_prompt + to));
  const predicts = run?.stack === "decoder";
  const heading = () => {
    if (none) return coming.answer && expects(coming.answer);
    return answer && title(answer, asked.step, steps);
  };
  const facts = none ? { run: coming.asked?.run } : { run: asked?.run, step: asked?.step };
  return html`<div class="prediction" ...${part.shows(facts)}>
    ${predicts && html`<${Asked} />`}
    <div class="step-head" hidden=${!predicts}>
      <button type="button" class="previous" aria-label=${say("Previous step")}
        disabled=${predicts && placeRead() === 0} onClick=${() => go(step - 1)}>‹</button>
      <h3 class="step-title">${heading()}</h3>
      <button type="button" class="next" aria-label=${say("Next step")}
        disabled=${predicts && placeRead() >= run.labels.length - 1} onClick=${() => go(step + 1)}>›</button>
    </div>
    ${none && predicts && html`<${Coming} answer=${coming.answer} />`}
    <div class="step-body" hidden=${none}>
      <p class="step-window">${answer && `${read(answer)} ${asSentence(answer.how)}`}</p>
      <p class="step-text">${answer && seenText(answer)}</p>
      <p>${say("First bar: the network's probability. Second bar: after temperature, top-k and top-p, from which the token was drawn; where nothing was drawn, one token has it all. A candidate without a second bar was cut, and the reason stands there. Click a bar to take its token instead: the text branches there (see What if?).")}</p>
      <${Figure} part=${part} name="candidates" figure=${!none && answer?.figure}
        on=${{ plotly_click: branch }} />
    </div>
    <${Deeper} fields=${fields} />
  </div>`;
};
export const mount = mounted(Prediction);
