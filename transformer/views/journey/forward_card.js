// What the chosen feed-forward does: what it adds to the next word, what would be written without it, and the neurons
// that add most, each with a sentence at which it fires. The text is shaded by the one that is chosen of them.

import { ask, askOnce } from "../../web/ask.js";
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
const NEW_TOKENS = "20"; // that are written after a sentence

/**
 * @typedef {import("preact").ComponentChild} ComponentChild
 * @typedef {import("./types").Neuron} Neuron
 * @typedef {import("./types").Forward} Forward
 * @typedef {import("./types").NeuronPassages} NeuronPassages
 * @typedef {import("./types").JourneyAnswer} JourneyAnswer
 */

// A token that a neuron writes: one that goes on with a word begins with a stroke.
/** @param {string} label */
const piece = (label) => {
  const goesOn = /^[\p{L}\p{N}]/u.test(label);
  return html`<${Token} label=${goesOn ? `-${label}` : label.replace(WORD, "") || label} />`;
};

// The sentence at which a neuron fires most; a press reads it here. Its line is kept for it.
/** @type {(props: { at: Forward, index: number, passages: NeuronPassages | null, choose: () => void }) => ComponentChild} */
const Fires = ({ at: { stack, layer }, index, passages, choose }) => {
  const passage = passages?.passages[index];
  if (!passage)
    return html`<span class="fires">${passage === null && say("It is active in none of them.")}</span>`;
  const { text, before, token, after } = passage;
  const read = () => {
    choose();
    const { model } = page.run;
    const forward = [stack, layer, index].join(".");
    shell.apply({ model, text, max_new_tokens: NEW_TOKENS, tab: "journey", forward });
  };
  return html`<button type="button" class="fires" title=${text} onClick=${read}>
    <bdi translate=${false}><span class="lead">${before}</span><strong>${token}</strong><span class="rest">${after}</span></bdi></button>`;
};

/** @type {(props: { neuron: Neuron, most: number, isChosen: boolean, choose: () => void, at: Forward, passages: NeuronPassages | null }) => ComponentChild} */
const Row = ({ neuron, most, isChosen, choose, at, passages }) => {
  const { index, adds, activation, writes } = neuron;
  const amount = adds ?? activation;
  const wide = { width: `${(100 * Math.abs(amount)) / most}%` };
  return html`<li><button type="button" class="reader" aria-pressed=${String(isChosen)} onClick=${choose}>
    <span>${say("neuron {index}", { index: wholeText(index) })}</span>
    <span class="bars"><i class=${amount < 0 ? "takes" : "adds"} style=${wide} /></span>
    <span class="value">${numeral(`${amount < 0 ? "−" : "+"}${Math.abs(amount).toFixed(2)}`)}</span>
    <span class="writes" translate=${false}>${writes.map((label, place) => [place > 0 && " · ", piece(label)])}</span>
  </button><${Fires} at=${at} index=${index} passages=${passages} choose=${choose} /></li>`;
};

// Where the neuron is most active in the text, and what it writes.
/** @type {(props: { neuron: Neuron, stack: string }) => ComponentChild} */
const MostActive = ({ neuron: { index, activations }, stack }) => {
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

/** @type {(passages: NeuronPassages) => string} */
const passagesInWords = ({ n_sentences: count }) =>
  count === 0
    ? say("This model's neurons have not been measured over many texts.")
    : say(
        "Under each: the sentence, among {n}, in which it is most active. Press it to read it here.",
        { n: wholeText(count) },
      );

/** @type {(props: { neurons: Neuron[], at: Forward, word: string, count: number, passages: NeuronPassages | null }) => ComponentChild} */
const Neurons = ({ neurons, at, word, count, passages }) => {
  const { run } = page.run;
  const { stack } = at;
  const [pressed, press] = useState(at.neuron ?? -1);
  const chosen = neurons.find(({ index }) => index === pressed) ?? neurons[0];
  useLayoutEffect(() => {
    const { activations } = chosen;
    const most = Math.max(...activations.map(Math.abs), 1e-6);
    const from = tracedFrom(stack);
    /** @type {number[]} */
    const shares = [];
    activations.forEach((one, place) => {
      shares[from + place] = Math.abs(one) < MIN_SHARE * most ? 0 : one / most;
    });
    const choose = (/** @type {number} */ index) => setQuery({ stack, index });
    effects.value = { run, stack, shares, left: [], choose };
  }, [chosen]);
  useLayoutEffect(() => () => void (effects.value = null), []);
  const most = Math.max(...neurons.map(({ adds, activation }) => Math.abs(adds ?? activation)));
  return html`<p>${sayWith("Of its {n} neurons these add most to {word}, up or down, and write:", { n: wholeText(count), word: strong(word) })}</p>
    <ol class="word-rows neurons">${neurons.map(
      (neuron) =>
        html`<${Row} neuron=${neuron} most=${most} isChosen=${neuron === chosen} choose=${() => press(neuron.index)}
          at=${at} passages=${passages} />`,
    )}</ol>
    <p class="hint">${passages && passagesInWords(passages)}</p>
    <p><${MostActive} neuron=${chosen} stack=${stack} />${" "}${say("The shading shows how active it is.")}</p>`;
};

// answer: of the journey, about whose target the feed-forward is asked; null while that is on its way.
/** @param {{ part: import("../../web/part.js").Part, answer: JourneyAnswer | null }} props */
export const ForwardCard = ({ part, answer }) => {
  const at = /** @type {Forward} */ (page.forward);
  const { run, stack, model } = page.run;
  const both = async (/** @type {import("./types").ForwardAsked} */ data) => {
    const asked = { run, position: data.position };
    const [found, whole] = await Promise.all([
      askOnce("feed_forward", data),
      askOnce("continuation", asked),
    ]);
    return { ...found, texts: [whole.labels, found.labels] };
  };
  const found = useAnswer(part, both, answer && forwardAsked(answer)).current;
  const neurons = (found?.neurons ?? []).map((/** @type {Neuron} */ { index }) => index);
  const place = neurons.length > 0 && { model, stack: at.stack, layer: at.layer, neurons };
  const recorded = (/** @type {object} */ data) => ask("neuron_passages", data).catch(() => null);
  const passages = useAnswer(part, recorded, place).current;
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
    <div class="neurons-room">${isKnown && found.neurons.length > 0 && html`<${Neurons} neurons=${found.neurons} count=${found.n_neurons} at=${at} passages=${passages} word=${wordOf(answer.target_label, answer.position)} />`}</div>
  </section>`;
};
