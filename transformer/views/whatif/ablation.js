// Heads to ablate, as a grid of switches, and a button for the page's chosen head.

import {
  alter,
  isAblated,
  withAblation,
  experiment,
  headWords,
  interventions,
  ablatesHeads,
  ablationOf,
} from "../../web/runs.js";
import { colourAt, scaleOf, themed } from "../../web/theme.js";
import { Figure } from "../../web/figure.js";
import { PredictedToken, predictedPosition, tokenAt } from "../../web/selection.js";
import { capital, colourEnds, numeral, say, sayList, sayN, sayWith } from "../../web/messages.js";
import { html, useState } from "../../web/preact.js";
import { headName, siteName } from "../../web/sites.js";
import { page } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { useButtonKeys } from "../../web/cells.js";
import { KindButtons, Switch } from "../../web/controls.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { headLabel, kindAsked, knownHead, knownHeads, useMetrics } from "../attention/numbers.js";

// The importance of each head for one token: a button, the most important head, and a map.

/** @type {(probability: number) => string} */
const percent = (probability) => `${numeral((100 * probability).toPrecision(3))} %`;

// The most important head for the token with this label.
/** @param {import("./types").HeadEffect} most @param {string} label */
const mostInWords = (most, label) => {
  const { before, after } = most;
  const does = headLabel(most);
  const head = capital(headWords(most));
  const values = {
    head: does ? say("{name} ({part})", { name: head, part: does }) : head,
    token: html`<${Token} label=${label} />`,
    before: percent(before),
    after: percent(after),
  };
  return sayWith(
    "{head} has the largest effect of all heads on this token: without it, “{token}” goes from {before} to {after}.",
    values,
  );
};
// The meaning of the map's colours.
/** @type {(answer: import("./types").Importance) => string} */
const mapInWords = ({ log_probability: intact, limit }) =>
  [
    say("With all heads the intact network gives it p = {probability}.", {
      probability: numeral(Math.exp(intact).toFixed(4)),
    }),
    say("Purple: the token becomes less likely, so the head helped it. Orange: likelier."),
    say(
      "The colours go from {least} to {most}. Click a cell to choose its head.",
      colourEnds(limit),
    ),
  ].join(" ");

/** @param {{ part: import("../../web/part.js").Part, answer: import("./types").Importance, asked: import("./types").ImportanceAsked, toggle: (head: import("../../web/types").Head) => void }} props */
const ImportanceMap = ({ part, answer, asked, toggle }) => {
  const { stack, kind, position } = asked;
  const title = sayWith(
    "Change of ln p of token {place}, “{token}”, when each head alone is switched off",
    tokenAt(position, answer.label),
  );
  const choose = (
    /** @type {import("../../web/types").Pointed} */ { points: [{ x: layer, y: head }] },
  ) => toggle({ stack, kind, layer, head });
  return html`<div class="matter-box">
    <h4 class="matter-title">${title}</h4>
    <p class="matter-says">${mapInWords(answer)}</p>
    <${Figure} part=${part} name="importance" figure=${answer.figure}
      on=${{ plotly_click: choose }} />
  </div>`;
};
// Which head matters for the selected token, with a map of all.
/** @param {{ part: import("../../web/part.js").Part, answer: import("./types").Importance | null, asked: import("./types").ImportanceAsked | null, toggle: (head: import("../../web/types").Head) => void, change: (part: Partial<import("./types").AblationChoices>) => void }} props */
const HeadImportance = ({ part, answer, asked, toggle, change }) => {
  const position = predictedPosition();
  /** @param {import("./types").HeadEffect} most */
  const button = (most) =>
    html` <button type="button" class="ablation-most"
      onClick=${() => alter(withAblation(most, interventions(), asked?.by))}>${say("Switch off {head}", { head: headName(most) })}</button>`;
  return html`<div>
    <${PredictedToken} />
    <div class="whatif-buttons">
      <button type="button" class="matter" onClick=${() => change({ position })}>${say("How much does each head matter?")}</button>
    </div>
    <p class="matter-most" role="status" hidden=${!answer}>
      ${answer && [mostInWords(answer.most, answer.label), !isAblated(answer.most) && button(answer.most)]}
    </p>
    ${answer && html`<${ImportanceMap} part=${part} answer=${answer} asked=${asked} toggle=${toggle} />`}
  </div>`;
};
// The colour of each head in the map, [layer][head].
/** @type {(answer: import("./types").Importance) => string[][]} */
const coloursOf = ({ change, limit }) => {
  const scale = (page.dark, scaleOf(themed("effects").split(" ")));
  return change.map((row) => row.map((value) => colourAt(scale, (value / limit + 1) / 2)));
};

