// The journey: one token's way through the network, what each part adds to the next word, and the chosen head.

import { firstHead } from "../../web/selection.js";
import {
  shell,
  chosenRow,
  headShown,
  labelsOf,
  page,
  setHead,
  tracedFrom,
} from "../../web/store.js";
import { capital, numeral, say, sayWith } from "../../web/messages.js";
import { headName, kindOf, siteName } from "../../web/sites.js";
import { fontPx } from "../../web/theme.js";
import { mounted, usePart } from "../../web/part.js";
import { Later } from "../../web/scripts.js";
import { html, useMemo } from "../../web/preact.js";
import { Token, wordOf } from "../../web/text.js";
import {
  headAsked,
  HeadKinds,
  headLabel,
  kindAsked,
  prefetch,
  useAtlas,
  useMetrics,
  useNumbers,
  useReaders,
} from "../attention/numbers.js";
import { shared, useJourney } from "./next_words.js";
import { newShown, useCell } from "../attention/cell.js";
import { askTexts, HeadCard } from "./head_card.js";
import { useLeadingHead } from "./leading_head.js";
import { layerGeometryOf, partsOf } from "./geometry.js";
import { OneLayer, Picture } from "./layers.js";
import { Questions } from "./questions.js";

/**
 * @typedef {import("../../web/types").Head} Head
 * @typedef {import("../../web/part.js").Part} Part
 * @typedef {import("./types").JourneyAnswer} JourneyAnswer
 * @typedef {import("./types").PictureView} PictureView
 * @typedef {import("../attention/types").ShownHead} ShownHead
 * @typedef {import("../attention/types").Readers} ReadersAnswer
 */

// Next to the picture: the heads by which one token reads another.

// ---- who reads what ----

/** @param {{ readers: ReadersAnswer }} props */
const Readers = ({ readers }) => {
  /** @param {import("../../web/types").Query | null} token */
  const named = (token) =>
    token && html`<strong><${Token} label=${labelsOf(token.stack)[token.index]} /></strong>`;
  const [from, to] = [named(page.query), named(page.key)];
  const row = (/** @type {import("../attention/types").Reader} */ head) => html`<li>
    <button type="button" class="reader" onClick=${() => setHead(head)}>
    <span>${capital(headName(head))}${page.run.kinds.length > 1 && ` (${kindOf(head)})`}</span>
    <span class="bars"><i class="drawn" style=${{ width: `${100 * head.weight}%` }} /></span>
    <span class="value">${numeral(head.weight.toFixed(2))}</span></button>
  </li>`;
  return html`<section class="readers" aria-live="polite">
    <h3>${sayWith("Which heads read {to} at {from}?", { from, to })}</h3>
    <ol>${readers.ranked.slice(0, 5).map(row)}</ol>
    <p class="hint">${say("Their weights light up in the picture.")}${" "}
      <button type="button" class="to-tab" onClick=${() => shell.openTab("what-if")}>${say("What if one is switched off?")}</button></p>
  </section>`;
};

const MAX_PICTURED_HEADS = 96; // heads: more are cells until their layer is opened
const NARROW_PX = 440; // one layer at a time
const WIDE_PX = 860; // the chosen head is next to the picture
const PICTURE_SHARE = 0.58; // of the width is the picture's
const HEADS_A_ROW = 4; // heads in a row of one
const HEAD_PX = 60; // of a head in an opened layer, with its gap
const HEIGHT = { least: 420, alone: 560, most: 570, margin: 40, above: 360 };

// The small pictures of each kind of attention of the shown stack.
/** @type {(part: Part, kinds: import("../../web/store.js").Kind[]) => void} */
const useAtlases = (part, kinds) => {
  const [first, second] = kinds;
  useAtlas(part, first && kindAsked(first));
  useAtlas(part, second && kindAsked(second));
};

// The height left in the window, within bounds; on a phone the content above is scrolled away.
/** @type {(element: HTMLElement, isAlone: boolean) => number} */
const heightLeft = (element, isAlone) => {
  const { most, above } = HEIGHT;
  const least = isAlone ? HEIGHT.alone : HEIGHT.least;
  const margin = page.projector ? 0 : HEIGHT.margin;
  const top = Math.min(above, element.getBoundingClientRect().top + window.scrollY);
  return Math.min(most, Math.max(least, window.innerHeight - top - margin));
};

