// The picture of the journey: layers as columns of heads, the feed-forward below each, the residual stream
// under them, and each contribution to it.

import { fontPx } from "../../web/theme.js";
import { capital, numeral, say, sayList, percentText } from "../../web/messages.js";
import { headShown, sameHead, setHead, shell, page } from "../../web/store.js";
import { isAblated, isForwardOff } from "../../web/runs.js";
import { firstHead } from "../../web/selection.js";
import { attentionOf, headName } from "../../web/sites.js";
import { useButtonKeys, inPx } from "../../web/cells.js";
import { knownName, SmallHead } from "../../web/head_grid.js";
import { useFilling } from "../../web/controls.js";
import { hasMoved } from "../../web/pointer.js";
import { computed, html, useMemo } from "../../web/preact.js";
import { beginning, Token } from "../../web/text.js";
import { knownAtlas } from "../attention/numbers.js";
import { forwardName } from "./next_words.js";
import { amountOf, bandsOf, geometryOf, segmentsOf } from "./geometry.js";

const NUMBERS_APART = 4; // if there is no room for all
const MATTERS = 0.3; // of the largest amount: heads that add less are pale

/**
 * @typedef {import("../../web/types").Head} Head
 * @typedef {import("../../web/store.js").Kind} Kind
 * @typedef {import("./types").PictureView} PictureView
 * @typedef {import("./types").JourneyAnswer} JourneyAnswer
 * @typedef {import("./types").PictureGeometry} PictureGeometry
 * @typedef {import("./types").FlowGeometry} FlowGeometry
 */

// ---- words ----

const signed = (/** @type {number} */ amount) => numeral(amount.toFixed(2).replace("-", "−"));
// A part's contribution to the logit of the word, positive or negative.
/** @type {(name: string, amount: number, word: string) => string} */
const inWords = (name, amount, word) =>
  say("{name}: {amount} to the logit of “{word}”", {
    name,
    word,
    amount: `${amount < 0 ? "" : "+"}${signed(amount)}`,
  });
/** @type {(amount: number, most: number) => { class: string, style: Record<string, string> }} */
export const share = (amount, most) => ({
  class: amount < 0 ? "takes" : "adds",
  style: { "--share": `${Math.min(100, (100 * Math.abs(amount)) / (most || 1)).toFixed(0)}%` },
});
const nameOf = (/** @type {Head} */ head) => {
  const name = capital(headName(head));
  const isOne = page.run.kinds.filter(({ stack }) => stack === head.stack).length === 1;
  return knownName(isOne ? name : sayList([name, attentionOf(head)]), isAblated(head));
};

// ---- heads ----

// view: see Picture; box: its position in px, unless it is in a row.
/** @param {import("./types").HeadButtonProps} props */
const HeadButton = ({ head, view, small, box, keys }) => {
  const { answer, choose, point, lit } = view;
  const isChosen = useMemo(
    () => computed(() => !page.forward && sameHead(headShown(), head)),
    [head],
  ).value;
  const { layer, kind } = head;
  const amount = amountOf(answer, head, page.run.n_heads);
  const name = nameOf(head);
  const weight = lit?.[kind]?.[layer * page.run.n_heads + head.head];
  const cell = share(amount, view.most);
  const look = [
    "head",
    isAblated(head) && "ablated",
    lit && "weighed",
    Math.abs(amount) >= MATTERS * view.most && "matters",
    !small && `cell ${cell.class}`,
  ];
  const style = { ...(box && inPx(box)), ...cell.style, "--weight": weight?.toFixed(3) };
  const atlas = knownAtlas(head);
  const place = layer * page.run.n_heads + head.head;
  const title = answer.heads?.[kind] ? inWords(name, amount, answer.target_label) : name;
  return html`<button type="button" class=${look.filter(Boolean).join(" ")} style=${style}
    aria-label=${title} title=${title} aria-pressed=${String(isChosen)} tabindex=${isChosen ? 0 : -1}
    ...${keys} onClick=${() => choose(head)} onPointerDown=${() => view.press(head)}
    onPointerEnter=${(/** @type {PointerEvent} */ event) => event.pointerType === "mouse" && hasMoved(event) && point(head)}
  >${small && atlas && html`<${SmallHead} class="small" atlas=${atlas} place=${place} />`}</button>`;
};

