// Token + position = input: what the positions are added to.

import { fontPx } from "../../web/labels.js";
import { numeral, say, sayWith, tinyNumber } from "../../web/messages.js";
import { Figure } from "../../web/figure.js";
import { useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { chosenRow, page } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { low } from "./position_pictures.js";

const NARROW_PX = 640;

// Titles are the page's own; on a phone the three strips stand one below the other.
const stackOnPhones = ({ layout, data }) => {
  for (const axis of [layout.xaxis2, layout.xaxis3]) axis.title.font = { size: fontPx() };
  layout.height -= layout.margin.t - 30;
  layout.margin.t = 30;
  if (page.projector)
    for (const heading of layout.annotations) heading.text = heading.text.split(",")[0];
  if (layout.width >= NARROW_PX) return;
  const strip = layout.height - layout.margin.t - layout.margin.b;
  const step = strip + layout.margin.b + layout.margin.t;
  layout.height = 3 * step;
  layout.margin = { ...layout.margin, l: 90, r: 8 };
  const inner = 2 * step + strip;
  layout.annotations.forEach((heading, place) => {
    const top = 1 - (place * step) / inner;
    const suffix = place ? String(place + 1) : "";
    Object.assign(heading, { x: 0, y: top, text: layout.meta.headings[place] });
    layout[`xaxis${suffix}`].domain = [0, 1];
    layout[`xaxis${suffix}`].anchor = `y${suffix}`;
    layout[`yaxis${suffix}`] = {
      ...layout.yaxis,
      anchor: `x${suffix}`,
      domain: [Math.max(0, top - strip / inner), top],
    };
    Object.assign(data[place], { yaxis: `y${suffix}`, showscale: false });
  });
};

const inWords = ({ lengths: { token, position, sum }, normed, difference }) => {
  const added = say(
    "Mean lengths of the vectors: tokens {token}, positions {position}, their sums {sum}. " +
      "All three share one colour scale; 0.5 % of the numbers lie beyond its ends.",
    {
      token: numeral(token.toFixed(2)),
      position: numeral(position.toFixed(2)),
      sum: numeral(sum.toFixed(2)),
    },
  );
  const read = normed
    ? say(
        "This model normalises each sum before its first layer reads it; the sums are shown " +
          "as they are before that.",
      )
    : say(
        "The sum is what the first layer reads (largest difference from the recorded " +
          "input: {difference}).",
        { difference: tinyNumber(difference) },
      );
  return `${added} ${read}`;
};
// In the table, each cell tells the sum's two parts.
const sums = (_row, _column, values) => {
  const [token, position, sum] = values.map((value) => numeral(value.toFixed(4)));
  return `${token} + ${position} = ${sum}`;
};

// common: what every question to the server holds, null while there is none.
export const Inputs = ({ server, common }) => {
  const part = usePart();
  const wanted = common && { ...common, place: chosenRow(common.stack) };
  const { answer, asked } = useAnswer(part, server.inputs, wanted);
  const title =
    answer &&
    sayWith("One of them: token {place} {token} (choose another in the text)", {
      place: answer.place,
      token: html`<${Token} label=${answer.label} />`,
    });
  const facts = answer && { run: asked.run, stack: asked.stack, place: answer.place };
  return html`<div class="position-inputs" ...${part.shows(facts)}>
    <p class="input-lengths">${answer && inWords(answer)}</p>
    <${Figure} part=${part} name="strips" figure=${answer?.strips} change=${stackOnPhones} numbers=${sums} />
    <h4 class="input-title">${title}</h4>
    <${Figure} part=${part} name="token" figure=${answer?.token} change=${low} />
  </div>`;
};
