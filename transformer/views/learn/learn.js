// Learn: a small network learns: its heads, its answers and its curves at each step of a recorded training, or
// of the visitor's own; afterwards it is a model of this visit.

import { HeadGrid, atlasOf } from "../../web/head_grid.js";
import { say, numeral, sayN, sayWith } from "../../web/messages.js";
import { html, useMemo, useLayoutEffect, useRef, useState } from "../../web/preact.js";
import { attentionOf, siteName } from "../../web/sites.js";
import { ablationOf } from "../../web/runs.js";
import { forgetPressed } from "../../web/pointer.js";
import { page, shell } from "../../web/store.js";
import { saveFile } from "../../web/plots.js";
import { fields, staying } from "../../web/fields.js";
import { ask, decodeBytes } from "../../web/ask.js";
import { Control } from "../../web/controls.js";
import { Figure } from "../../web/figure.js";
import { mounted, useAnswer, usePart, trying } from "../../web/part.js";
import { isLive, RECORDED, usePlaying, useProgress, useTraining } from "./training.js";

/**
 * @typedef {import("./types").Training} Training
 * @typedef {import("./types").ShownTraining} ShownTraining
 * @typedef {import("./types").PickedHead} PickedHead
 * @typedef {import("../../web/types").SentAtlas} SentAtlas
 * @typedef {import("../../web/types").ChangeOf} Change
 */

// The heads of one attention as sent by the server; the rest: see HeadGrid.
/** @param {{ picture: SentAtlas } & Omit<import("../../web/types").HeadGridProps, "atlas">} props */
const SmallHeads = ({ picture, ...grid }) => {
  const atlas = useMemo(() => atlasOf(picture), [picture]);
  return html`<${HeadGrid} atlas=${atlas} ...${grid} />`;
};

// All heads of the network, small, for the exercise's example. best: {site, head, label} of the head to mark, or
// null; picked: the chosen one.
/** @param {{ pictures?: Training["pictures"], best: (import("./types").BestHead & { label: string }) | null, picked: PickedHead | null, pick: (head: PickedHead) => void }} props */
const LearnedHeads = ({ pictures, best, picked, pick }) => {
  /** @param {[string, SentAtlas]} entry */
  const kindOf = ([name, picture]) => {
    const [stack, kind] = name.split(".");
    const [at, layer, sort] = best?.site.split(".") ?? [];
    const signs =
      best && at === stack && sort === kind
        ? [{ layer: Number(layer), head: best.head, sign: "★", label: best.label }]
        : [];
    return html`<div class="learn-kind" key=${name}>
      <p>${attentionOf({ stack, kind })}</p>
      <${SmallHeads} chosen=${picked?.name === name ? picked : null}
        choose=${(/** @type {number} */ a, /** @type {number} */ b) => pick({ name, layer: a, head: b })}
        picture=${picture} signs=${signs} />
    </div>`;
  };
  return html`<div class="learn-heads">${Object.entries(pictures ?? {}).map(kindOf)}</div>`;
};

// A slider over the steps whose network is kept, and a button that plays them.
/** @param {{ facts: Training | null, shown: ShownTraining, playing: import("./types").Playing }} props */
const LookBack = ({ facts, shown, playing: { isPlaying, play, stop } }) => {
  const { kept, at } = facts ?? { kept: /** @type {number[]} */ ([]), at: "–" };
  const last = Math.max(0, kept.length - 1);
  const choose = (/** @type {Change} */ { target }) => {
    const place = Number(target.value);
    stop();
    shown.at = place === last ? null : kept[place];
  };
  return html`<div class="learn-steps">
    <button type="button" class="learn-play" disabled=${last < 1 || isLive(facts)}
      onClick=${isPlaying ? stop : play}>${isPlaying ? say("Pause") : say("Play")}</button>
    <label class="learn-slider">
      <span>${`${say("Look back: step")} `}<output class="learn-at">${at}</output></span>
      <input type="range" class="learn-back" min="0" max=${last} disabled=${last < 1}
        value=${shown.at === null ? last : kept.indexOf(shown.at)} onInput=${choose}
        aria-valuetext=${say("step {step}", { step: at })} />
    </label>
  </div>`;
};

/** @type {(id: string, training: Training) => string} */
const statusOf = (id, { state, why, before, step, total, plan }) => {
  if (state === "running") return say("Training: step {step} of {total} …", { step, total });
  if (state === "paused") return say("Paused after step {step} of {total}.", { step, total });
  if (state === "waiting")
    return before
      ? sayN(
          "Waiting: {n} training run before yours.",
          "Waiting: {n} training runs before yours.",
          before,
        )
      : say("Starting …");
  if (!id.startsWith(RECORDED)) return why;
  return say(
    "A recorded training run: {preset}, layers: {layers}, heads: {heads}, width {width}.",
    {
      ...plan,
      layers: plan.n_layers,
      heads: plan.n_heads,
    },
  );
};