// The picture's data: the answer, or for a translator's encoder its own stream, which adds nothing to a word.
/** @type {(answer: JourneyAnswer, stack: string) => import("./types").JourneyAnswer} */
const pictureOf = (answer, stack) =>
  stack === page.run.stack
    ? answer
    : { ...answer, lens: [], ...answer.encoder, heads: null, feed_forward: null };

/** @param {{ answer: import("./types").JourneyAnswer }} props */
const Legend = ({ answer }) => {
  const word = html`<strong><${Token} label=${wordOf(answer.target_label, answer.position)} /></strong>`;
  return html`<p class="flow-legend">
    <i class="adds" />${sayWith("adds to {word}", { word })}
    <i class="takes" />${say("takes from it")}${" · "}
    ${say("the wider, the more (direct logit attribution)")}
  </p>`;
};

/** @param {{ layer: number, count: number, go: (layer: number) => void }} props */
const Steps = ({ layer, count, go }) => html`<div class="layer-steps">
  <button type="button" aria-label=${say("Previous layer")} disabled=${layer === 0} onClick=${() => go(layer - 1)}>‹</button>
  <strong>${say("Layer {layer} (0 to {last})", { layer, last: count - 1 })}</strong>
  <button type="button" aria-label=${say("Next layer")} disabled=${layer === count - 1} onClick=${() => go(layer + 1)}>›</button>
</div>`;

/** @param {{ view: PictureView, at: ShownHead, width: number }} props */
const Side = ({ view, at, width }) => {
  const { answer, height, many } = view;
  const isNarrow = width < NARROW_PX;
  const go = (/** @type {number} */ layer) => setHead({ ...firstHead(at), head: at.head, layer });
  const encoder = page.run.kinds.find(({ stack }) => stack !== page.run.stack) ?? null;
  const source = encoder && at.stack === page.run.stack ? encoder : null;
  const type = fontPx() / 14;
  const alone = useMemo(() => {
    const across = isNarrow ? HEADS_A_ROW : Math.floor(width / HEAD_PX);
    const { kinds } = view;
    return layerGeometryOf({
      width,
      layer: at.layer,
      nHeads: page.run.n_heads,
      kinds,
      across,
      type,
    });
  }, [view, width, at.layer, type]);
  const open = html`<${OneLayer} view=${view} at=${alone} />`;
  return html`<div class="journey-side">
    ${(isNarrow || !source) && html`<${HeadKinds} at=${at} />`}
    ${isNarrow ? html`<${Steps} layer=${at.layer} count=${at.n_layers} go=${go} />` : html`<${Picture} view=${view} source=${source} width=${width} height=${height - (many ? alone.height : 0)} />`}
    ${(isNarrow || many) && open}
    ${answer.heads && html`<${Legend} answer=${answer} />`}
  </div>`;
};

// ---- all of it ----

// What the card is about: a head of the network, or the words of the text; or neither, a feed-forward.
const CardKinds = () => {
  /** @param {boolean} asksWords @param {string} says */
  const one = (asksWords, says) =>
    html`<button type="button" aria-pressed=${String(!page.forward && shared.asksWords === asksWords)}
      onClick=${() => {
        page.forward = null;
        shared.asksWords = asksWords;
      }}>${says}</button>`;
  return html`<div class="card-kinds" role="group" aria-label=${say("What mattered?")}>
    ${one(false, say("Which head?"))}${one(true, say("Which words?"))}</div>`;
};

const FORWARD_CARD = ["views/journey/forward_card.js", "ForwardCard"];
const WORD_CARD = ["views/journey/word_card.js", "WordCard"];
const PASSAGES = ["views/journey/passages.js", "Passages"];
const LARGE_HEAD = ["views/journey/large_head.js", "LargeHead"];
const WAITING = html`<section class="head-card word-card" aria-busy="true" />`;

