// Attention: the grid of all heads with what the clearest one does, the chosen head large, and the numbers under
// the pointer.

import { readStack } from "../../web/selection.js";
import { fields, followLinks } from "../../web/fields.js";
import { isAblated } from "../../web/runs.js";
import { wholeNumber } from "../../web/declared.js";
import { capital, numeral, say, sayWith } from "../../web/messages.js";
import { readFrom, Token } from "../../web/text.js";
import { headName, siteName } from "../../web/sites.js";
import { HeadGrid, MANY, sharedKeys } from "../../web/head_grid.js";
import { mounted, useEvent, usePart } from "../../web/part.js";
import {
  computed,
  html,
  useLayoutEffect,
  useMemo,
  useRef,
  useSignalEffect,
  useState,
} from "../../web/preact.js";
import {
  headShown,
  labelsOf,
  page,
  sameHead,
  setHead,
  setQuery,
  tracedFrom,
} from "../../web/store.js";
import { CellNumbers, newShown, useCell } from "./cell.js";
import { isHeatmap, isOffered, Large } from "./large.js";
import {
  HeadKinds,
  kindAsked,
  knownHeads,
  pictureAsked,
  prefetch,
  useAtlas,
  useMetrics,
  weightsOfToken,
} from "./numbers.js";

/**
 * @typedef {import("./types").AttentionView} View
 * @typedef {import("./types").CellState} CellState
 * @typedef {import("./types").KindAsked} KindAsked
 */

// ---- what the clearest head does, and the meaning of each sign in the grid ----

// The finding as a sentence; its link chooses the head and the token where it is clearest.
/** @param {KindAsked} of @param {import("./types").HeadFinding} finding */
const sentence = ({ stack, kind }, finding) => {
  const { clear, does, title, number, value, even, n_rows: rows, weight } = finding;
  const choose = () => {
    setHead({ stack, kind, layer: finding.layer, head: finding.head });
    setQuery({ stack, index: finding.query + tracedFrom(stack) });
  };
  const name = headName(finding);
  const pick = html`<button type="button" class="pick" onClick=${choose}
    aria-label=${say("Show {head}", { head: name })}>${clear ? capital(name) : name}</button>`;
  const values = {
    number,
    rows,
    times: numeral((value / even).toFixed(value / even < 10 ? 1 : 0)),
    value: numeral(value.toFixed(2)),
    weight: numeral(weight.toFixed(2)),
    query: html`<${Token} label=${finding.query_label} />`,
    key: html`<${Token} label=${finding.key_label} />`,
  };
  return [
    clear
      ? sayWith("The clearest of all heads on this text: {head} {does}.", { head: pick, does })
      : sayWith("No head does only one thing on this text. The nearest is {head}, “{short}”.", {
          head: pick,
          short: title,
        }),
    " ",
    sayWith(
      "{number} {value} on average over {rows} tokens, {times} times that of a " +
        "uniform head. Clearest at “{query}”: it reads “{key}” ({weight}).",
      values,
    ),
  ];
};

// The label of each sign in the grid, once.
/** @type {(heads: import("./types").MeasuredHead[]) => Map<string | null, string | null>} */
const signsOf = (heads) =>
  new Map(heads.filter(({ sign }) => sign).map(({ sign, label }) => [sign, label]));

const HeadFinding = () => {
  const part = usePart();
  const { answer, asked } = useMetrics(part);
  const sign = (/** @type {[string | null, string | null]} */ [one, words]) =>
    html`<span class="sign-words"><span class="sign">${one}</span>${words}</span>`;
  return html`<div class="head-finding" ...${part.attributes(asked)}>
    ${
      answer &&
      html`<p class="finding">${
        answer.finding
          ? sentence(/** @type {KindAsked} */ (asked), answer.finding)
          : say(
              "No head stands out on this text: choose a token in it, and look at what each head reads there.",
            )
      }</p>
      <p class="signs">${[...signsOf(answer.heads)].map(sign)}</p>`
    }
  </div>`;
};

// ---- every head ----

