// Learn: a small network is trained on the page: its curves, its heads, its answers; afterwards it is a model
// of this visit.

import { HeadGrid, atlasOf } from "../../web/head_grid.js";
import { say, numeral, sayN } from "../../web/messages.js";
import { html, useMemo, useLayoutEffect, useState } from "../../web/preact.js";
import { attentionOf, siteName } from "../../web/sites.js";
import { apply } from "../../ui/static/link.js";
import { saveFile } from "../../ui/static/share.js";
import { staying } from "../../ui/static/tour.js";
import { ask, decodeBytes, storage, takeLeft } from "../../web/ask.js";
import { Control } from "../../web/controls.js";
import { declaredFields } from "../../web/fields.js";
import { Figure } from "../../web/figure.js";
import { fieldsOf } from "../../web/declared.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { reactive, showProblem } from "../../web/store.js";

// All heads of an exercise's example, small.

// The heads of one attention as sent by the server; the rest: see HeadGrid.
const SmallHeads = ({ picture, ...grid }) => {
  const atlas = useMemo(() => atlasOf(picture), [picture]);
  return html`<${HeadGrid} atlas=${atlas} ...${grid} />`;
};

// The heads of each attention of the network. best: {site, head, label} of the head to mark, or null; picked:
// the chosen one, {name, layer, head}, name as in "decoder.self".
const LearnedHeads = ({ pictures, best, picked, pick }) => {
  const one = ([name, picture]) => {
    const [stack, kind] = name.split(".");
    const [at, layer, sort] = best?.site.split(".") ?? [];
    const signs =
      at === stack && sort === kind
        ? [{ layer: Number(layer), head: best.head, sign: "★", label: best.label }]
        : [];
    return html`<div class="learn-kind" key=${name}>
      <p>${attentionOf({ stack, kind })}</p>
      <${SmallHeads} chosen=${picked?.name === name ? picked : null}
        choose=${(a, b) => pick({ name, layer: a, head: b })} ...${{ picture, signs }} />
    </div>`;
  };
  return html`<div class="learn-heads">${Object.entries(pictures ?? {}).map(one)}</div>`;
};

/** @type {(facts: any) => boolean} */
const isLive = (facts) => ["waiting", "running", "paused"].includes(facts?.state);

// A slider over the steps whose network is kept.
const LookBack = ({ facts, shown }) => {
  const { kept, at, step } = facts ?? { kept: [], at: "–", step: 0 };
  const places = isLive(facts) && !kept.includes(step) ? [...kept, null] : kept;
  const last = Math.max(0, places.length - 1);
  const choose = ({ target }) => {
    const place = Number(target.value);
    shown.at = place === last ? null : places[place];
  };
  return html`<label class="learn-slider">
    <span>${`${say("Look back: step")} `}<output class="learn-at">${at}</output></span>
    <input type="range" class="learn-back" min="0" max=${last} disabled=${places.length < 2}
      value=${shown.at === null ? last : places.indexOf(shown.at)} onInput=${choose}
      aria-valuetext=${say("step {step}", { step: at })} />
  </label>`;
};

const RECORDED = "recorded-"; // see ui/learning.py
const TRAINING = "viz-training"; // in sessionStorage: the visitor's training, for a reload
const PAUSES_MS = { starting: 400, running: 400, waiting: 1500, paused: 1000 };
const OUT_OF_SIGHT_MS = 5000;

// Show an error in the page's status; the part does not change.
const trying = (work) => async () => {
  try {
    await work();
  } catch (error) {
    showProblem(error.message);
  }
};

// ---- what is to be trained, and what is shown ----

