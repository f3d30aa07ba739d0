// The tree of a beam search; the next token's candidates; every token's surprisal; and the logit lens.

import { asSentence, capital, numeral, say, sayWith } from "../../web/messages.js";
import { Figure, Pager } from "../../web/figure.js";
import { useAnswer, usePart, Section, mounted, useEvent } from "../../web/part.js";
import { html, useState, useLayoutEffect, useRef } from "../../web/preact.js";
import { page, setQuery } from "../../web/store.js";
import { fields } from "../../web/fields.js";
import { before, forgotten, predictedPosition, readPosition } from "../../web/selection.js";
import { beginning, Token } from "../../web/text.js";
import { useJourney } from "../journey/next_words.js";
import { Candidates } from "./candidates.js";
import { labelRoom } from "../../web/labels.js";
import { fontPx } from "../../web/theme.js";
import { cellBox } from "../../web/cells.js";

/** @import { CellText, Figure as PlotlyFigure, PlotlyObject } from "../../web/types" */

// The surprisal of each token.

const Surprisal = () => {
  const part = usePart();
  const { run } = page;
  const { answer, asked } = useAnswer(part, "surprisal", run && { run: run.run });
  const says = answer?.none ?? answer?.says;
  /** @param {string} name @param {string} words */
  const key = (name, words) => html`<span class=${`key ${name}`}>${words}</span>`;
  return html`<div class="surprisal-box" ...${part.attributes({ run: asked?.run })}>
    <p class="surprisal-says">${says && asSentence(says)}</p>
    <div class="surprisal-body" hidden=${Boolean(answer?.none)}>
      <p>${say("How many bits each token of the text cost the network: 0 if it was sure of it, 1 if it gave it a probability of one half, 2 for a quarter. Click a bar to choose the token before it.")} ${key("given", say("given"))} ${key("generated", say("generated"))}</p>
      <${TokenColumns} part=${part} name="surprisal" figure=${answer?.figure}
        follows first=${run?.trace_start} wide=${say("Surprisal of each token, −log₂ p")} />
    </div>
  </div>`;
};

// The logit lens.

const TYPE_PX = 14; // of the tokens in the cells, as laid out by Python
/** @type {(meta: { best: string[][] }, row: number, column: number, values?: number[]) => string} */
const cellText = (meta, row, column, [value] = []) =>
  `${meta.best[row][column]} ${numeral(value.toFixed(4))}`;
/** @type {(scale: [number, string][]) => string} */
const gradient = (scale) =>
  `linear-gradient(to right, ${scale.map(([at, colour]) => `${colour} ${at * 100}%`).join(", ")})`;

/** @type {(answer: import("./types").LensPage) => string} */
const words = ({ tied, predicts }) => {
  const sentences = [
    say(
      "The residual stream after each layer goes through the model's final norm (if it has one) and output layer (nostalgebraist 2020). They were not trained for it, so early rows may be nonsense.",
    ),
  ];
  if (tied && predicts) {
    sentences.push(
      say("The input repeats the token just read: output layer and embedding are one matrix."),
    );
  }
  sentences.push(
    say("Underlined: the same best token as the model's own, in the top row."),
    say("Click a column to choose its token."),
  );
  return sentences.join(" ");
};

// Row names are next to the picture: remove the figure's row names and colour bar.
/** @type {(figure: import("../../web/types").Figure, width: number) => void} */
const fitBesideRows = ({ data, layout }, width) => {
  const cells = width - layout.margin.l - layout.margin.r;
  layout.width = Math.round((cells * fontPx()) / TYPE_PX) + 16;
  const rows = layout.height - layout.margin.t - layout.margin.b;
  const above = layout.xaxis2.visible === false ? 8 : labelRoom(layout.xaxis2);
  layout.margin = { l: 8, r: 8, t: above, b: labelRoom(layout.xaxis) };
  layout.height = rows + layout.margin.t + layout.margin.b;
  Object.assign(layout.yaxis, { showticklabels: false, ticks: "" });
  for (const axis of [layout.xaxis, layout.xaxis2, layout.yaxis]) {
    axis.automargin = false;
    if (axis.title)
      Object.assign(axis.title, { standoff: 0, font: { size: fontPx(), color: "rgba(0,0,0,0)" } });
  }
  data[0].showscale = false;
};