/** @param {{ training: ReturnType<typeof useTraining>, facts: Training | null, status: string | null, again: () => void }} props */
const Buttons = ({ training, facts, status, again }) => {
  const { shown, show, plan, showRecorded } = training;
  const how = facts?.state ?? "";
  const steer = (/** @type {string} */ wish) =>
    trying(async () => {
      await ask("steer", { id: shown.id, do: wish });
      again();
    });
  const train = trying(async () => {
    const { id: before, question } = shown;
    const { id } = await ask("train", { plan: plan() });
    if (shown.id === before) show(id, { question });
  });
  const still = !["running", "paused"].includes(how);
  return html`<div class="whatif-buttons">
    <button type="button" class="main train" onClick=${train}>${say("Train")}</button>
    <button type="button" class="pause" disabled=${still}
      onClick=${steer(how === "paused" ? "go" : "pause")}>${how === "paused" ? say("Go on") : say("Pause")}</button>
    <button type="button" class="one-step" disabled=${still} onClick=${steer("step")}>${say("One step")}</button>
    <button type="button" class="stop" disabled=${!isLive(facts)} onClick=${steer("stop")}>${say("Stop")}</button>
    <button type="button" class="recorded" onClick=${showRecorded}>${say("Show the recorded training run")}</button>
    <span class="learn-status" role="status">${status}</span>
  </div>`;
};

/** @param {{ facts: Training | null, text: string, type: (text: string) => void, commit: () => void }} props */
const Question = ({ facts, text, type, commit }) => {
  const { answer, wanted } = facts ?? {};
  const right =
    answer === wanted
      ? say("(right)")
      : sayWith("(the right answer is {wanted})", {
          wanted: html`<bdi translate=${false}>${wanted}</bdi>`,
        });
  return html`<p class="learn-ask">
    <label>${`${say("Ask it")} `}<input type="text" class="learn-question" autocomplete="off"
      spellcheck=${false} value=${text} onInput=${(/** @type {Change} */ { target }) => type(target.value)}
      onChange=${commit} /></label>
    <span aria-live="polite">→ <bdi class="learn-answer" translate=${false}>${facts ? answer || "…" : "–"}</bdi>${" "}
      <span class="learn-wanted">${facts && right}</span></span>
  </p>`;
};

// Use the trained network as a model of this visit: without its best head, as it is, or as a folder.
/** @param {{ shown: ShownTraining, facts: Training | null, picked: PickedHead | null }} props */
const Afterwards = ({ shown, facts, picked }) => {
  const adopted = useMemo(() => new Map(), []); // by training and step
  const adopt = async () => {
    const { id, at } = shown;
    const key = `${id} ${facts?.at}`;
    if (!adopted.has(key)) adopted.set(key, await ask("adopt", { id, at }));
    return adopted.get(key);
  };
  const { best } = facts ?? {};
  const open = async (/** @type {Record<string, string>} */ more) => {
    const seen = () => [page.run, page.opening, fields.tab];
    const before = seen();
    const { model, max_new_tokens: count } = await adopt();
    if (seen().some((now, place) => now !== before[place])) return; // the visitor is elsewhere
    const [stack, kind] = picked?.name.split(".") ?? [];
    const head = picked
      ? { site: siteName({ layer: picked.layer, stack, kind }), head: picked.head }
      : best;
    /** @type {Record<string, string>} */
    const place = head ? { site: head.site, head: String(head.head) } : {};
    forgetPressed();
    window.scrollTo({ top: 0 }); // where the tab that it opens begins
    shell.apply({
      ...staying(),
      model,
      max_new_tokens: String(count),
      tab: "attention",
      ...place,
      ...more,
    });
  };
  const breakBest = trying(() => {
    if (!best) return undefined;
    const [stack, layer, kind] = best.site.split(".");
    const without = JSON.stringify([
      ablationOf({ stack, layer: Number(layer), kind }, [best.head]),
    ]);
    const tab = "journey"; // what it adds and writes; alone, it is an empty heatmap
    return open({ tab, site: best.site, head: String(best.head), interventions: without });
  });
  const save = trying(async () => {
    const { id, at } = shown;
    const { name, type, base64 = "" } = await ask("checkpoint", { id, at });
    saveFile(new Blob([decodeBytes(base64)], { type }), name);
  });
  const none = !facts?.kept.length;
  return html`<div class="whatif-buttons">
      <button type="button" class="main break-best" hidden=${!best} disabled=${none} onClick=${breakBest}>${say("Break its best head ★")}</button>
      <button type="button" class="open-network" disabled=${none} onClick=${trying(() => open({}))}>${say("Open it in Attention")}</button>
      <button type="button" class="save-network" disabled=${none} onClick=${save}>${say("Save the network")}</button>
    </div>
    <p class="hint">${say("Once opened, it is in your list of models, for you alone, in every tab and every What if?, until you leave. The head that you clicked is shown. Saved, it is a folder that transformer.load opens.")}</p>`;
};

