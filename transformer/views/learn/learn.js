// Learn: a small network learns in front of the visitor: its curves, its heads, what it answers; and
// afterwards it is a model of this visit.

import { ask } from "../../ui/static/ask.js";
import { decodeBytes } from "../../ui/static/bytes.js";
import { el, finder } from "../../ui/static/dom.js";
import { saveFile } from "../../ui/static/files.js";
import { apply } from "../../ui/static/link.js";
import { numeral, say, sayN } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { page, showProblem } from "../../web/store.js";
import { learnedHeads } from "./learn_heads.js";
import { planControls } from "./learn_plan.js";
import { staying } from "../../ui/static/touring.js";

const RECORDED = "recorded-"; // see ui/learning.py
const PAUSES_MS = { starting: 400, running: 400, waiting: 1500, paused: 1000 };
const OUT_OF_SIGHT_MS = 5000;

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props, server }) {
  const find = finder(element);
  const root = find(".learn");
  const back = find(".learn-back");
  const questionBox = find(".learn-question");
  const heads = learnedHeads(find(".learn-heads"), props.palette);
  // id: the training that is shown. at: a step of it, null for the last one. facts: the server's.
  /** @type {Record<string, any>} */
  const state = { id: null, at: null, question: null, facts: null, timer: 0 };
  /** @type {() => void} */
  let refresh = () => {}; // until all parts stand
  const isLive = () => ["waiting", "running", "paused"].includes(state.facts?.state);

  // ---- what is shown ----

  const recordedOf = ({ preset, n_layers, n_heads, width }) =>
    say("A recorded training: {preset}, layers: {layers}, heads: {heads}, width {width}.", {
      preset,
      layers: n_layers,
      heads: n_heads,
      width,
    });
  const drawStatus = () => {
    const { state: how, why, before, step, total } = state.facts;
    const words = {
      waiting: before
        ? sayN(
            "Waiting: {n} training before yours.",
            "Waiting: {n} trainings before yours.",
            before,
          )
        : say("Starting …"),
      running: say("Training: step {step} of {total} …", { step, total }),
      paused: say("Paused after step {step} of {total}.", { step, total }),
      ended: state.id.startsWith(RECORDED) ? recordedOf(state.facts.plan) : why,
    };
    find(".learn-status").textContent = words[how];
    find(".pause").textContent = how === "paused" ? say("Go on") : say("Pause");
    find(".pause").disabled = !["running", "paused"].includes(how);
    find(".one-step").disabled = !["running", "paused"].includes(how);
    find(".stop").disabled = !isLive();
    Object.assign(root.dataset, { state: how, step });
  };
  const drawSlider = () => {
    const { kept, at } = state.facts;
    const places = isLive() && !kept.includes(state.facts.step) ? [...kept, null] : kept;
    state.places = places;
    back.max = Math.max(0, places.length - 1);
    back.disabled = places.length < 2;
    back.value = state.at === null ? back.max : places.indexOf(state.at);
    find(".learn-at").textContent = at;
    back.setAttribute("aria-valuetext", say("step {step}", { step: at }));
    for (const name of [".open-network", ".save-network"]) find(name).disabled = !kept.length;
  };
  const drawAnswer = () => {
    const { question, answer, wanted } = state.facts;
    if (document.activeElement !== questionBox) questionBox.value = question;
    find(".learn-answer").textContent = answer || "…";
    find(".learn-wanted").textContent =
      answer === wanted ? say("(right)") : say("(right would be {wanted})", { wanted });
    Object.assign(root.dataset, { answer, right: answer === wanted });
  };
  const draw = async (current) => {
    if (state.id === null) state.id = RECORDED + controls.plan().task;
    const { id, at, question } = state;
    const facts = await ask(server.learned, { id, at, question, dark: page.dark });
    if (!current() || state.id !== id) return;
    const first = !state.facts || state.facts.id !== id;
    state.facts = facts;
    if (first && id.startsWith(RECORDED) && !state.given) controls.show(facts.plan);
    const task = props.tasks[facts.plan.task];
    find(".learn-task").textContent = `${say(task.title)}: ${say(task.words)}`;
    drawStatus();
    drawSlider();
    drawAnswer();
    find(".learn-said").replaceChildren(...facts.said.map((text) => el("li", "", text)));
    const label = say("{score} on the letter to be said next", {
      score: facts.best && numeral(facts.best.score.toFixed(2)),
    });
    heads.draw(facts.pictures, facts.best && { ...facts.best, label });
    await drawFigure(find(".learn-curves"), facts.curves);
    if (!current()) return;
    Object.assign(root.dataset, { id, at: facts.at, shown: facts.changed });
    wait();
  };

  // ---- a training under way ----

  const wait = () => {
    clearTimeout(state.timer);
    if (!isLive()) return;
    const { state: how, before } = state.facts;
    const seen = root.getClientRects().length > 0;
    const pace = how === "waiting" && !before ? "starting" : how; // it may be over in a second
    const pause = seen ? PAUSES_MS[pace] : OUT_OF_SIGHT_MS;
    state.timer = window.setTimeout(look, pause);
  };
  const look = async () => {
    const { id, facts } = state;
    try {
      const { changed } = await ask(server.learned, { id, known: facts.changed });
      if (state.id !== id) return;
      if (changed === facts.changed || !root.getClientRects().length) return wait();
      return refresh();
    } catch (error) {
      return showProblem(error.message);
    }
  };
  const show = (id, given = false) => {
    clearTimeout(state.timer);
    Object.assign(state, { id, at: null, question: null, facts: null, given });
    refresh();
  };
  // A mistake is told in the page's status; the part stays as it is.
  const trying = (work) => async () => {
    try {
      await work();
    } catch (error) {
      showProblem(error.message);
    }
  };
  const steer = (choose) =>
    trying(async () => {
      await ask(server.steer, { id: state.id, do: choose() });
      refresh();
    });
  find(".train").addEventListener(
    "click",
    trying(async () => {
      const wanted = { plan: controls.plan(), question: questionBox.value };
      const { id } = await ask(server.train, wanted);
      show(id);
    }),
  );
  find(".pause").addEventListener(
    "click",
    steer(() => (state.facts.state === "paused" ? "go" : "pause")),
  );
  find(".one-step").addEventListener(
    "click",
    steer(() => "step"),
  );
  find(".stop").addEventListener(
    "click",
    steer(() => "stop"),
  );
  find(".recorded").addEventListener("click", () => show(RECORDED + controls.plan().task));
  find(".to-moments").hidden = !props.moments;
  find(".to-moments").addEventListener("click", () => {
    document.querySelector(".moments")?.scrollIntoView({ block: "start" });
  });
  back.addEventListener("input", () => {
    const place = Number(back.value);
    state.at = place === state.places.length - 1 ? null : state.places[place];
    refresh();
  });
  questionBox.addEventListener(
    "change",
    trying(async () => {
      const { id, at } = state;
      const question = questionBox.value.trim();
      await ask(server.learned, { id, at, question }); // says what is wrong with it
      state.question = question;
      refresh();
    }),
  );

  // ---- afterwards: a model of this visit ----

  const adopted = new Map(); // by training and step
  const adopt = async () => {
    const { id, at } = state;
    const key = `${id} ${state.facts.at}`;
    if (!adopted.has(key)) adopted.set(key, await ask(server.adopt, { id, at }));
    return adopted.get(key);
  };
  find(".open-network").addEventListener(
    "click",
    trying(async () => {
      const { model, length } = await adopt();
      const { best } = state.facts;
      const head = heads.chosen() ?? best;
      /** @type {Record<string, string>} */
      const place = head ? { site: head.site, head: String(head.head) } : {};
      await apply({ ...staying(), model, length: String(length), tab: "attention", ...place });
    }),
  );
  find(".save-network").addEventListener(
    "click",
    trying(async () => {
      const { id, at } = state;
      const { name, type, base64 } = await ask(server.checkpoint, { id, at });
      saveFile(new Blob([decodeBytes(base64)], { type }), name);
    }),
  );

  const controls = planControls(
    find(".learn-controls"),
    (task) => show(RECORDED + task),
    (task) => show(RECORDED + task, true),
  );
  refresh = redrawWhen(root, [], draw);
}