// Buttons of heads that the arrow keys walk. columns: lists of heads, top to bottom; boxOf(head).
// small: whether each is a heatmap.
/** @param {import("./types").HeadsProps} props */
const Heads = ({ columns, view, small, boxOf = () => null }) => {
  const last = { row: columns[0].length - 1, column: columns.length - 1 };
  const keysOf = useButtonKeys(last, ({ row, column }) => view.choose(columns[column][row]));
  return columns.map((heads, column) =>
    heads.map(
      (head, row) =>
        html`<${HeadButton} key=${`${head.kind} ${head.layer} ${head.head}`} box=${boxOf(head)}
          keys=${keysOf(row, column)} head=${head} view=${view} small=${small} />`,
    ),
  );
};
/** @type {(kinds: Kind[], layer: number) => Head[][]} */
const headsOf = (kinds, layer) =>
  kinds.map(({ stack, kind }) =>
    Array.from({ length: page.run.n_heads }, (_, head) => ({ stack, kind, layer, head })),
  );

// ---- the parts other than heads ----

/** @param {{ layer: number, view: PictureView, box: import("./types").Box, words: string }} props */
const FeedForward = ({ layer, view, box, words }) => {
  const { answer, most } = view;
  const amount = answer.feed_forward?.[layer] ?? 0;
  const name = capital(forwardName({ layer }));
  const title = answer.feed_forward ? inWords(name, amount, answer.target_label) : name;
  const { class: look, style } = share(amount, most);
  const { stack } = view.kinds[0];
  const isChosen = page.forward?.layer === layer && page.forward?.stack === stack;
  const isOff = isForwardOff({ stack, layer });
  return html`<button type="button" class=${`feed-forward cell ${look} ${isOff ? "is-off" : ""}`} aria-label=${title} title=${title}
    aria-pressed=${String(isChosen)} style=${{ ...(box && inPx(box)), ...style }} onClick=${() => view.open({ stack, layer })}>${words}</button>`;
};

/** @param {{ at: PictureGeometry }} props */
const Embedding = ({ at }) => {
  const name = page.run.adds_positions ? say("token + position") : say("token");
  const label = page.run.adds_positions
    ? say("What the token starts with: its embedding and its position. Opens Positions.")
    : say("What the token starts with: its embedding. Opens Positions.");
  return html`<button type="button" class="embedding" style=${inPx(at.start)} aria-label=${label} title=${label}
    onClick=${() => shell.openTab("positions")}>${name}</button>`;
};

// A token that would only come again is no piece of the word that it ends.
/** @type {(answer: JourneyAnswer) => { label: string, probability: number }[]} */
const lensWords = ({ lens, position }) =>
  lens.map((token) => ({
    label: token.label === page.run.labels[position] ? token.label : beginning(token, position),
    probability: token.probability,
  }));
/** @param {{ at: PictureGeometry, answer: JourneyAnswer }} props */
const Lens = ({ at, answer }) =>
  segmentsOf(lensWords(answer), at.pitch / at.type).map(
    ({ label, probability, first, last, isFinal, isSmall }) => {
      const [from, to] = [at.after(first) - at.pitch / 2, at.after(last) + at.pitch / 2];
      const box = inPx({ left: from, top: at.lens, width: to - from });
      const title = say("After layer {layer}: {token}, {probability}", {
        layer: last,
        token: label,
        probability: percentText(probability),
      });
      return html`<span class=${isFinal ? "lens final" : "lens"} style=${box} role="img" aria-label=${title} title=${title}>
      <${Token} label=${label} />${(isFinal || !isSmall) && html`<small>${percentText(probability)}</small>`}</span>`;
    },
  );

// The stream as thick as its norm, and what flows into it.
/** @param {{ at: FlowGeometry, view: PictureView }} props */
const Flow = ({ at, view }) => {
  const { answer } = view;
  const upper = at.thickness(answer.norms).map(([x, half]) => `${x} ${at.stream - half}`);
  const lower = at.thickness(answer.norms).map(([x, half]) => `${x} ${at.stream + half}`);
  const band = (/** @type {import("./types").Band} */ { path, width, amount, strength }) =>
    html`<path class=${amount < 0 ? "band-in takes" : "band-in adds"} d=${path}
      style=${{ strokeWidth: `${width}px`, opacity: String(strength) }} />`;
  return html`<svg class="flow" ref=${useFilling(answer.position, 0)} width=${at.width} height=${at.height} aria-hidden="true">
    <path class="stream" d=${`M${upper.join("L")}L${lower.reverse().join("L")}Z`} />
    <path class="bridge" d=${at.bridges} />
    ${bandsOf(at, answer).map(band)}
  </svg>`;
};

// ---- all of it ----