// fields: the declared parameters, with declared, their declarations, and plan(), their values. shown: the
// shown training: its id, a step of it (at, null for the last one), its question (null for the default), and
// whether a link set the fields, which otherwise follow a recorded training.
const useTraining = () =>
  useMemo(() => {
    const declared = Object.entries(fieldsOf("learn"));
    const [[task, { default: first }]] = declared;
    let before = first;
    const shown = reactive({ id: "", at: null, question: null, given: false });
    const show = (id, given = false) => {
      Object.assign(shown, { id, at: null, question: null, given });
      if (!id.startsWith(RECORDED)) storage?.setItem(TRAINING, id);
    };
    const showRecorded = () => show(RECORDED + (before = fields[task]));
    const fields = declaredFields("learn", (now) => {
      if (now[task] !== before) show(RECORDED + (before = now[task]), true);
    });
    if (!shown.id) showRecorded();
    const own = takeLeft(TRAINING);
    const showOwn = async () => {
      const { plan: planned } = await ask("learned", { id: own });
      take(planned);
      before = fields[task];
      show(own, true);
    };
    if (own) trying(showOwn)();
    const follow = (name) => name === task && showRecorded();
    const plan = () => Object.fromEntries(declared.map(([name, one]) => [one.name, fields[name]]));
    const take = (values) => declared.forEach(([name, one]) => (fields[name] = values[one.name]));
    return { declared, fields, plan, take, shown, show, showRecorded, follow };
  }, []);

// Poll a training for changes; again() then requests all of it.
const useProgress = (part, id, facts, again) => {
  const [looks, setLooks] = useState(0);
  const { seen } = part;
  const look = trying(async () => {
    const { changed } = await ask("learned", { id, known: facts.changed });
    if (changed === facts.changed || !seen) setLooks(looks + 1);
    else again();
  });
  useLayoutEffect(() => {
    if (!isLive(facts)) return;
    const { state, before } = facts;
    const pace = state === "waiting" && !before ? "starting" : state; // it may be over in a second
    const timer = setTimeout(look, seen ? PAUSES_MS[pace] : OUT_OF_SIGHT_MS);
    return () => clearTimeout(timer);
  }, [facts, looks, seen]);
};

// ---- its parts ----

const statusOf = (id, { state, why, before, step, total, plan }) => {
  if (state === "running") return say("Training: step {step} of {total} …", { step, total });
  if (state === "paused") return say("Paused after step {step} of {total}.", { step, total });
  if (state === "waiting")
    return before
      ? sayN("Waiting: {n} training before yours.", "Waiting: {n} trainings before yours.", before)
      : say("Starting …");
  if (!id.startsWith(RECORDED)) return why;
  return say("A recorded training: {preset}, layers: {layers}, heads: {heads}, width {width}.", {
    ...plan,
    layers: plan.n_layers,
    heads: plan.n_heads,
  });
};

const Buttons = ({ training, facts, status, question, again }) => {
  const { shown, show, plan, showRecorded } = training;
  const how = facts?.state;
  const steer = (wish) =>
    trying(async () => {
      await ask("steer", { id: shown.id, do: wish });
      again();
    });
  const train = trying(async () => show((await ask("train", { plan: plan(), question })).id));
  const still = !["running", "paused"].includes(how);
  return html`<div class="whatif-buttons">
    <button type="button" class="main train" onClick=${train}>${say("Train")}</button>
    <button type="button" class="pause" disabled=${still}
      onClick=${steer(how === "paused" ? "go" : "pause")}>${how === "paused" ? say("Go on") : say("Pause")}</button>
    <button type="button" class="one-step" disabled=${still} onClick=${steer("step")}>${say("One step")}</button>
    <button type="button" class="stop" disabled=${!isLive(facts)} onClick=${steer("stop")}>${say("Stop")}</button>
    <button type="button" class="recorded" onClick=${showRecorded}>${say("Show the recorded training")}</button>
    <span class="learn-status" role="status">${status}</span>
  </div>`;
};

const Question = ({ facts, text, type, commit }) => {
  const { answer, wanted } = facts ?? {};
  const right = answer === wanted ? say("(right)") : say("(right would be {wanted})", { wanted });
  return html`<p class="learn-ask">
    <label>${`${say("Ask it")} `}<input type="text" class="learn-question" autocomplete="off"
      spellcheck=${false} value=${text} onInput=${({ target }) => type(target.value)}
      onChange=${commit} /></label>
    <span aria-live="polite">→ <bdi class="learn-answer">${facts ? answer || "…" : "–"}</bdi>${" "}
      <span class="learn-wanted">${facts && right}</span></span>
  </p>`;
};

