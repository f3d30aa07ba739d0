// Heads to silence, as a grid of switches; and what each head alone matters for one token.

import { ask } from "../../ui/static/ask.js";
import { colourAt } from "../../ui/static/colours.js";
import { el, finder, setTabStop, tokenElement } from "../../ui/static/dom.js";
import {
  alter,
  generates,
  interventions,
  isSilent,
  silenceOf,
  withSilence,
} from "../../ui/static/interventions.js";
import { placeOrLast } from "../../ui/static/looked_at.js";
import { say, sayN, sayWith } from "../../ui/static/messages.js";
import { drawHeadMap } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { on, page } from "../../web/store.js";
import { drawKindButtons } from "../attention/switches.js";
import { mapInWords, mostInWords } from "./matter_words.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".silence");
  const grid = find(".silence-grid");
  const box = find("[data-picture=importance]");
  const NUMBER_PX = 46; // room for a signed number in a cell of the map
  // chosen: names of heads of every kind. place: of the token that the map is of, null without one.
  /** @type {Record<string, any>} */
  const state = { kind: 0, by: "zero", chosen: new Set(), place: null, strips: null };

  const kind = () => page.run.kinds[state.kind];
  const nameOf = ({ stack, kind: sort, layer, head }) => [stack, layer, sort, head].join(".");
  const headAt = (layer, head) => ({ stack: kind().stack, kind: kind().kind, layer, head });

  // ---- the switches ----

  const buttons = () => [...grid.querySelectorAll("button")];
  const toggle = (head) => {
    const name = nameOf(head);
    if (!state.chosen.delete(name)) state.chosen.add(name);
    mark();
  };
  const makeButton = (layer, head) => {
    const button = el("button", "silenced");
    button.setAttribute("aria-label", say("Silence layer {layer}, head {head}", { layer, head }));
    button.append(el("span", "", head), el("i"));
    button.addEventListener("click", () => {
      setTabStop(buttons(), buttons().indexOf(button));
      toggle(headAt(layer, head));
    });
    Object.assign(button.dataset, { layer, head });
    return button;
  };
  const drawGrid = () => {
    const [layers, heads] = [kind().n_layers, page.run.n_heads];
    if (Number(grid.dataset.layers) !== layers || Number(grid.dataset.heads) !== heads) {
      Object.assign(grid.dataset, { layers, heads });
      grid.style.setProperty("--heads", heads);
      const parts = [];
      for (let layer = 0; layer < layers; layer += 1) {
        parts.push(el("span", "number", layer));
        for (let head = 0; head < heads; head += 1) parts.push(makeButton(layer, head));
      }
      grid.replaceChildren(...parts);
      setTabStop(buttons(), 0);
    }
    mark();
  };
  const mark = () => {
    for (const button of buttons()) {
      const [layer, head] = [Number(button.dataset.layer), Number(button.dataset.head)];
      button.setAttribute("aria-pressed", String(state.chosen.has(nameOf(headAt(layer, head)))));
      button.lastElementChild.style.background = state.strips?.[layer][head] ?? "";
    }
    const silent = silentNames().size;
    const silence = sayN(
      "{n} head silent in the shown run.",
      "{n} heads silent in the shown run.",
      silent,
    );
    const pending =
      state.chosen.size !== silent || [...state.chosen].some((name) => !silentNames().has(name));
    find(".silence-says").textContent = pending
      ? say("{chosen}; {silent}", {
          chosen: sayN(
            "{n} head chosen, not yet applied",
            "{n} heads chosen, not yet applied",
            state.chosen.size,
          ),
          silent: silence,
        })
      : silence;
    find(".apply").textContent =
      state.chosen.size || !silent ? say("Silence the chosen heads") : say("Let all heads speak");
    find(".apply").disabled = !state.chosen.size && !silent;
  };
  const MOVES = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  grid.addEventListener("keydown", (event) => {
    const at = event.target.closest("button")?.dataset;
    if (!at || !(event.key in MOVES)) return;
    event.preventDefault();
    const [down, right] = MOVES[event.key];
    const [layer, head] = [Number(at.layer) + down, Number(at.head) + right];
    const to = buttons().findIndex(
      (one) => Number(one.dataset.layer) === layer && Number(one.dataset.head) === head,
    );
    if (to < 0) return;
    setTabStop(buttons(), to);
    buttons()[to].focus();
  });

  // ---- from and to interventions ----

  const silences = () => interventions().filter(({ type }) => type === "silence");
  const silentNames = () =>
    new Set(
      silences().flatMap(({ stack, kind: sort = "self", layer, heads }) =>
        heads.map((head) => nameOf({ stack, kind: sort, layer, head })),
      ),
    );
  const wanted = () => {
    const sites = new Map();
    for (const name of [...state.chosen].sort()) {
      const [stack, layer, sort, head] = name.split(".");
      const site = [stack, layer, sort].join(".");
      if (!sites.has(site)) sites.set(site, { stack, kind: sort, layer: Number(layer), heads: [] });
      sites.get(site).heads.push(Number(head));
    }
    return [...sites.values()].map((site) =>
      silenceOf(
        site,
        site.heads.sort((a, b) => a - b),
        state.by,
      ),
    );
  };
  const others = () => interventions().filter(({ type }) => type !== "silence");
  find(".apply").addEventListener("click", () => alter([...others(), ...wanted()]));
  find(".none").addEventListener("click", () => {
    state.chosen.clear();
    mark();
  });

  // ---- what each head matters ----

  const drawMost = ({ most, label }) => {
    const says = find(".matter-most");
    says.hidden = false;
    says.replaceChildren(...mostInWords(most, label), " ");
    if (isSilent(most)) return;
    const button = el("button", "silence-most", say("Silence head {layer}·{head}", most));
    button.addEventListener("click", () => alter(withSilence(most)));
    says.append(button);
  };
  const drawMatter = async (current) => {
    const { stack, kind: sort } = kind();
    const { place, by } = state;
    const asked = { run: page.run.run, place, stack, kind: sort, by, dark: page.dark };
    const answer = await ask(server.importance, asked);
    if (!current()) return;
    const { change, limit, label } = answer;
    find(".matter-box").hidden = false;
    drawMost(answer);
    find(".matter-title").replaceChildren(
      ...sayWith("Change of ln p of token {place}, “{token}”, when each head alone is silenced", {
        place,
        token: tokenElement(label),
      }),
    );
    find(".matter-says").textContent = mapInWords(answer, by);
    const figure = await drawHeadMap(box, answer.figure, change.length, NUMBER_PX, {
      plotly_click: ({ points }) => toggle(headAt(points[0].y, points[0].x)),
    });
    const { colorscale } = figure.data[0];
    state.strips = change.map((row) =>
      row.map((value) => colourAt(colorscale, (value / limit + 1) / 2)),
    );
    mark();
    Object.assign(root.dataset, { matter: `${place} ${by}` });
  };
  find(".matter").addEventListener("click", () => {
    state.place = placeOrLast();
    refresh();
  });
  const drawQuestion = () => {
    if (!page.run) return;
    const place = placeOrLast();
    find(".matter").replaceChildren(
      ...sayWith("How much does each head matter for “{token}”, token {place}?", {
        token: tokenElement(page.run.labels[place]),
        place,
      }),
    );
  };

  // ---- choices ----

  const drawKinds = () =>
    drawKindButtons(find(".kinds"), state.kind, ({ stack, kind: sort }) => {
      state.kind = page.run.kinds.findIndex((one) => one.stack === stack && one.kind === sort);
      state.strips = null;
      refresh();
    });
  for (const input of element.querySelectorAll(".silenced-by input")) {
    input.addEventListener("change", () => {
      state.by = input.value;
      refresh();
    });
  }
  const take = () => {
    const by = silences()[0]?.by ?? state.by;
    Object.assign(state, { by, chosen: silentNames(), place: null, strips: null });
    if (!page.run.kinds[state.kind]) state.kind = 0;
    find(`.silenced-by input[value=${by}]`).checked = true;
  };
  const draw = async (current) => {
    if (!page.run) return;
    root.dataset.generates = generates();
    drawKinds();
    drawGrid();
    drawQuestion();
    if (state.place !== null) await drawMatter(current);
    else for (const part of [".matter-box", ".matter-most"]) find(part).hidden = true;
    if (current()) root.dataset.run = page.run.run;
  };
  if (page.run) take();
  on("run", take);
  on("query", drawQuestion);
  const refresh = redrawWhen(root, ["run"], draw);
}
