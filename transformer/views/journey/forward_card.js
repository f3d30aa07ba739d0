// What the chosen feed-forward does: what it adds to the next word, what would be written without it, and the neurons
// that add most. The text is shaded by the one that is chosen of them.

import { askOnce } from "../../web/ask.js";
import { effects } from "../../web/effects.js";
import { capital, numeral, say, sayWith, wholeText } from "../../web/messages.js";
import { useAnswer } from "../../web/part.js";
import { html, useLayoutEffect, useState } from "../../web/preact.js";
import { generates, isForwardOff, switchForward } from "../../web/runs.js";
import { page, setQuery, shell, tracedFrom } from "../../web/store.js";
import { Token, WORD, wordOf } from "../../web/text.js";
import { Adds, strong, Writes } from "./head_card.js";
import { forwardAsked, forwardName } from "./next_words.js";

const MIN_SHARE = 0.1; // of the largest activation: less is not shaded

/**
 * @typedef {import("./types").Neuron} Neuron
 * @typedef {import("./types").JourneyAnswer} JourneyAnswer
 */

// A token that a neuron writes: one that goes on with a word begins with a stroke.
/** @param {string} label */
const piece = (label) => {
  const goesOn = /^[\p{L}\p{N}]/u.test(label);
  return html`<${Token} label=${goesOn ? `-${label}` : label.replace(WORD, "") || label} />`;
};

/** @param {{ neuron: Neuron, most: number, isChosen: boolean, choose: () => void }} props */
const Row = ({ neuron: { index, adds, activation, writes }, most, isChosen, choose }) => {
  const amount = adds ?? activation;
  const wide = { width: `${(100 * Math.abs(amount)) / most}%` };
  return html`<li><button type="button" class="reader" aria-pressed=${String(isChosen)} onClick=${choose}>
    <span>${say("neuron {index}", { index: wholeText(index) })}</span>
    <span class="bars"><i class=${amount < 0 ? "takes" : "adds"} style=${wide} /></span>
    <span class="value">${numeral(`${amount < 0 ? "−" : "+"}${Math.abs(amount).toFixed(2)}`)}</span>
    <span class="writes" translate=${false}>${writes.map((label, at) => [at > 0 && " · ", piece(label)])}</span>
  </button></li>`;
};

// Where the neuron is most active in the text, and what it writes.
/** @param {{ neuron: Neuron, stack: string }} props */
const Fires = ({ neuron: { index, activations }, stack }) => {
  let best = 0;
  activations.forEach((one, at) => {
    if (Math.abs(one) > Math.abs(activations[best])) best = at;
  });
  const labels = page.run.labels.slice(tracedFrom(stack));
  return sayWith("Neuron {index} is most active at {token} in this text: {activation}.", {
    index: wholeText(index),
    token: strong(labels[best] ?? ""),
    activation: numeral(activations[best].toFixed(1).replace("-", "−")),
  });
};

/** @param {{ neurons: Neuron[], stack: string, word: string, count: number }} props */
const Neurons = ({ neurons, stack, word, count }) => {
  const { run } = page.run;
  const [pressed, press] = useState(-1);
  const chosen = neurons.find(({ index }) => index === pressed) ?? neurons[0];
  useLayoutEffect(() => {
    const { activations } = chosen;
    const most = Math.max(...activations.map(Math.abs), 1e-6);
    const from = tracedFrom(stack);
    /** @type {number[]} */
    const shares = [];
    activations.forEach((one, at) => {
      shares[from + at] = Math.abs(one) < MIN_SHARE * most ? 0 : one / most;
    });
    const choose = (/** @type {number} */ index) => setQuery({ stack, index });
    effects.value = { run, stack, shares, left: [], choose };
  }, [chosen]);
  useLayoutEffect(() => () => void (effects.value = null), []);
  const most = Math.max(...neurons.map(({ adds, activation }) => Math.abs(adds ?? activation)));
  return html`<p>${sayWith("Of its {n} neurons these add most to {word}, up or down, and write:", { n: wholeText(count), word: strong(word) })}</p>
    <ol class="word-rows neurons">${neurons.map(
      (neuron) =>
        html`<${Row} neuron=${neuron} most=${most} isChosen=${neuron === chosen} choose=${() => press(neuron.index)} />`,
    )}</ol>
    <p><${Fires} neuron=${chosen} stack=${stack} />${" "}${say("The shading shows how active it is.")}</p>`;
};

// answer: of the journey, about whose target the feed-forward is asked; null while that is on its way.
/** @param {{ part: import("../../web/part.js").Part, answer: JourneyAnswer | null }} props */
export const ForwardCard = ({ part, answer }) => {
  const at = /** @type {{ stack: string, layer: number }} */ (page.forward);
  const { run, stack } = page.run;
  const both = async (/** @type {import("./types").ForwardAsked} */ data) => {
    const asked = { run, position: data.position };
    const [found, whole] = await Promise.all([
      askOnce("feed_forward", data),
      askOnce("continuation", asked),
    ]);
    return { ...found, texts: [whole.labels, found.labels] };
  };
  const found = useAnswer(part, both, answer && forwardAsked(answer)).current;
  const isOff = isForwardOff(at);
  const isOwn = at.stack === stack;
  const name = capital(forwardName(at));
  const isKnown = answer && found;
  const writes = isKnown && stack === "decoder" && found.texts[0].length > 0;
  const texts = writes && (isOff ? [...found.texts].reverse() : found.texts);
  return html`<section class="head-card forward-card" aria-live="polite" aria-busy=${!isKnown}>
    <h3><span class="card-line">${name}</span>
      <small>${isOff ? say("switched off: it adds nothing") : say("reads each token alone")}</small></h3>
    <ol>${
      isKnown && [
        isOff
          ? null
          : isOwn
            ? html`<li><${Adds} answer=${answer} at=${at} /></li>`
            : html`<li>${say("It adds nothing to a word itself: the decoder reads what it writes.")}</li>`,
        texts &&
          html`<li><${Writes} place=${answer.position} texts=${texts} ofHead=${false} /></li>`,
      ]
    }</ol>
    <div class="card-actions">
      ${generates() && html`<button type="button" class="switch-off" onClick=${() => switchForward(at)}>${isOff ? say("Switch it on again") : say("Switch it off")}</button>`}
      <button type="button" class="in-model" onClick=${() => shell.openTab("model")}>${say("Show in the network diagram")}</button>
    </div>
    <div class="neurons-room">${isKnown && found.neurons.length > 0 && html`<${Neurons} neurons=${found.neurons} count=${found.n_neurons} stack=${at.stack} word=${wordOf(answer.target_label, answer.position)} />`}</div>
  </section>`;
};