// Row names are next to the picture, so that they stay visible when it is scrolled.
/** @param {{ layout: PlotlyObject }} props */
const Rows = ({ layout }) => {
  const { t: top, b: bottom } = layout.margin;
  const names = layout.meta.row_labels;
  const height = (layout.height - top - bottom) / names.length;
  /** @param {string} text @param {number} y @param {string} [kind] */
  const at = (text, y, kind = "") =>
    html`<span class=${kind} style=${{ top: `${y}px` }}>${text}</span>`;
  return [
    ...names.map((/** @type {string} */ name, /** @type {number} */ row) =>
      at(name, top + height * (names.length - row - 0.5)),
    ),
    layout.xaxis2.visible !== false && at(say("came next"), top - 14, "axis"),
    at(say("token read"), layout.height - bottom + 16, "axis"),
  ];
};

const Lens = () => {
  const part = usePart();
  const [drawn, setDrawn] = useState(/** @type {PlotlyFigure | null} */ (null));
  const { run } = page;
  const { answer, asked } = useAnswer(part, "lens", run && { run: run.run, first: fields.lens });
  const meta = answer?.figure?.layout.meta ?? {};
  const [columns, total] = [answer?.columns ?? 0, asked?.run === run?.run ? meta.total : 0];
  const turn = (/** @type {number} */ first) => (fields.lens = Math.max(0, first));
  useEvent("query", (query) => {
    const place = query?.stack === page.run?.stack ? query.index - page.run.trace_start : -1;
    const outside = place < fields.lens || place >= fields.lens + columns;
    if (place >= 0 && place < total && outside) turn(Math.floor(place / columns) * columns);
  });
  useEvent("run", () => turn(0));
  const change = (/** @type {PlotlyFigure} */ figure) =>
    fitBesideRows(figure, answer?.figure.layout.width);
  const scale = { background: drawn && gradient(drawn.data[0].colorscale) };
  const first = asked?.first ?? 0;
  return html`<div class="lens-box" ...${part.attributes({ run: asked?.run, first })}>
    <p class="lens-says">${answer && words(answer)}</p>
    <div class="lens-head">
      <span>${say("probability of the best token")} <span class="key">0 <i class="lens-scale" style=${scale}></i> 1</span></span>
      <${Pager} at=${first} size=${columns} total=${total} go=${turn}
        inWords=${(/** @type {Record<string, number>} */ places) => say("tokens {first} to {last} of {total}", places)} />
    </div>
    <div class="lens-frame">
      <div class="lens-rows" aria-hidden="true">${drawn && html`<${Rows} layout=${drawn.layout} />`}</div>
      <${TokenColumns} part=${part} name="lens" figure=${answer?.figure} change=${change}
        numbers=${(/** @type {Parameters<CellText>} */ ...cell) => cellText(meta, ...cell)} done=${setDrawn}
        first=${run && run.trace_start + first} wide=${say("Logit lens: each layer read as if it were the last")} />
    </div>
  </div>`;
};

// Scroll the column of the chosen token, or of the next one, into view.
/** @param {import("./types").Columns & { box: import("../../web/types").Drawn }} props */
const Band = ({ box, first, follows }) => {
  /** @type {{ current: HTMLElement }} */
  const band = useRef(null);
  const { run, query } = page;
  const isChosen = query && query.stack === run?.stack;
  const place = isChosen ? (follows ? predictedPosition() : query.index) - first : -1;
  const { xaxis, yaxis } = box._fullLayout ?? {};
  const shown = xaxis && place >= 0 && place < Math.abs(xaxis.range[1] - xaxis.range[0]);
  const { left, width } = shown ? cellBox(box, place, place, 0, 0) : { left: 0, width: 0 };
  const px = { left, width, top: yaxis?._offset, height: yaxis?._length };
  const at = Object.fromEntries(Object.entries(px).map(([side, value]) => [side, `${value}px`]));
  useLayoutEffect(() => {
    const wide = /** @type {Element} */ (band.current.closest(".wide"));
    const [start, end] = [wide.scrollLeft, wide.scrollLeft + wide.clientWidth];
    if (shown && (left < start || left + width > end))
      wide.scrollLeft = left - wide.clientWidth / 2;
  }, [left, width]);
  return html`<div class="band column" hidden=${!shown} style=${shown ? at : {}} ref=${band} />`;
};

// A Figure whose first column is the token `first`; a click chooses one, or, where a column says what
// was expected of its token (follows), the one before it.
/** @param {import("./types").Columns & import("../../web/types").Attributes} props */
const TokenColumns = ({ first, follows = false, ...figure }) => {
  const choose = (/** @type {import("../../web/types").Pointed} */ { points }) => {
    const index = first + Math.round(points[0].x);
    setQuery(follows ? before(index) : { stack: page.run.stack, index });
  };
  return html`<${Figure} ...${figure} on=${{ plotly_click: choose }}
    over=${(/** @type {import("../../web/types").Drawn} */ box) => html`<${Band} box=${box} first=${first} follows=${follows} />`} />`;
};