const ablations = () =>
  /** @type {import("./types").Ablation[]} */ (interventions().filter(ablatesHeads));
/** @type {(all: import("./types").Ablation[]) => import("../../web/types").Head[]} */
const headsOf = (all) =>
  all.flatMap(({ stack, kind = "self", layer, heads }) =>
    heads.map((head) => ({ stack, kind, layer, head })),
  );
/** @type {(all: import("./types").Ablation[]) => Set<string>} */
const namesOf = (all) => new Set(headsOf(all).map((head) => `${siteName(head)}.${head.head}`));

/** @type {(head: import("../../web/types").Head, all: import("./types").Ablation[]) => import("./types").Ablation[]} */
const withHead = (head, all) =>
  /** @type {import("./types").Ablation[]} */ (withAblation(head, all));

/** @type {import("./types").AblationChoices} */
const NO_CHOICES = { of: "", kind: 0, by: "zero", chosen: [], position: null };
// The choices for the shown run, [state, change(part of it)]: kind, its index among the run's; chosen, the
// ablations as plain values; by; and position, of the map's token.
/** @type {() => [import("./types").AblationChoices, (part: Partial<import("./types").AblationChoices>) => void]} */
const useChoices = () => {
  const { run } = page;
  const [choices, setChoices] = useState(
    /** @type {import("./types").AblationChoices} */ (NO_CHOICES),
  );
  const first = () => ({
    of: run?.run,
    kind: run?.kinds[choices.kind] ? choices.kind : 0,
    by: ablations()[0]?.by ?? choices.by,
    chosen: headsOf(ablations()).reduce(
      (all, head) => (isAblated(head, all) ? all : withHead(head, all)),
      NO_CHOICES.chosen,
    ),
    position: null,
  });
  const state = choices.of === run?.run ? choices : first();
  return [state, (changed) => setChoices({ ...state, ...changed })];
};

// ---- the switches ----

// colours: of the strip under each head, [layer][head].
/** @param {{ kind: import("../../web/store.js").Kind, chosen: import("./types").Ablation[], toggle: (head: import("../../web/types").Head) => void, colours: string[][] | null }} props */
const Grid = ({ kind: { stack, kind, n_layers: layers }, chosen, toggle, colours }) => {
  const [stop, setStop] = useState({ row: 0, column: 0 }); // the one in the tab order
  const nHeads = page.run.n_heads;
  const last = { row: nHeads - 1, column: layers - 1 };
  const at = stop.row > last.row || stop.column > last.column ? { row: 0, column: 0 } : stop;
  const keysOf = useButtonKeys(last, setStop);
  /** @param {number} layer @param {number} head */
  const button = (layer, head) => {
    const cell = { row: head, column: layer };
    const one = { stack, kind, layer, head };
    const choose = () => {
      setStop(cell);
      toggle(one);
    };
    const name = headName(one);
    const { label, sign } = knownHead(one) ?? {};
    const title = label ? say("{title}: {part}", { title: capital(name), part: label }) : undefined;
    return html`<button type="button" class="ablated" title=${title} onClick=${choose}
      aria-label=${say("Switch off {head}", { head: label ? say("{name} ({part})", { name, part: label }) : name })}
      aria-pressed=${String(isAblated(one, chosen))}
      tabindex=${at.row === head && at.column === layer ? 0 : -1}
      ...${keysOf(head, layer)}>
      <span>${layer}·${head}${sign && html` <small class="sign">${sign}</small>`}</span><i style=${{ background: colours?.[layer][head] ?? "" }} />
    </button>`;
  };
  /** @param {unknown} _ @param {number} head */
  const row = (_, head) => Array.from({ length: layers }, (_each, layer) => button(layer, head));
  return html`<div class="ablation-grid" role="group" style=${{ "--layers": layers }}
    aria-label=${say("Heads to switch off: arrow keys move, Space chooses")}>
    ${Array.from({ length: nHeads }, row)}
  </div>`;
};

