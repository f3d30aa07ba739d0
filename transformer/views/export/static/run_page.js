// The pictures of a run: its text, attention, prediction, masks, positions and more. Token text goes to
// the page through textContent only.

import { el, fillSelect } from "../../../ui/static/dom.js";
import { numeral, say } from "../../../ui/static/messages.js";
import { on, page, setQuery, setRun } from "../../../web/store.js";
import { mountAttention } from "./attention.js";
import { candidateRows } from "./candidates.js";
import { pictureList } from "./gallery.js";

/** @type {(id: string) => any} */
export const byId = (id) => document.getElementById(id);

const drawTokens = ({ source, tokens, run }) => {
  const read = source.map((label, index) => {
    const button = el("button", "", label);
    button.title = say("token {place}", { place: index });
    button.addEventListener("click", () => setQuery({ stack: "encoder", index }));
    return button;
  });
  byId("source").replaceChildren(...read);
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

/** @type {(stack: string) => HTMLElement[]} */
const buttonsOf = (stack) => [...byId(stack === page.run.stack ? "tokens" : "source").children];

const showChosenToken = (data, token) => {
  for (const stack of [data.run.stack, "encoder"]) {
    const place = token?.stack === stack ? token.index : -1;
    buttonsOf(stack).forEach((button, at) =>
      button.setAttribute("aria-pressed", String(at === place)),
    );
  }
  const step = token?.stack === data.run.stack ? (data.tokens[token.index]?.step ?? null) : null;
  if (step !== null) drawStep(data, step);
};

export const drawAgainWhenNeeded = (draw) => {
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

// The text shaded by what the chosen token reads.
const shade = (reading) => {
  for (const id of ["tokens", "source"]) byId(id).classList.toggle("reading", Boolean(reading));
  if (!reading) return;
  for (const stack of [page.run.stack, "encoder"])
    buttonsOf(stack).forEach((button, at) => {
      const weight = reading.stack === stack ? (reading.weights[at - reading.first] ?? 0) : 0;
      button.style.setProperty("--read", Math.sqrt(weight).toFixed(3));
    });
};

const fill = (data) => {
  setRun(data.run);
  drawTokens(data);
  const places = Array.from(data.steps, (_, index) => [index, index + 1]);
  fillSelect(byId("step"), places, 0);
  byId("prediction").classList.toggle("none", !data.steps.length);
  if (data.steps.length) drawStep(data, 0);
  return [
    pictureList(byId("masks"), data.masks),
    pictureList(byId("positions"), data.positions),
    pictureList(byId("more"), data.more, { closed: true }),
  ];
};

// Returns draw(dark), and show(data, {site, head, stage}), which shows another run.
export const mountRun = (first) => {
  let data = first;
  let pictures = fill(data);
  let dark = false;
  const attention = mountAttention(byId("attention"), data);
  const colours = () => (dark ? data.colours : null);
  const drawPictures = () => {
    for (const draw of pictures) draw(colours());
  };
  const shadeText = () => shade(byId("attention").hidden ? null : attention.readBy(page.query));
  on("query", (token) => {
    showChosenToken(data, token);
    shadeText();
  });
  on("head", () => setTimeout(shadeText)); // once its numbers are there
  byId("step").addEventListener("change", (event) => drawStep(data, Number(event.target.value)));
  return {
    draw: (isDark) => {
      dark = isDark;
      attention.draw(colours());
      drawPictures();
    },
    show: (shown, at) => {
      if (shown !== data) {
        data = shown;
        pictures = fill(data);
        drawPictures();
      }
      attention.show(data, at);
      shadeText();
    },
  };
};
