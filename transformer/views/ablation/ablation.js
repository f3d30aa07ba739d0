// Heads to ablate, as a grid of switches, and a button for the page's chosen head.

import {
  alter,
  experiment,
  generates,
  interventions,
  isAblated,
  ablationOf,
  withAblation,
} from "../../ui/static/interventions.js";
import { say, sayN } from "../../web/messages.js";
import { siteName } from "../../web/sites.js";
import { movedCell } from "../../web/cells.js";
import { KindButtons, Switch } from "../../web/controls.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html, useRef, useState } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { coloursOf, Matter } from "./matter.js";

const ablations = () => interventions().filter(({ type }) => type === "ablate");
const headsOf = (all) =>
  all.flatMap(({ stack, kind = "self", layer, heads }) =>
    heads.map((head) => ({ stack, kind, layer, head })),
  );
const namesOf = (all) => new Set(headsOf(all).map((one) => `${siteName(one)}.${one.head}`));

// What is chosen here of the shown run, [state, change(some of it)]: kind, its place among the run's;
// chosen, what is to be ablated, as plain values; by; and place, of the token that the map is of.
const useChoices = () => {
  const { run } = page;
  const [kept, keep] = useState(/** @type {any} */ ({ of: null, kind: 0, by: "zero" }));
  const first = () => ({
    of: run?.run,
    kind: run?.kinds[kept.kind] ? kept.kind : 0,
    by: ablations()[0]?.by ?? kept.by,
    chosen: headsOf(ablations()).reduce(
      (all, head) => (isAblated(head, all) ? all : withAblation(head, all)),
      [],
    ),
    place: null,
  });
  const state = kept.of === run?.run ? kept : first();
  return [state, (changed) => keep({ ...state, ...changed })];
};

// ---- the switches ----

// colours: of the strip under each head, [layer][head].
const Grid = ({ kind: { stack, kind, n_layers: layers }, chosen, toggle, colours }) => {
  const buttons = useRef(/** @type {any[]} */ ([]));
  const [stop, setStop] = useState({ row: 0, column: 0 }); // the one in the tab order
  const across = page.run.n_heads;
  const last = { row: layers - 1, column: across - 1 };
  const at = stop.row > last.row || stop.column > last.column ? { row: 0, column: 0 } : stop;
  const press = (event, from) => {
    const to = movedCell(event.key, from, last);
    if (!to) return;
    event.preventDefault();
    setStop(to);
    buttons.current[to.row * across + to.column].focus();
  };
  const button = (layer, head) => {
    const cell = { row: layer, column: head };
    const one = { stack, kind, layer, head };
    const choose = () => {
      setStop(cell);
      toggle(one);
    };
    return html`<button type="button" class="ablated" onClick=${choose}
      aria-label=${say("Switch off layer {layer}, head {head}", { layer, head })}
      aria-pressed=${String(isAblated(one, chosen))}
      tabindex=${at.row === layer && at.column === head ? 0 : -1}
      onKeyDown=${(event) => press(event, cell)}
      ref=${(made) => (buttons.current[layer * across + head] = made)}>
      <span>${head}</span><i style=${{ background: colours?.[layer][head] ?? "" }} />
    </button>`;
  };
  const heads = Array.from({ length: across }, (_, head) => head);
  const row = (_, layer) => [
    html`<span class="number">${layer}</span>`,
    heads.map((head) => button(layer, head)),
  ];
  return html`<div class="ablation-grid" role="group" style=${{ "--heads": across }}
    aria-label=${say("Heads to switch off: arrow keys move, Space chooses")}>
    ${Array.from({ length: layers }, row)}
  </div>`;
};

const ablatedNow = () =>
  sayN(
    "{n} head switched off in the shown run.",
    "{n} heads switched off in the shown run.",
    namesOf(ablations()).size,
  );
const inWords = (chosen) => {
  const [wanted, off] = [namesOf(chosen), namesOf(ablations())];
  const now = ablatedNow();
  const pending = wanted.size !== off.size || [...wanted].some((name) => !off.has(name));
  if (!pending) return now;
  const told = sayN(
    "{n} head chosen, not yet applied",
    "{n} heads chosen, not yet applied",
    wanted.size,
  );
  return say("{chosen}; {off}", { chosen: told, off: now });
};
const apply = ({ chosen, by }) =>
  alter([
    ...interventions().filter(({ type }) => type !== "ablate"),
    ...chosen.map((one) => ablationOf({ kind: "self", ...one }, one.heads, by)),
  ]);
const Switches = ({ state, change, toggle, colours }) => {
  const { chosen, kind } = state;
  const none = !chosen.length && !ablations().length;
  return html`<div>
    <${Grid} kind=${page.run.kinds[kind]} ...${{ chosen, toggle, colours }} />
    <p class="hint">${say("Layers go down, heads across. A chosen head is crossed out; the strip under it has its colour in the map.")}</p>
    <div class="whatif-buttons">
      <button type="button" class="main apply" disabled=${none} onClick=${() => apply(state)}>${
        chosen.length || none
          ? say("Switch off the chosen heads")
          : say("Switch all heads on again")
      }</button>
      <button type="button" class="none" onClick=${() => change({ chosen: [] })}>${say("Choose none")}</button>
    </div>
    <p class="ablation-says" role="status">${inWords(chosen)}</p>
  </div>`;
};

// ---- all of it ----

const BY = [
  ["zero", say("zero")],
  ["mean", say("its mean")],
];

const Ablation = () => {
  const part = usePart();
  const [state, change] = useChoices();
  const { run, dark } = page;
  const { place, by } = state;
  const { stack, kind } = run?.kinds[state.kind] ?? {};
  const found = useAnswer(
    part,
    "importance",
    place !== null && { run: run.run, place, stack, kind, by, dark },
  );
  const answer = place !== null && found.asked?.run === run.run ? found.answer : null;
  const { asked } = found;
  const isOfKind = answer && asked.stack === stack && asked.kind === kind;
  const toggle = (head) => change({ chosen: withAblation(head, state.chosen) });
  const colours = isOfKind && coloursOf(answer);
  return html`<section class="ablation whatif" ...${part.shows({ run: run?.run, matter: answer ? `${asked.place} ${asked.by}` : undefined })}>
    <p>${say("What a head read is left out before it is added to the residual stream: it is set to zero, or replaced by its mean over the text (in the decoder, over the text so far).")}</p>
    <div class="whatif-head">
      <${KindButtons} name=${say("Which attention's heads")} kinds=${run?.kinds ?? []}
        chosen=${state.kind} choose=${(index) => change({ kind: index })} />
      <${Switch} name="ablated-by" title=${say("Replaced by")} options=${BY} value=${by}
        set=${(how) => change({ by: how })} />
    </div>
    ${
      run &&
      html`<div class="ablation-body">
        <${Switches} ...${{ state, change, toggle, colours }} />
        <${Matter} ...${{ part, answer, asked, toggle, change }} />
      </div>`
    }
  </section>`;
};
export const mount = mounted(...experiment(Ablation, ablatedNow));

// ---- beside a head's picture ----

// Ablates the page's chosen head, or ends that.
export const AblateButton = () => {
  const { head } = page;
  return html`<button type="button" class="ablate-head" disabled=${!head || !generates()}
    onClick=${() => alter(withAblation(head))}>${
      head && isAblated(head)
        ? say("Switch this head on again")
        : say("Switch off this head (ablate)")
    }</button>`;
};