/** @param {import("./types").PictureProps} props */
export const Picture = ({ view, width, height, source }) => {
  const { answer, kinds, many } = view;
  const { n_heads: nHeads } = page.run;
  const nLayers = kinds[0].n_layers;
  const at = geometryOf({
    width,
    height,
    nLayers,
    nHeads,
    kinds,
    small: !many,
    source: Boolean(source),
    type: fontPx() / 14,
  });
  const layers = Array.from({ length: nLayers }, (_, layer) => layer);
  const columns = layers.flatMap((layer) => headsOf(kinds, layer));
  /** @type {(place: number, px: number) => boolean} */
  const isTold = (place, px) => px > 20 * at.type || place % NUMBERS_APART === 0;
  const title = (/** @type {number} */ layer) => {
    const box = inPx({
      left: at.x(layer, 0),
      top: at.top - at.type * (at.named ? 40 : 22),
      width: at.inner,
    });
    const words =
      at.pitch > 60 * at.type ? say("layer {layer}", { layer }) : isTold(layer, at.pitch) && layer;
    return html`<span class=${kinds.length > 1 ? "caption layer" : "caption"} style=${box}><b>${words}</b></span>`;
  };
  const kindName = (/** @type {number} */ layer) =>
    at.named &&
    kinds.map(({ kind }, place) => {
      const box = inPx({
        left: at.x(layer, place) + (place ? 4 : -4),
        top: at.top - 20 * at.type,
        width: at.cell.width,
      });
      return html`<span class="caption" style=${box}>${kind === "self" ? say("self") : say("cross")}</span>`;
    });
  // The label next to a row.
  /** @param {string | number} words @param {{ top: number, height: number }} row @param {number} [wide] */
  const rowName = (words, row, wide = 16) => {
    const left = at.left - (wide + 4) * at.type;
    const top = row.top + row.height / 2 - 9 * at.type;
    const box = { left, top, width: wide * at.type };
    return html`<span class="caption" style=${inPx(box)}>${words}</span>`;
  };
  const number = (/** @type {number} */ head) =>
    isTold(head, at.row + 6) && rowName(head, { top: at.y(head), height: at.cell.height });
  const inBox = at.inner > 34 * at.type; // else it is next to the row
  return html`<div class="picture-of" style=${inPx({ width: at.width, height: at.height })}
    role="group" aria-label=${say("Layers and heads; arrow keys move")} onPointerLeave=${() => view.point(null)}>
    <${Flow} at=${at} view=${view} />
    ${source && html`<button type="button" class="source-stream" style=${inPx(at.source)} onClick=${() => setHead(firstHead(source))}>${say("the source, as the encoder gives it")}</button>`}
    <${Embedding} at=${at} />
    ${layers.map((layer) => [
      title(layer),
      kindName(layer),
      html`<${FeedForward} layer=${layer} view=${view} box=${at.feedForward(layer)} words=${inBox ? say("MLP") : ""} />`,
    ])}
    ${!inBox && rowName(say("MLP"), at.feedForward(0), 36)}
    ${Array.from({ length: nHeads }, (_, head) => number(head))}
    <${Heads} columns=${columns} view=${view} small=${!many} boxOf=${(/** @type {Head} */ { kind, layer, head }) => at.box(kind, layer, head)} />
    ${
      answer.lens.length > 0 &&
      html`<span class="caption origin" style=${inPx({ left: 0, top: at.lens, width: at.left - 8 })}>${say("it would say so far")}</span>`
    }
    <${Lens} at=${at} answer=${answer} />
  </div>`;
};

// One layer alone: its heads in rows, and what flows from them into the stream. at: see layerGeometryOf.
/** @param {{ view: PictureView, at: FlowGeometry }} props */
export const OneLayer = ({ view, at }) => {
  const { answer, kinds } = view;
  const { layer = 0 } = at;
  const columns = headsOf(kinds, layer).flatMap((heads) => heads.map((head) => [head]));
  const after = answer.lens[layer + 1];
  return html`<div class="one-layer" role="group" aria-label=${say("Heads of layer {layer}", { layer })}
    onPointerLeave=${() => view.point(null)}>
    <div class="picture-of" style=${inPx({ width: at.width, height: at.height })}>
      <${Flow} at=${at} view=${view} />
      <${Heads} columns=${columns} view=${view} small boxOf=${(/** @type {Head} */ { kind, head }) => at.box(kind, layer, head)} />
      <${FeedForward} layer=${layer} view=${view} box=${at.feedForward(layer)} words=${say("MLP")} />
    </div>
    ${after && html`<p class="after">${say("then it would say")} <${Token} label=${beginning(after, answer.position)} /> <small>${percentText(after.probability)}</small></p>`}
  </div>`;
};
