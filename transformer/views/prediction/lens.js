// What each layer would have said: the logit lens.

import { fontPx, labelRoom } from "../../web/labels.js";
import { numeral, say } from "../../web/messages.js";
import { Pager, useMeta } from "../../web/figure.js";
import { useAnswer, useEvent, usePart } from "../../web/part.js";
import { html, useState } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { TokenColumns, withoutZoom } from "./token_columns.js";

const TYPE_PX = 14; // of the tokens in the cells, as Python lays them out
const cellText = (meta, row, column, [value]) =>
  `${meta.best[row][column]} ${numeral(value.toFixed(4))}`;
const gradient = (scale) =>
  `linear-gradient(to right, ${scale.map(([at, colour]) => `${colour} ${at * 100}%`).join(", ")})`;

const words = ({ says, tied, foresees }) => {
  const told = [
    foresees
      ? say(
          "The residual stream after each layer, read as the last one is: which token comes next?",
        )
      : say("The residual stream after each layer, read as the last one is: which token is it?"),
    say("It is read with {head} (nostalgebraist 2020), so early rows may be nonsense.", {
      head: says,
    }),
  ];
  if (tied && foresees) {
    told.push(say("The input repeats the token just read: head and embedding are one matrix."));
  }
  told.push(
    say("Underlined: the same best token as the model's own, in the top row."),
    say("Click a column to choose its token."),
  );
  return told.join(" ");
};

// Row names stand beside the picture: its own, and its colour bar, go.
const fitBesideRows = ({ data, layout }, width) => {
  const cells = width - layout.margin.l - layout.margin.r;
  layout.width = Math.round((cells * fontPx()) / TYPE_PX) + 16;
  const rows = layout.height - layout.margin.t - layout.margin.b;
  const above = layout.xaxis2.visible === false ? 8 : labelRoom(layout.xaxis2);
  layout.margin = { l: 8, r: 8, t: above, b: labelRoom(layout.xaxis) };
  layout.height = rows + layout.margin.t + layout.margin.b;
  Object.assign(layout.yaxis, { showticklabels: false, ticks: "" });
  for (const axis of [layout.xaxis, layout.xaxis2, layout.yaxis]) {
    Object.assign(axis, { automargin: false, fixedrange: true });
    if (axis.title)
      Object.assign(axis.title, { standoff: 0, font: { size: fontPx(), color: "rgba(0,0,0,0)" } });
  }
  data[0].showscale = false;
  withoutZoom(layout);
};

// Row names stand beside the picture, so that they stay when it is scrolled.
const Rows = ({ layout }) => {
  const { t: top, b: bottom } = layout.margin;
  const names = layout.meta.row_labels;
  const height = (layout.height - top - bottom) / names.length;
  const at = (text, y, kind = "") =>
    html`<span class=${kind} style=${{ top: `${y}px` }}>${text}</span>`;
  return [
    ...names.map((name, row) => at(name, top + height * (names.length - row - 0.5))),
    layout.xaxis2.visible !== false && at(say("came next"), top - 14, "axis"),
    at(say("token read"), layout.height - bottom + 16, "axis"),
  ];
};

const TOKENS = {
  previous: say("Earlier tokens"),
  next: say("Later tokens"),
  range: (places) => say("tokens {first} to {last} of {total}", places),
};

// fields: of the view, see declaredFields.
export const Lens = ({ fields }) => {
  const part = usePart();
  const [drawn, setDrawn] = useState(/** @type {any} */ (null));
  const { run, dark } = page;
  const { answer, asked } = useAnswer(
    part,
    "lens",
    run && { run: run.run, first: fields.lens, dark },
  );
  const meta = useMeta(answer?.figure);
  const [columns, total] = [answer?.columns ?? 0, asked?.run === run?.run ? meta.total : 0];
  const turn = (first) => (fields.lens = Math.max(0, first));
  useEvent("query", (query) => {
    const place = query?.stack === page.run?.stack ? query.index - page.run.trace_start : -1;
    const outside = place < fields.lens || place >= fields.lens + columns;
    if (place >= 0 && place < total && outside) turn(Math.floor(place / columns) * columns);
  });
  useEvent("run", () => turn(0));
  const change = (made) => fitBesideRows(made, answer.figure.layout.width);
  const scale = { background: drawn && gradient(drawn.data[0].colorscale) };
  const first = asked?.first ?? 0;
  return html`<div class="lens-box" ...${part.shows({ run: asked?.run, first })}>
    <p class="lens-says">${answer && words(answer)}</p>
    <div class="lens-head">
      <span>${say("probability of the best token:")} <span class="key">0 <i class="lens-scale" style=${scale}></i> 1</span></span>
      <${Pager} what=${TOKENS} at=${first} size=${columns} total=${total} go=${turn} />
    </div>
    <div class="lens-frame">
      <div class="lens-rows" aria-hidden="true">${drawn && html`<${Rows} layout=${drawn.layout} />`}</div>
      <${TokenColumns} part=${part} name="lens" figure=${answer?.figure} change=${change}
        numbers=${(...cell) => cellText(meta, ...cell)} done=${setDrawn}
        first=${run && run.trace_start + first} wide=${say("Logit lens, layers by tokens")} />
    </div>
  </div>`;
};