// What heads of this kind do, with those that do it: "← reads the previous token: 3·4, 4·4".
/** @param {{ kind: import("../../web/store.js").Kind }} props */
const HeadsByLabel = ({ kind }) => {
  /** @type {Map<string, { sign: string | null, heads: string[] }>} */
  const groups = new Map();
  for (const { layer, head, label, sign } of knownHeads(kindAsked(kind)) ?? []) {
    if (!label) continue;
    const group = groups.get(label) ?? { sign, heads: /** @type {string[]} */ ([]) };
    groups.set(label, group);
    group.heads.push(`${layer}·${head}`);
  }
  /** @param {[string, { sign: string | null, heads: string[] }]} group */
  const line = ([label, { sign, heads }]) =>
    html`<li><span class="sign" aria-hidden="true">${sign}</span>${say("{title}: {part}", { title: label, part: sayList(heads) })}</li>`;
  return html`<ul class="heads-by-label">${[...groups].map(line)}</ul>`;
};

const ablatedNow = () =>
  sayN(
    "{n} head switched off in the shown run.",
    "{n} heads switched off in the shown run.",
    namesOf(ablations()).size,
  );
/** @type {(chosen: import("./types").Ablation[]) => string} */
const inWords = (chosen) => {
  const [wanted, off] = [namesOf(chosen), namesOf(ablations())];
  const now = ablatedNow();
  const pending = wanted.size !== off.size || [...wanted].some((name) => !off.has(name));
  if (!pending) return now;
  const count = sayN(
    "{n} head chosen, not yet applied",
    "{n} heads chosen, not yet applied",
    wanted.size,
  );
  return say("{chosen}; {off}", { chosen: count, off: now });
};
/** @type {(choices: import("./types").AblationChoices) => void} */
const apply = ({ chosen, by }) =>
  alter([
    ...interventions().filter(({ type }) => type !== "ablate"),
    ...chosen.map((each) => ablationOf({ kind: "self", ...each }, each.heads, by)),
  ]);
/** @param {{ state: import("./types").AblationChoices, change: (part: Partial<import("./types").AblationChoices>) => void, toggle: (head: import("../../web/types").Head) => void, colours: string[][] | null }} props */
const Switches = ({ state, change, toggle, colours }) => {
  const { chosen, kind } = state;
  const none = !chosen.length && !ablations().length;
  return html`<div>
    <p class="hint">${`${say("head")} ↓ ${say("layer")} →`}</p>
    <${Grid} kind=${page.run.kinds[kind]} chosen=${chosen} toggle=${toggle} colours=${colours} />
    <${HeadsByLabel} kind=${page.run.kinds[kind]} />
    <p class="hint">${say("A chosen head is crossed out; the strip under it has its colour in the map.")}</p>
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

const REPLACEMENTS = [
  ["zero", say("zero")],
  ["mean", say("its mean")],
];

const Ablation = () => {
  const part = usePart();
  const [state, change] = useChoices();
  const { run } = page;
  const { position, by } = state;
  const shownKind = run?.kinds[state.kind];
  const { stack = "", kind = "" } = shownKind ?? {};
  useMetrics(part, shownKind ? kindAsked(shownKind) : null);
  const importance = useAnswer(
    part,
    "importance",
    position !== null && { run: run.run, position, stack, kind, by },
  );
  const answer = position !== null && importance.asked?.run === run.run ? importance.answer : null;
  const { asked } = importance;
  const isOfKind = answer && asked?.stack === stack && asked?.kind === kind;
  const toggle = (/** @type {import("../../web/types").Head} */ head) =>
    change({ chosen: withHead(head, state.chosen) });
  const colours = isOfKind && coloursOf(answer);
  return html`<section class="ablation whatif" ...${part.attributes({ run: run?.run, matter: answer ? `${asked?.position} ${asked?.by}` : undefined })}>
    <p>${say("What a head read is left out before it is added to the residual stream: it is set to zero, or replaced by its mean over the text (in the decoder, over the text so far).")}</p>
    <div class="whatif-head">
      <${KindButtons} name=${say("Which attention")} kinds=${run?.kinds ?? []}
        chosen=${state.kind} choose=${(/** @type {number} */ index) => change({ kind: index })} />
      <${Switch} name="ablated-by" title=${say("Replaced by")} options=${REPLACEMENTS} value=${by}
        set=${(/** @type {string} */ how) => change({ by: how })} />
    </div>
    ${
      run &&
      html`<div class="ablation-body">
        <${Switches} state=${state} change=${change} toggle=${toggle} colours=${colours} />
        <${HeadImportance} part=${part} answer=${answer} asked=${asked} toggle=${toggle} change=${change} />
      </div>`
    }
  </section>`;
};
export const mount = mounted(...experiment(Ablation, () => ablations().length > 0 && ablatedNow()));