/** @param {{ view: View }} props */
const Heads = ({ view }) => {
  const part = usePart();
  const at = headShown();
  const { stack = "", kind = "" } = at ?? {};
  const { answer: atlas, asked: of } = useAtlas(part, at && kindAsked(at));
  const [isZoomed, zoom] = useState(false);

  /** @type {import("../../web/types").HeadChoice} */
  const choose = (layer, head) => {
    view.part.startTimer();
    setHead({ stack, kind, layer, head });
  };
  /** @type {import("../../web/types").HeadChoice} */
  const press = (layer, head) => {
    if (isHeatmap()) prefetch(pictureAsked({ stack, kind, layer, head }));
  };
  const isHere = of?.stack === stack && of?.kind === kind;
  return html`<div class="heads-side" ...${part.attributes(of ?? {})}>
    <${HeadKinds} at=${at} />
    <h3>${say("Every head")} <small class="hint">${`${say("head")} ↓ ${say("layer")} →`}</small></h3>
    <button type="button" class="zoom" aria-pressed=${String(isZoomed)} onClick=${() => zoom(!isZoomed)}
      hidden=${(atlas?.shape[1] ?? 0) <= MANY}>${say("Larger pictures")}</button>
    ${
      atlas &&
      html`<${HeadGrid} role="group" aria-label=${say("Layers and heads; arrow keys move")} chosen=${isHere ? at : null}
        signs=${[...page.votes.heads, ...(knownHeads(of) ?? [])]} share=${page.run.heads_per_key}
        isAblated=${(/** @type {number} */ layer, /** @type {number} */ head) => isAblated({ stack, kind, ...of, layer, head })}
        atlas=${atlas} choose=${choose} press=${press} isZoomed=${isZoomed} />`
    }
    <${HeadFinding} />
    <p class="hint">${say("In each picture the rows read the columns.")}</p>
  </div>`;
};

// ---- the view ----

/** @param {{ view: View }} props */
const Numbers = ({ view: { cell, shown } }) => {
  const at = headShown();
  const more = at && isHeatmap() && sharedKeys(at.head, page.run.heads_per_key);
  return html`<${CellNumbers} keys="attention-keys" cell=${cell} shown=${shown} more=${more} />`;
};

// The pinned cell in a link: "row,column", or "row" alone.
/** @type {(text: string) => import("../../web/types").LitCell} */
const cellAt = (text) => {
  const [row, column] = text.split(",");
  return { row: Number(row), column: column ? Number(column) : null };
};
/** @type {import("./types").PinSignal & { at: { value: import("../../web/types").LitCell | null } }} */
const pinned = {
  at: computed(() => (fields.cell ? cellAt(fields.cell) : null)),
  get value() {
    return this.at.value;
  },
  set value(at) {
    fields.cell = at ? [at.row, at.column].filter((place) => place !== null).join() : "";
  },
};
// The token of a linked cell's row becomes the query.
const follow = () => {
  const at = headShown();
  if (fields.cell === "" || !at) return;
  const last = (/** @type {string} */ stack) => labelsOf(stack).length - tracedFrom(stack) - 1;
  const [row, column] = fields.cell.split(",");
  const index = wholeNumber("cell's row", row, 0, last(at.stack)) + tracedFrom(at.stack);
  if (column) wholeNumber("cell's column", column, 0, last(readStack(at)));
  setQuery({ stack: at.stack, index });
};

// Keep the selection to what the shown run has, and let go of a cell of another picture.
/** @type {(cell: CellState) => void} */
const useFollowing = (cell) => {
  const settle = () => {
    const at = headShown();
    if (!at || sameHead(page.head, at)) return;
    const { stack, kind, layer, head } = at;
    page.head = { stack, kind, layer, head }; // not by a press: a feed-forward that is looked at stays
  };
  useEvent("run", () => {
    cell.letGo();
    settle();
  });
  const kind = useRef("");
  useSignalEffect(() => {
    const now = page.head && `${page.head.stack} ${page.head.kind}`;
    if (now && kind.current && kind.current !== now) cell.letGo();
    kind.current = now ?? kind.current;
  });
  useMemo(settle, []); // a link may have chosen a head before this part was mounted
};

export const Attention = () => {
  const part = usePart();
  const shown = useMemo(newShown, []);
  useMemo(() => {
    followLinks("attention", follow);
    readFrom(weightsOfToken(() => !part.isHidden));
  }, []);
  const cell = useCell(shown, pinned);
  const view = useMemo(() => ({ part, shown, cell }), []);
  useFollowing(cell);

  const at = headShown();
  const { stage, scale, range } = fields;
  const picture = at && !isOffered(fields.picture, at.kind) ? "heatmap" : fields.picture;
  useLayoutEffect(() => void (fields.picture = picture), [picture]);
  const { row, column } = cell.lit();
  const facts = at && {
    site: siteName(at),
    head: at.head,
    ...{ stage, scale, range, picture, run: page.run.run },
  };
  const sides = useMemo(
    () => html`<${Heads} view=${view} /><${Numbers} view=${view} /><${Large} view=${view} />`,
    [],
  );
  return html`<div class="attention"
    data-row=${row ?? ""} data-column=${column ?? ""} ...${part.attributes(facts ?? {})}>${sides}</div>`;
};
export const mount = mounted(Attention);
