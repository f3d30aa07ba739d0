// The page of one run: fills it from the data in #data. Token text goes to it through textContent only.

import { el, fillSelect } from "../../../ui/static/dom.js";
import { numeral, say } from "../../../ui/static/messages.js";
import { takePlotlyFrom } from "../../../ui/static/plotly.js";
import { on, setQuery, setRun } from "../../../ui/static/state.js";
import { mountAttention } from "./attention.js";
import { candidateRows } from "./candidates.js";
import { pictureList } from "./gallery.js";
import { canUnpack, gunzip, unpack } from "./pack.js";

/** @type {(id: string) => any} */
const byId = (id) => document.getElementById(id);

const tell = (text) => {
  byId("problem").textContent = text;
  byId("problem").hidden = false;
  byId("content").hidden = true;
};

const drawTokens = ({ source, tokens, run }) => {
  byId("source").replaceChildren(...source.map((label) => el("bdi", "", label)));
  byId("source").hidden = !source.length;
  const buttons = tokens.map(({ label, step, probability }, index) => {
    const button = el("button", step === null ? "" : "generated", label);
    button.title =
      step === null
        ? say("token {place}", { place: index })
        : say("token {place}, probability {probability}", {
            place: index,
            probability: numeral(probability.toFixed(4)),
          });
    if (step !== null) button.style.setProperty("--p", probability);
    button.addEventListener("click", () => setQuery({ stack: run.stack, index }));
    return button;
  });
  byId("tokens").replaceChildren(...buttons);
};

const drawStep = ({ steps }, index) => {
  const { window: seen, n_kept: kept } = steps[index];
  byId("step").value = index;
  byId("step-note").textContent = say(
    "This step read tokens {first} to {last}; {count} tokens could be drawn.",
    { first: seen[0], last: seen[1] - 1, count: kept },
  );
  byId("candidates").replaceChildren(...candidateRows(steps[index]));
};

const showChosenToken = (data) => (token) => {
  const place = token?.stack === data.run.stack ? token.index : -1;
  const buttons = [...byId("tokens").children];
  buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(at === place)));
  const step = data.tokens[place]?.step ?? null;
  if (step !== null) drawStep(data, step);
};

const drawAgainWhenNeeded = (draw) => {
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  let width = window.innerWidth;
  const all = () => {
    document.documentElement.classList.toggle("dark", darkness.matches);
    draw(darkness.matches);
  };
  darkness.addEventListener("change", all);
  window.addEventListener("resize", () => {
    if (Math.abs(window.innerWidth - width) < 8) return;
    width = window.innerWidth;
    all();
  });
  all();
};

const show = (data) => {
  setRun(data.run);
  byId("model").textContent = data.model;
  byId("summary").textContent = data.summary;
  drawTokens(data);
  on("query", showChosenToken(data));
  fillSelect(
    byId("step"),
    Array.from(data.steps, (_, index) => [index, index + 1]),
    0,
  );
  byId("prediction").hidden = !data.steps.length;
  byId("step").addEventListener("change", (event) => drawStep(data, Number(event.target.value)));
  if (data.steps.length) drawStep(data, 0);
  const drawings = [
    mountAttention(byId("attention"), data),
    pictureList(byId("masks"), data.masks),
    pictureList(byId("positions"), data.positions),
    pictureList(byId("more"), data.more, { closed: true }),
  ];
  drawAgainWhenNeeded((dark) => {
    for (const draw of drawings) draw(dark ? data.colours : null);
  });
};

const start = async () => {
  if (!canUnpack) {
    return tell(
      say(
        "This browser cannot unpack the page’s data: it has no DecompressionStream. " +
          "Browsers made since 2023 have.",
      ),
    );
  }
  const texts = ["data", "plotly"].map((id) => byId(id).textContent);
  const parts = await Promise.all([unpack(texts[0]), gunzip(texts[1])]).catch(() => null);
  if (!parts) return tell(say("The page’s data is damaged; save the page again."));
  const [data, library] = parts;
  takePlotlyFrom(() => URL.createObjectURL(new Blob([library], { type: "text/javascript" })));
  return show(data);
};
start();
