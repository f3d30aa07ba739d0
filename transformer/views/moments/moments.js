// Moments: the story model at ten steps of its training, as they were recorded.

import { ask } from "../../ui/static/ask.js";
import { decodeBytes } from "../../ui/static/bytes.js";
import { el, fillSelect, finder, nextPaint, tokenElement } from "../../ui/static/dom.js";
import { declaredFields } from "../../ui/static/fields.js";
import { numeral, say, wholeText } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { fieldsOf } from "../../ui/static/schema.js";
import { page } from "../../web/store.js";
import { headGrid, headName } from "../attention/grid.js";

const OF = { stack: "decoder", kind: "self" };
const MOST_NATS = 8; // of the darkest shade
const HIGHEST_PX = 560; // of the large head

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props, server }) {
  const find = finder(element);
  const root = find(".moments");
  const back = find(".moments-back");
  const declared = Object.entries(fieldsOf("moments"));
  /** @type {any} */
  let facts = null;
  /** @type {() => void} */
  let refresh = () => {}; // until all parts stand
  const set = (values) => {
    for (const [name, value] of Object.entries(values)) state[`moments.${name}`] = value;
    refresh();
  };

  let asked = false; // for by a link, while this tab is open
  const isOpen = () => root.getClientRects().length > 0;
  const bringIntoView = () => root.scrollIntoView({ block: "start" });

  const grid = headGrid(find(".moments-heads"), props.palette, (layer, head) =>
    set({ layer, head }),
  );
  const drawHeads = ({ picture, signs, layer, head }) => {
    const { shape, pixels, masked } = picture;
    grid.label(OF, signs);
    grid.draw({ shape, pixels: decodeBytes(pixels), masked: decodeBytes(masked) }, OF);
    grid.mark(layer, head);
  };
  const drawSlider = ({ steps, step, total }) => {
    Object.assign(back, { max: steps.length - 1, disabled: false, value: steps.indexOf(step) });
    back.setAttribute("aria-valuetext", say("step {step} of {total}", { step, total }));
    find(".moments-at").textContent = wholeText(step);
  };
  const drawTokens = ({ labels, surprise, mean }) => {
    const tokens = labels.map((label, place) => {
      const nats = surprise[place];
      const token = el("span");
      token.append(
        tokenElement(label),
        el("small", "", nats === null ? "–" : numeral(nats.toFixed(1))),
      );
      token.style.setProperty("--read", Math.min(1, (nats ?? 0) / MOST_NATS).toFixed(2));
      return token;
    });
    find(".moments-tokens").replaceChildren(...tokens);
    const said = say("Below each token its surprise in nats; the mean is {mean}.", {
      mean: numeral(mean.toFixed(2)),
    });
    find(".moments-mean").textContent = said;
  };
  const draw = async (current) => {
    const wanted = declared.map(([field, one]) => [one.name, state[field]]);
    const found = await ask(server.moment, { ...Object.fromEntries(wanted), dark: page.dark });
    if (!current()) return;
    facts = found;
    find(".moments-about").textContent = facts.about;
    drawSlider(facts);
    find(".learn-said").replaceChildren(...facts.said.map((text) => el("li", "", text)));
    find(".moments-start").textContent = facts.start;
    find(".moments-rest").textContent = facts.wrote;
    const { sentences } = facts;
    const chosen = state["moments.sentence"];
    fillSelect(
      find(".moments-sentence"),
      sentences.map((text, place) => [place, text]),
      chosen,
    );
    drawTokens(facts);
    drawHeads(facts);
    find(".moments-title").textContent = headName(facts.layer, facts.head);
    const large = find(".moments-large");
    large.setAttribute("aria-label", headName(facts.layer, facts.head));
    await drawFigure(find(".moments-curves"), facts.curves);
    if (!current()) return;
    const side = { width: large.parentElement.clientWidth, height: HIGHEST_PX };
    await drawFigure(large, facts.large, { fit: { side, bar: true } });
    if (!current()) return;
    if (asked) bringIntoView(); // what stands above has grown meanwhile
    asked = false;
    Object.assign(root.dataset, { step: facts.step, layer: facts.layer, head: facts.head });
  };

  back.addEventListener("input", () => set({ step: facts.steps[Number(back.value)] }));
  const choice = find(".moments-sentence");
  choice.addEventListener("change", () => set({ sentence: Number(choice.value) }));
  const state = declaredFields("moments", (now) => {
    refresh();
    asked = declared.some(([field, one]) => now[field] !== one.default) && isOpen();
    if (asked) nextPaint().then(bringIntoView);
  });
  refresh = redrawWhen(root, [], draw);
}