// The tree of a beam search.

const SearchTree = () => {
  const part = usePart();
  const { run } = page;
  const searched = (run?.hypotheses.length ?? 0) > 0;
  const { answer } = useAnswer(part, "beams", searched && { run: run.run });
  return html`<section class="tree-box" hidden=${!searched} ...${part.attributes({})}>
    <h3>${say("The beam search: which hypotheses lived and died at each step")}</h3>
    <p>${say("Each column is a step, with the best extension on top. Lines lead from a text to its extensions; the path of the chosen translation is bold.")}</p>
    <${Figure} part=${part} class="tree" figure=${searched && answer?.figure}
      wide=${capital(say("beam search"))} label=${capital(say("beam search"))} />
  </section>`;
};

// ---- the next token ----

/** @param {number} step @param {number} steps */
const title = (step, steps) =>
  sayWith("Step {step} of {steps}: chose “{token}” with probability {probability}", {
    step: step + 1,
    steps,
    token: html`<${Token} label=${page.run.labels[page.run.n_prompt + step]} />`,
    probability: numeral(page.run.probabilities[step].toFixed(3)),
  });
const expects = () =>
  sayWith("After {token} the network expects:", {
    token: html`<strong><${Token} label=${page.run.labels[readPosition()] ?? ""} /></strong>`,
  });

// ---- the folds ----

// Mean bits of a generated token; none if nothing was generated.
/** @type {(run: import("../../web/types").Run) => string | false} */
const bitsInWords = ({ probabilities: all }) => {
  const bits = all.reduce((sum, one) => sum - Math.log2(one), 0) / all.length;
  return (
    Number.isFinite(bits) &&
    say("{bits} bits per generated token, on average", { bits: numeral(bits.toFixed(2)) })
  );
};
// The layer from which on the network would say what it says in the end. lens: after the embedding and each
// layer.
/** @param {import("../journey/types").JourneyAnswer} answer */
const knownFrom = ({ lens, position }) => {
  if (!lens.length) return null;
  const last = lens[lens.length - 1];
  const from = lens.findLastIndex(({ id }) => id !== last.id) + 1;
  const token = html`<bdi translate=${false}>${beginning(last, position)}</bdi>`;
  return sayWith("{token} from layer {layer} on", { token, layer: Math.max(0, from - 1) });
};
/** @param {{ answer: import("../journey/types").JourneyAnswer | null }} props */
const Deeper = ({ answer }) => {
  const { run } = page;
  return html`<div>
    <${Section} name="surprisal" title=${say("Surprisal of each token, −log₂ p")}
      finding=${run && bitsInWords(run)}><${Surprisal} /><//>
    <${Section} name="lens" title=${say("Logit lens: each layer read as if it were the last")}
      finding=${answer && knownFrom(answer)}><${Lens} /><//>
  </div>`;
};

const Prediction = () => {
  const part = usePart();
  const { run } = page;
  const { answer, asked } = useJourney(part);
  const predicts = run?.stack === "decoder";
  const steps = run?.probabilities.length ?? 0;
  const step = run ? predictedPosition() - run.n_prompt : -1;
  const isStep = step >= 0 && step < steps;
  const isCurrent = asked?.run === run?.run;
  const go = (/** @type {number} */ to) => setQuery(before(run.n_prompt + to));
  const facts = { run: asked?.run, step: answer && answer.position + 1 - run.n_prompt };
  const head = () => html`<div class="step-head">
      <button type="button" class="previous" aria-label=${say("One token back")}
        disabled=${readPosition() === run.trace_start} onClick=${() => go(step - 1)}>‹</button>
      <h3 class="step-title">${isStep ? title(step, steps) : expects()}</h3>
      <button type="button" class="next" aria-label=${say("One token on")}
        disabled=${readPosition() >= run.labels.length - 1} onClick=${() => go(step + 1)}>›</button>
      <span class="hint">${[forgotten(readPosition()), isStep && asSentence(run.how)].filter(Boolean).join(" ")}</span>
    </div>`;
  return html`<div class="prediction" ...${part.attributes(facts)}>
    <${SearchTree} />
    ${predicts && head()}
    ${predicts && answer && isCurrent && html`<${Candidates} answer=${answer} />`}
    <${Deeper} answer=${answer} />
  </div>`;
};
export const mount = mounted(Prediction);