// Use the trained network as a model of this visit.
const Afterwards = ({ shown, facts, picked }) => {
  const adopted = useMemo(() => new Map(), []); // by training and step
  const adopt = async () => {
    const { id, at } = shown;
    const key = `${id} ${facts.at}`;
    if (!adopted.has(key)) adopted.set(key, await ask("adopt", { id, at }));
    return adopted.get(key);
  };
  const open = trying(async () => {
    const { model, length } = await adopt();
    const [stack, kind] = picked?.name.split(".") ?? [];
    const head = picked
      ? { site: siteName({ ...picked, stack, kind }), head: picked.head }
      : facts.best;
    /** @type {Record<string, string>} */
    const place = head ? { site: head.site, head: String(head.head) } : {};
    await apply({ ...staying(), model, length: String(length), tab: "attention", ...place });
  });
  const save = trying(async () => {
    const { id, at } = shown;
    const { name, type, base64 } = await ask("checkpoint", { id, at });
    saveFile(new Blob([decodeBytes(base64)], { type }), name);
  });
  const none = !facts?.kept.length;
  return html`<div class="whatif-buttons">
      <button type="button" class="open-network" disabled=${none} onClick=${open}>${say("Open it in Attention")}</button>
      <button type="button" class="save-network" disabled=${none} onClick=${save}>${say("Save the network")}</button>
    </div>
    <p class="hint">${say("Opened, it stands in the list of models for you alone, in every tab and every What if?, until you leave. A head that was clicked is the one that is shown. Saved, it is a folder that transformer.load opens.")}</p>`;
};

const Learn = ({ props }) => {
  const part = usePart();
  const training = useTraining();
  const { declared, fields, follow, take, shown } = training;
  const { id, at, question, given } = shown;
  const [round, setRound] = useState(0);
  const again = () => setRound(round + 1);
  const [typed, type] = useState(/** @type {string | null} */ (null));
  const [picked, pick] = useState(/** @type {any} */ (null));
  const { answer, asked } = useAnswer(part, "learned", { id, at, question, round });
  const facts = asked?.id === id ? answer : null; // else another training's, until this one's arrives
  useProgress(part, id, facts, again);
  const isShown = facts !== null;
  useLayoutEffect(() => {
    if (isShown && id.startsWith(RECORDED) && !given) take(facts.plan);
  }, [id, given, isShown]);
  const kinds = Object.keys(answer?.pictures ?? {}).join();
  useLayoutEffect(() => pick(null), [kinds]);
  useLayoutEffect(() => type(null), [id]);

  const text = typed ?? answer?.question ?? "";
  const commit = trying(async () => {
    await ask("learned", { id, at, question: text.trim() }); // shows what is wrong with it
    shown.question = text.trim();
    type(null);
  });
  const best = answer?.best && {
    ...answer.best,
    label: say("{score} on the letter to be said next", {
      score: numeral(answer.best.score.toFixed(2)),
    }),
  };
  const task = answer && props.tasks[answer.plan.task];
  const control = ([field, one]) => html`<${Control} key=${field} declared=${one}
    changed=${() => follow(field)} ...${{ field, fields }} />`;
  const state = answer && {
    state: answer.state,
    step: answer.step,
    answer: answer.answer,
    right: answer.answer === answer.wanted,
    id: asked.id,
    at: answer.at,
    shown: answer.changed,
  };
  return html`<section class="learn" ...${part.attributes(state)}>
    <h3>${say("Watch it learn")}</h3>
    <p class="learn-task">${task && `${say(task.title)}: ${say(task.words)}`}</p>
    <div class="panel-controls learn-controls">${declared.map(control)}</div>
    <${Buttons} status=${answer && statusOf(asked.id, answer)} question=${text}
      ...${{ props, training, facts, again }} />
    <div class="learn-body">
      <div class="learn-curves-side">
        <${Figure} part=${part} name="learning" class="learn-curves" figure=${answer?.curves}
          label=${say("Loss and accuracy of each step")} />
        <${LookBack} ...${{ facts: answer, shown }} />
        <ul class="learn-said">${answer?.said.map((one) => html`<li>${one}</li>`)}</ul>
      </div>
      <div class="learn-heads-side">
        <h4>${say("All heads, for one example")}</h4>
        <${LearnedHeads} pictures=${answer?.pictures} ...${{ best, picked, pick }} />
        <${Question} facts=${answer} ...${{ text, type, commit }} />
        <${Afterwards} ...${{ shown, facts, picked }} />
      </div>
    </div>
  </section>`;
};
export const mount = mounted(Learn);