// The card of the chosen head or feed-forward, or of the words; what goes with it, and where to go on.
/** @param {{ part: Part, current: JourneyAnswer | null, at: ShownHead, numbers: import("../../web/head_numbers.js").HeadNumbers | null, row: number | null, readers: ReadersAnswer | null, large: import("preact").ComponentChild }} props */
const HeadSide = ({ part, current, at, numbers, row, readers, large }) => {
  useMetrics(part);
  const label = headLabel(at);
  const later = page.forward ? FORWARD_CARD : shared.asksWords ? WORD_CARD : null;
  return html`<div class="head-side">
    <${CardKinds} />
    ${
      later
        ? html`<${Later} key=${later} of=${later} waiting=${WAITING} part=${part} answer=${current} />`
        : html`<${HeadCard} part=${part} numbers=${numbers} at=${at} row=${row} label=${label}
      answer=${current} />`
    }
    ${label && !later && shared.showsPassages && html`<${Later} of=${PASSAGES} part=${part} at=${at} />`}
    ${readers && html`<${Readers} readers=${readers} />`}
    ${large}
    <${Questions} />
  </div>`;
};

/** @param {import("./types").BodyProps} props */
const Body = ({ part, answer, asked, current, shown, cell }) => {
  const at = /** @type {ShownHead} */ (headShown());
  const { run } = page;
  const readers = useReaders(part);
  const isWide = part.width >= WIDE_PX;
  const height = useMemo(
    () => heightLeft(part.element.current, !isWide),
    [run.run, part.width, page.projector],
  );
  const isCurrent = asked?.run === run.run;
  const view = useMemo(() => {
    const picture = pictureOf(answer, at.stack);
    const kinds = run.kinds.filter(({ stack }) => stack === at.stack);
    const isOwn = at.stack === run.stack;
    return {
      ...{
        answer: picture,
        kinds,
        many: run.n_heads * at.n_layers * kinds.length > MAX_PICTURED_HEADS,
      },
      choose: (/** @type {Head} */ head) => {
        part.startTimer();
        shared.asksWords = false;
        setHead(head);
      },
      press: (/** @type {Head} */ head) => {
        prefetch(headAsked(head));
        if (isCurrent) askTexts(answer, head);
      },
      point: (/** @type {Head | null} */ head) => isOwn && (shared.preview = head),
      open: (/** @type {import("./types").Forward} */ forward) => {
        shared.preview = null;
        page.forward = forward;
      },
      lit: readers && readers.heads,
      most: Math.max(0, ...partsOf(picture, run.n_heads).map(({ amount }) => Math.abs(amount))),
      height,
    };
  }, [run, at.stack, answer, readers, height, isCurrent]);
  const width = isWide ? Math.round(PICTURE_SHARE * part.width) : part.width;
  const columns = { gridTemplateColumns: isWide ? `${width}px minmax(0, 1fr)` : "minmax(0, 1fr)" };
  const isOwn = at.stack === run.stack;
  const row = chosenRow(at.stack) ?? (isOwn ? answer.position - tracedFrom(at.stack) : null);
  const numbers = useNumbers(part, shown, headAsked(at));
  const large =
    shared.isLarge &&
    html`<${Later} of=${LARGE_HEAD} part=${part} height=${height} shown=${shown} numbers=${numbers}
      cell=${cell} at=${at} row=${row} />`;
  // The large head is in the picture's place where there is room for two columns: in sight.
  return html`<div class="journey-body" style=${columns}>
    ${isWide && large ? large : html`<${Side} view=${view} at=${at} width=${width} />`}
    <${HeadSide} part=${part} current=${current} at=${at} numbers=${numbers} row=${row} readers=${readers} large=${!isWide && large} />
  </div>`;
};

const Journey = () => {
  const part = usePart();
  const shown = useMemo(newShown, []);
  const cell = useCell(shown);
  const { answer, asked, current } = useJourney(part);
  useLeadingHead(current);
  // Asked with the answer, so that the heads are drawn once. Out of sight nothing is drawn again for another head.
  const at = part.isHidden ? null : headShown();
  useAtlases(part, at ? page.run.kinds.filter(({ stack }) => stack === at.stack) : []);
  const head = at && page.head;
  const facts = answer && {
    run: asked?.run,
    place: answer.position,
    site: head && siteName(head),
    head: head?.head,
  };
  return html`<div class="journey" ...${part.attributes(facts ?? {})}>
    ${
      answer &&
      part.width > 0 &&
      !part.isHidden &&
      html`<${Body} part=${part} answer=${answer} asked=${asked} current=${current} shown=${shown}
      cell=${cell} />`
    }
  </div>`;
};
export const mount = mounted(Journey);