const Learn = () => {
  const part = usePart();
  const training = useTraining();
  const { declared, follow, take, shown } = training;
  const { id, at, question, given } = shown;
  const [round, setRound] = useState(0);
  const again = () => setRound(round + 1);
  const [typed, type] = useState(/** @type {string | null} */ (null));
  const [picked, pick] = useState(/** @type {import("./types").PickedHead | null} */ (null));
  const { answer, asked } = useAnswer(part, "learned", { id, at, question, round });
  /** @type {Training | null} */
  const facts = asked?.id === id ? answer : null; // else another training's, until this one's arrives
  useProgress(part, facts, again);
  const drawn = [asked?.id, answer?.at, answer?.state, answer?.step];
  const curves = useMemo(() => answer?.curves, drawn); // a paused one's are not drawn again
  useLayoutEffect(() => {
    if (facts && id.startsWith(RECORDED) && !given) take(facts.plan);
  }, [id, given, facts !== null]);
  const kinds = Object.keys(answer?.pictures ?? {}).join();
  useLayoutEffect(() => pick(null), [kinds]);
  useLayoutEffect(() => type(null), [id]);

  const text = typed ?? question ?? answer?.question ?? "";
  const latest = useRef("");
  const commit = trying(async () => {
    latest.current = text;
    await ask("learned", { id, at, question: text.trim() }); // shows what is wrong with it
    if (shown.id !== id || latest.current !== text) return;
    shown.question = text.trim();
    type((now) => (now === text ? null : now));
  });
  const best = answer?.best && {
    ...answer.best,
    label: say("{score} on the letter to be written next", {
      score: numeral(answer.best.score.toFixed(2)),
    }),
  };
  const control = (/** @type {import("./types").Field} */ [field, one]) => html`<${Control}
    key=${field} declared=${one} changed=${() => follow(field)} field=${field} fields=${fields} />`;
  const state = answer && {
    state: answer.state,
    step: answer.step,
    answer: answer.answer,
    right: answer.answer === answer.wanted,
    id: asked?.id,
    at: answer.at,
  };
  const [exercise, ...others] = declared;
  const playing = usePlaying(part, facts, shown);
  const [finding, ...more] = answer?.said ?? [];
  const isOwn = given || !id.startsWith(RECORDED);
  const own = html`<details class="learn-own" key="own" open=${isOwn}>
      <summary>${say("Train your own")}</summary>
      <div class="panel-controls learn-controls">${others.map(control)}</div>
      <${Buttons} status=${answer && statusOf(asked?.id ?? "", answer)} training=${training} facts=${facts}
        again=${again} />
    </details>`;
  return html`<section class="learn" ...${part.attributes(state)}>
    <h3>${say("Watch it learn")}</h3>
    <div class="panel-controls learn-controls">${control(exercise)}<p>${answer?.task}</p></div>
    ${given && own}
    <${LookBack} facts=${answer} shown=${shown} playing=${playing} />
    <p class="learn-finding">${finding}</p>
    <div class="learn-body">
      <div class="learn-heads-side">
        <h4>${say("All heads, for one example")}</h4>
        <${LearnedHeads} pictures=${answer?.pictures} best=${best} picked=${picked} pick=${pick} />
        <${Question} facts=${answer} text=${text} type=${type} commit=${commit} />
        <${Afterwards} shown=${shown} facts=${facts} picked=${picked} />
      </div>
      <div class="learn-curves-side">
        <${Figure} part=${part} name="learning" class="learn-curves" figure=${curves}
          label=${say("Loss and accuracy of each step")} />
        <ul class="learn-said">${more.map((/** @type {string} */ sentence) => html`<li>${sentence}</li>`)}</ul>
      </div>
    </div>
    ${!given && own}
  </section>`;
};
export const mount = mounted(Learn);
